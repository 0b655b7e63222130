import gc
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from stepline.media.decode import MediaError, MissedKeyError, frames, read_header
from stepline.media.read import timeline_of
from tests.media.clips import CFR_25, CFR_2997, VFR, copy_from, index_of, make

av = pytest.importorskip("av")
imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")

CLIPS = {
    "25.mp4": (CFR_25, {}),
    "2997.mp4": (CFR_2997, {}),
    "variable.mp4": (VFR, {}),
    "variable.mkv": ([Fraction(round(t * 1000), 1000) for t in VFR], {}),
    "offset.ts": (CFR_25, {"output_ts_offset": "100"}),
}


@pytest.fixture(params=CLIPS)
def clip(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[Fraction]]:
    times, options = CLIPS[request.param]
    return make(tmp_path / request.param, times, options=options), times


def test_every_frame_comes_with_its_presentation_time(
    clip: tuple[Path, list[Fraction]],
) -> None:
    path, times = clip
    decoded = list(frames(path))
    assert [index_of(frame.rgb()) for frame in decoded] == list(range(len(times)))
    assert [frame.pts * frame.time_base for frame in decoded] == times
    assert [frame.t_s for frame in decoded] == [float(time) for time in times]


def test_a_cut_in_the_middle_of_a_group_of_pictures_starts_where_it_was_cut(
    tmp_path: Path,
) -> None:
    whole = make(tmp_path / "whole.mp4", [Fraction(i, 25) for i in range(100)])
    path = copy_from(whole, tmp_path / "cut.mp4", 1.24)
    assert [index_of(frame.rgb()) for frame in frames(path)] == list(range(31, 100))


