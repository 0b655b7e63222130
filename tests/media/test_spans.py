import wave
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from stepline.media.decode import MediaError, frames
from stepline.media.one_pass import one_pass
from stepline.media.scores import FrameScores
from stepline.media.spans import merged, rows_within, shown
from tests.media.clips import DECODER, KINDS, index_of, kind, make

pytest.importorskip("cv2")
pq = pytest.importorskip("pyarrow.parquet")
SPANS = [[0.5, 0.9], [1.4, 1.5], [2.0, 2.6]]
LONG = [Fraction(i, 25) for i in range(500)]


@pytest.mark.parametrize(
    ("spans", "one"),
    [
        ([], []),
        ([(5, 6), (1, 2)], [[1, 6]]),
        ([(0, 1), (11, 12)], [[0, 1], [11, 12]]),
        ([(0, 1), (10.99, 12)], [[0, 12]]),
        ([(0, 50), (1, 2), (50, 51)], [[0, 51]]),
    ],
)
def test_near_spans_are_one(spans: list[tuple[float, float]], one: list[list[float]]) -> None:
    assert merged(spans) == one


@pytest.mark.parametrize(
    ("span", "fps", "rows"),
    [((0, 1), 5, range(5)), ((0.2, 0.4), 5, range(2, 2)), ((0.25, 0.6), 5, range(2, 3)), ((3, 4.5), 1, range(3, 5))],
)
def test_rows_are_counted_in_exact_arithmetic(span: tuple[float, float], fps: float, rows: range) -> None:
    assert list(rows_within(span, fps)) == [
        k for k in range(100) if span[0] <= Fraction(k) / Fraction(str(fps)) < span[1]
    ]
    assert rows_within(span, fps).stop >= rows.start


@pytest.mark.parametrize("name", KINDS)
def test_the_frames_of_spans_are_those_that_are_shown_within_them(tmp_path: Path, name: str) -> None:
    path, indices, times = kind(tmp_path, name)
    all_frames = list(frames(path))
    found = [(index_of(frame.rgb()), frame.pts, first) for frame, first in shown(path, SPANS)]
    wanted = []
    for start, end in SPANS:
        last = max(i for i, time in enumerate(times) if float(time) <= start)
        shown_within = [last, *(i for i, time in enumerate(times) if i > last and float(time) < end)]
        wanted += [(indices[i], all_frames[i].pts, i == last) for i in shown_within]
    assert found == wanted


def test_a_frame_that_is_shown_in_two_spans_begins_both(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", [Fraction(0), Fraction(1), Fraction(100), Fraction(101)])
    spans = [[10.0, 20.0], [40.0, 50.0], [99.0, 100.5], [300.0, 400.0]]
    found = [(frame.t_s, first) for frame, first in shown(path, spans)]
    assert found == [(1, True), (1, True), (1, True), (100, False)]


def noise(i: int) -> np.ndarray:
    return np.random.default_rng(i // 5).integers(0, 256, (64, 320, 3), np.uint8)


def sound(seconds: int) -> np.ndarray:
    return (3000 * np.random.default_rng(0).standard_normal(16_000 * seconds)).astype(np.int16)


def heard(folder: Path) -> np.ndarray:
    with wave.open(str(folder / "audio.wav")) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(int)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.ts"])
def test_spans_have_the_scores_and_the_audio_of_the_whole(tmp_path: Path, name: str) -> None:
    path = make(tmp_path / name, LONG, picture=noise, audio=sound(20))
    for folder in ("whole", "spans"):
        (tmp_path / folder).mkdir()
    spans = [[2.3, 4.0], [11.11, 14.47]]
    whole = one_pass(path, tmp_path / "whole", decoder=DECODER, duration_s=0)
    made = one_pass(path, tmp_path / "spans", spans, decoder=DECODER, duration_s=0)
    assert made["n_frames"] < whole["n_frames"] / 3
    assert made["audio"] == {"status": "present", "reason": "", "loud_s": pytest.approx(4.6, abs=0.1)}
    assert made["duration_s"] == pytest.approx(14.48, abs=0.01)
    all_rows = pq.read_table(tmp_path / "whole/scores.parquet").to_pylist()
    rows = pq.read_table(tmp_path / "spans/scores.parquet").to_pylist()
    by_pts = {row["pts"]: row for row in all_rows}
    alone = FrameScores()(noise(0))
    for number, row in enumerate(rows):
        assert row.pop("frame") == number
        same = {key: value for key, value in by_pts[row["pts"]].items() if key not in ("frame", "first")}
        if row.pop("first"):
            average = same["average_rgb"]
            same |= dict(zip(FrameScores.COLUMNS, alone, strict=True)) | {"average_rgb": average}
        assert row == same
    wanted, got = heard(tmp_path / "whole"), heard(tmp_path / "spans")
    assert len(got) == round(14.47 * 16_000)
    inside = np.zeros(len(got), bool)
    for start_s, end_s in spans:
        inside[round(start_s * 16_000) : round(end_s * 16_000)] = True
    assert not got[~inside].any()
    if name == "a.mp4":  # the others' times are rounded
        assert np.abs(got - wanted[: len(got)])[inside].max() <= 1
    else:
        shifts = [np.corrcoef(np.roll(wanted, k)[: len(got)][inside], got[inside])[0, 1] for k in range(-16, 17)]
        assert max(shifts) > 0.9


def test_audio_at_another_rate_stands_at_its_samples(tmp_path: Path) -> None:
    import subprocess

    import imageio_ffmpeg

    sources = ["-f", "lavfi", "-i", "testsrc=d=12:r=25", "-f", "lavfi", "-i", "anoisesrc=d=12:r=44100:a=0.3:seed=1"]
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", *sources, "-c:a", "aac", "-b:a", "192k", "a.mp4"]
    subprocess.run(command, check=True)
    for folder in ("whole", "spans"):
        Path(folder).mkdir()
    one_pass(Path("a.mp4"), Path("whole"), decoder=DECODER, duration_s=0)
    one_pass(Path("a.mp4"), Path("spans"), [[5.123, 7.0]], decoder=DECODER, duration_s=0)
    part = slice(round(5.123 * 16_000), 7 * 16_000)
    assert np.abs(heard(Path("spans"))[part] - heard(Path("whole"))[part]).max() <= 1


def test_only_spans_are_decoded(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", [Fraction(i, 25) for i in range(2000)], options={"movflags": "faststart"})
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 3 // 4] + bytes(len(content) // 4))
    with pytest.raises(MediaError):
        list(frames(path))
    (tmp_path / "made").mkdir()
    made = one_pass(path, tmp_path / "made", [[10.0, 12.0], [40.0, 41.0]], decoder=DECODER, duration_s=0)
    assert made["n_frames"] == 75


def test_spans_behind_the_end_are_an_error(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", LONG[:50])
    with pytest.raises(MediaError, match="no frame is shown within its spans"):
        one_pass(path, tmp_path, [[2.0, 3.0], [100.0, 101.0]], decoder=DECODER, duration_s=0)
