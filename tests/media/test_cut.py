import subprocess
import wave
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

from stepline.media.cut import WholeOnlyError, copy_spans, read_header
from stepline.media.decode import MediaError, frames
from stepline.media.one_pass import one_pass
from stepline.media.read import pyav
from stepline.media.timeline import scan
from tests.media.clips import DECODER, copy_from, make

pytest.importorskip("cv2")
CUT = "mov,mp4,m4a,3gp,3g2,mj2"
SPANS = [[7.3, 8.1], [15.0, 16.04], [24.5, 25.0]]
TIMES = {
    "30.mp4": [Fraction(i, 30) for i in range(900)],
    "2997.mp4": [Fraction(1001 * i, 30000) for i in range(900)],
    "variable.mp4": [Fraction(int(t), 1000) for t in np.cumsum([0] + [20, 40, 15, 250, 33, 33, 90, 70] * 60)],
    "cut.mp4": [Fraction(i, 30) for i in range(900)],
}


def source(folder: Path, name: str) -> Path:
    """Return a clip of half a minute with B-frames, a key frame each 12 frames, and sound."""
    sound = (3000 * np.random.default_rng(0).standard_normal(16_000 * 30)).astype(np.int16)
    path = make(folder / name, TIMES[name], audio=None if name == "cut.mp4" else sound)
    return copy_from(path, folder / "edited.mp4", 1.1) if name == "cut.mp4" else path


def needed(path: Path) -> dict[Fraction, bytes]:
    """Return the pixels of the frames that are shown within SPANS, by their time."""
    decoded = list(frames(path))
    found = {}
    for start_s, end_s in SPANS:
        first = max(i for i, frame in enumerate(decoded) if frame.t_s <= start_s)
        for frame in decoded[first:]:
            if frame.t_s < end_s:
                found[frame.pts * frame.time_base] = frame.rgb().tobytes()
    return found


@pytest.mark.parametrize("name", TIMES)
def test_every_frame_of_a_span_keeps_its_time_and_pixels(tmp_path: Path, name: str) -> None:
    path, cut = source(tmp_path, name), tmp_path / "spans.mp4"
    copy_spans([path], cut, SPANS)
    wanted = needed(path)
    assert len(wanted) > 30
    timeline = scan(cut)
    by_time = {int(pts) * timeline.time_base: i for i, pts in enumerate(timeline.pts)}
    indices = np.array([by_time[time] for time in wanted])
    read = [frame.rgb().tobytes() for frame in pyav(cut, timeline, indices)]
    assert read == list(wanted.values())
    assert len(timeline.pts) < len(scan(path).pts) / 2
    whole = read_header(path)
    assert (whole.probe, whole.holds) == (read_header(path).probe, [])
    assert read_header(cut) == whole._replace(probe=replace(whole.probe, container=CUT), holds=SPANS)


@pytest.mark.parametrize("name", ["30.mp4", "2997.mp4", "variable.mp4"])
def test_the_media_stage_makes_the_same_of_a_cut_file(tmp_path: Path, name: str) -> None:
    path, cut = source(tmp_path, name), tmp_path / "spans.mp4"
    copy_spans([path], cut, SPANS)
    made = {}
    for of in (path, cut):
        (tmp_path / of.stem).mkdir()
        found = one_pass(of, tmp_path / of.stem, SPANS, decoder=DECODER, duration_s=0)
        with wave.open(str(tmp_path / of.stem / "audio.wav")) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        made[of] = found, (tmp_path / of.stem / "scores.parquet").read_bytes(), samples.tolist()
    assert made[path] == made[cut]


def test_the_same_spans_give_the_same_bytes(tmp_path: Path) -> None:
    path = source(tmp_path, "30.mp4")
    for name in ("one.mp4", "two.mp4"):
        copy_spans([path], tmp_path / name, SPANS)
    assert (tmp_path / "one.mp4").read_bytes() == (tmp_path / "two.mp4").read_bytes()


def test_pictures_and_sound_may_be_two_files(tmp_path: Path) -> None:
    path = source(tmp_path, "30.mp4")
    for name, without in (("v.mp4", "-an"), ("a.m4a", "-vn")):
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", path, "-c", "copy", without, tmp_path / name]
        subprocess.run(command, check=True)
    copy_spans([path], tmp_path / "one.mp4", SPANS)
    copy_spans([tmp_path / "v.mp4", tmp_path / "a.m4a"], tmp_path / "two.mp4", SPANS)
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        found = one_pass(tmp_path / f"{name}.mp4", tmp_path / name, SPANS, decoder=DECODER, duration_s=0)
        made.append((found["n_frames"], found["audio"], (tmp_path / name / "audio.wav").read_bytes()))
    assert made[0] == made[1]


def test_spans_that_overlap_a_group_of_pictures_are_copied_once(tmp_path: Path) -> None:
    path = source(tmp_path, "30.mp4")
    copy_spans([path], tmp_path / "spans.mp4", [[0.0, 2.0], [2.1, 4.2], [6.5, 7.0]])
    pts = scan(tmp_path / "spans.mp4").pts
    assert len(np.unique(pts)) == len(pts)
    wanted = scan(path).pts[: 30 * 5]
    assert set(wanted) <= set(pts)


def test_what_cannot_be_cut_is_said(tmp_path: Path) -> None:
    ts = make(tmp_path / "a.ts", TIMES["30.mp4"])
    with pytest.raises(WholeOnlyError, match="its container cannot seek to a key frame before"):
        copy_spans([ts], tmp_path / "spans.mp4", SPANS)
    mkv = make(tmp_path / "a.mkv", TIMES["30.mp4"])
    with pytest.raises(WholeOnlyError, match="its packets have no times"):
        copy_spans([mkv], tmp_path / "spans.mp4", SPANS)
    webm = tmp_path / "a.webm"
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-f", "lavfi", "-i", "testsrc=d=3:s=64x48:r=10"]
    subprocess.run([*command, "-c:v", "libvpx", webm], check=True)
    with pytest.raises(WholeOnlyError, match="an mp4 cannot hold vp8"):
        copy_spans([webm], tmp_path / "spans.mp4", [[1.0, 2.0]])
    (tmp_path / "text.mp4").write_text("no video")
    with pytest.raises(MediaError, match="cannot be read"):
        copy_spans([tmp_path / "text.mp4"], tmp_path / "spans.mp4", SPANS)


@pytest.mark.parametrize("said", ["", "{}", "[1]", '{"fps": 1, "duration_s": 1, "frame_rate": "x", "spans": []}'])
def test_a_damaged_mark_is_an_error(tmp_path: Path, said: str) -> None:
    path = make(tmp_path / "a.mp4", TIMES["30.mp4"][:30])
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", path, "-c", "copy"]
    subprocess.run([*command, "-metadata", f"comment=stepline cut: {said}", "said.mp4"], check=True)
    with pytest.raises(MediaError, match="its list of spans is damaged"):
        read_header(Path("said.mp4"))


def test_a_source_that_ends_early_is_an_error(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", TIMES["30.mp4"], options={"movflags": "faststart"})
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    copy_spans([path], tmp_path / "spans.mp4", SPANS[:1])
    with pytest.raises(MediaError, match="truncated|damaged|cannot be read"):
        copy_spans([path], tmp_path / "spans.mp4", SPANS)