def test_decoding_can_start_at_a_key_frame(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", CFR_25)
    whole = [(frame.pts, index_of(frame.rgb())) for frame in frames(path)]
    key = int(timeline_of(path).keys[3])
    started = [(frame.pts, index_of(frame.rgb())) for frame in frames(path, key=key)]
    assert started == [(pts, shows) for pts, shows in whole if pts >= key]


def test_pictures_leave_memory_without_a_collection_of_cycles(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", CFR_25)
    gc.collect()
    gc.disable()
    try:
        before = {id(each) for each in gc.get_objects() if type(each) is av.VideoFrame}
        assert sum(1 for frame in frames(path) if frame.size) == len(CFR_25)
        held = [each for each in gc.get_objects() if type(each) is av.VideoFrame and id(each) not in before]
        assert len(held) < 10
    finally:
        gc.enable()


def test_a_picture_in_the_middle_is_turned_where_it_says_so_itself(tmp_path: Path) -> None:
    plain, turned, path = make(tmp_path / "a.mp4", CFR_25[:5]), tmp_path / "turned.mp4", tmp_path / "both.mp4"
    turn = ["-c", "copy", "-bsf:v", "h264_metadata=display_orientation=insert:rotate=90"]
    subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", plain, *turn, turned], check=True)
    with av.open(str(plain)) as first, av.open(str(path), "w") as joined:
        stream = joined.add_stream_from_template(first.streams.video[0])
        for number, part in enumerate((plain, turned, plain)):
            with av.open(str(part)) as container:
                offset = round(number / 5 / container.streams.video[0].time_base)
                for packet in container.demux(video=0):
                    if packet.size:
                        packet.pts, packet.dts, packet.stream = packet.pts + offset, packet.dts + offset, stream
                        joined.mux(packet)
    assert [frame.size for frame in frames(path)] == [(320, 64)] * 5 + [(64, 320)] + [(320, 64)] * 9  # its key frame


def test_a_container_that_leads_elsewhere_is_an_error(tmp_path: Path) -> None:
    path = make(tmp_path / "a.ts", [Fraction(i, 25) for i in range(500)])
    with pytest.raises(MissedKeyError, match=r"cannot seek to 10\.000 s"):
        next(frames(path, key=900_000))


def test_probe_reads_the_header(tmp_path: Path) -> None:
    header = read_header(make(tmp_path / "a.ts", CFR_25, options={"output_ts_offset": "100"}))
    assert (header.width, header.height, header.start_s, header.audio_tracks) == (
        320,
        64,
        100,
        0,
    )
    assert header.fps == pytest.approx(25)
    assert (header.codec, header.duration_s) == ("h264", pytest.approx(3, abs=0.05))


def test_damaged_files_are_errors_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "text.mp4").write_text("no video")
    whole = make(tmp_path / "whole.mp4", CFR_25).read_bytes()
    (tmp_path / "headless.mp4").write_bytes(whole[: len(whole) // 2])
    for path in (
        tmp_path / "text.mp4",
        tmp_path / "headless.mp4",
        tmp_path / "absent.mp4",
    ):
        with pytest.raises(MediaError, match="cannot be decoded"):
            list(frames(path))


def test_what_is_no_video_and_what_is_empty_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "text.mp4").write_text("no video")
    (tmp_path / "empty.mp4").touch()
    with pytest.raises(MediaError, match="cannot be decoded: no video, or damaged"):
        read_header(tmp_path / "text.mp4")
    with pytest.raises(MediaError, match="cannot be decoded: it is empty"):
        read_header(tmp_path / "empty.mp4")


def test_damage_and_an_unknown_codec_are_errors_with_a_reason(tmp_path: Path) -> None:
    whole = make(tmp_path / "whole.mp4", CFR_25).read_bytes()
    (tmp_path / "other.mp4").write_bytes(whole.replace(b"avc1", b"zzzz"))
    with pytest.raises(MediaError, match="codec is unknown"):
        list(frames(tmp_path / "other.mp4"))
    middle = len(whole) // 3
    (tmp_path / "damaged.mp4").write_bytes(whole[:middle] + b"\xff" * 500 + whole[middle + 500 :])
    with pytest.raises(MediaError, match=r"(damaged|cannot be decoded) after \d\.\d+ s"):
        list(frames(tmp_path / "damaged.mp4"))


@pytest.mark.parametrize(
    ("start_s", "audio_s", "name"), [(2, 1, "a.mkv"), (0, 6, "a.mkv"), (2, 1, "a.flv"), (2, 1, "a.ts"), (2, 6, "a.mp4")]
)
def test_a_video_that_starts_late_or_ends_before_its_audio_is_whole(
    tmp_path: Path, start_s: int, audio_s: int, name: str
) -> None:
    times = [start_s + time for time in CFR_25]
    path = make(tmp_path / name, times, audio=np.zeros(audio_s * 16000, np.int16))
    shown = timeline_of(path)
    assert (
        [frame.t_s for frame in frames(path)] == shown.t_s.tolist() == pytest.approx(list(map(float, times)), abs=0.1)
    )
    assert not shown.gaps
    header = read_header(path)
    assert header.duration_s == pytest.approx(start_s + 3, abs=0.1)
    assert header.begin_s == pytest.approx(start_s, abs=0.1)


def test_a_picture_that_begins_a_little_after_the_sound_begins_at_time_0(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mkv", [Fraction(2, 5) + time for time in CFR_25], audio=np.zeros(48_000, np.int16))
    assert next(frames(path)).t_s == 0
    assert read_header(path).begin_s == 0


def test_a_cover_picture_is_no_video(tmp_path: Path) -> None:
    path = tmp_path / "song.mp4"
    ffmpeg = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-f", "lavfi", "-i", "sine=d=1", "-f", "lavfi"]
    cover = ["-i", "color=s=64x64", "-map", "0", "-map", "1", "-frames:v", "1", "-c:v", "png"]
    subprocess.run([*ffmpeg, *cover, "-disposition:v", "attached_pic", str(path)], check=True)
    with pytest.raises(MediaError, match="no video stream"):
        read_header(path)


def two_streams(path: Path, *options: str) -> Path:
    """Write a video with a small black stream and a larger white one."""
    colours = (("-f", "lavfi", "-i", f"color={each}:r=25:d=1") for each in ("black:s=64x64", "white:s=128x96"))
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", *(word for each in colours for word in each)]
    maps = ("-map", "0", "-map", "1", "-c:v", "libx264", "-pix_fmt", "yuv420p")
    subprocess.run([*command, *maps, *options, str(path)], check=True)
    return path


def flags(*defaults: bool) -> list[str]:
    """Return the options that flag streams as default."""
    of = (("-disposition:v:" + str(n), "default" if flag else "0") for n, flag in enumerate(defaults))
    return [word for each in of for word in each]


@pytest.mark.parametrize(
    ("name", "options", "stream"),
    [
        ("a.mp4", flags(False, True), 1),
        ("a.mp4", flags(True, False), 0),
        ("a.mp4", flags(True, True), 0),
        ("a.mov", flags(False, True), 1),
        ("a.mkv", flags(False, True), 1),
        ("a.mkv", flags(False, False), 0),
        ("a.mkv", flags(True, True), 0),
        ("a.ts", [], 0),
        ("a.ts", ["-program", "st=1", "-program", "st=0"], 0),
    ],
)
def test_the_stream_that_is_flagged_as_default_is_read(
    name: str, options: list[str], stream: int, tmp_path: Path
) -> None:
    path = two_streams(tmp_path / name, *options)
    with av.open(str(path)) as container:
        width = container.streams.video[stream].width
    probe, decoded = read_header(path), list(frames(path))
    assert (probe.stream, probe.width) == (stream, width)
    assert {frame.size[0] for frame in decoded} == {width}
    assert len(timeline_of(path).pts) == len(decoded) == 25


@pytest.mark.parametrize(("name", "codec"), [("a.mp4", "libx264"), ("a.mkv", "mpeg4"), ("a.mpg", "mpeg2video")])
def test_pixels_that_are_not_square_are_stated_and_read_as_they_are_stored(
    name: str, codec: str, tmp_path: Path
) -> None:
    source = ["-f", "lavfi", "-i", "color=white:s=96x64:r=25:d=1,setdar=16/9", "-c:v", codec]
    subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", *source, str(tmp_path / name)], check=True)
    [frame, *_] = frames(tmp_path / name)
    assert (read_header(tmp_path / name).pixels, frame.size, frame.aspect) == ("32:27", (96, 64), Fraction(16, 9))


@pytest.mark.parametrize(("name", "options"), [("a.mp4", {"movflags": "faststart"}), ("a.mkv", {})])
def test_a_truncated_video_fails_after_its_last_frame(tmp_path: Path, name: str, options: dict[str, str]) -> None:
    whole = make(tmp_path / name, [Fraction(i, 25) for i in range(250)], options=options).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MediaError, match="truncated|cannot be decoded|damaged"):
        list(frames(tmp_path / name))


def test_a_video_without_its_last_seconds_is_truncated(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mkv", [Fraction(i, 25) for i in range(250)])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 3 // 4])
    with pytest.raises(MediaError, match=r"^damaged after 7\.\d+ s|^truncated: [78]\.\d s of 10\.0 s can be decoded$"):
        list(frames(path))


@pytest.mark.parametrize("name", ["a.flv", "a.ts", "a.mkv"])
def test_sound_that_is_longer_than_the_pictures_is_no_truncation(tmp_path: Path, name: str) -> None:
    path = make(tmp_path / name, CFR_25, audio=np.zeros(96_000, np.int16))
    assert len(list(frames(path))) == len(timeline_of(path).pts) == 75
    assert not timeline_of(path).gaps


@pytest.mark.parametrize(
    "text", ["ffconcat version 1.0\nfile clip.mp4\n", "#EXTM3U\n#EXTINF:3,\nclip.ts\n#EXT-X-ENDLIST\n"]
)
def test_a_playlist_leads_nowhere(tmp_path: Path, text: str) -> None:
    make(tmp_path / "clip.mp4", CFR_25)
    make(tmp_path / "clip.ts", CFR_25)
    (tmp_path / "a.mkv").write_text(text)
    with pytest.raises(MediaError, match="playlist|cannot be decoded"):
        read_header(tmp_path / "a.mkv")
