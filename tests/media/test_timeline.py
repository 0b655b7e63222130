import re
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.media.decode import MediaError, frames
from stepline.media.read import timeline_of
from stepline.media.salvage import salvaged
from stepline.media.timeline import Timeline
from tests.media.clips import CFR_25, HEIGHT, KINDS, WIDTH, index_of, kind, make

av = pytest.importorskip("av")
imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
RATES = [1, 5, 8, 16, 29.97, 30, 60]


def of(times: list[Fraction], end: Fraction) -> Timeline:
    base = Fraction(1, 90000)
    pts = np.array([int(time / base) for time in times])
    return Timeline(pts, base, int(end / base), pts[:1])


@pytest.mark.parametrize("name", KINDS)
def test_packets_and_frames_give_the_same_timeline(name: str, tmp_path: Path) -> None:
    path, _, times = kind(tmp_path, name)
    packets, pictures = timeline_of(path), salvaged(path)
    assert [pts * packets.time_base for pts in packets.pts.tolist()] == times
    assert np.array_equal(packets.pts, pictures.pts)
    assert (packets.time_base, packets.end) == (pictures.time_base, pictures.end)
    assert set(packets.keys) < set(packets.pts)
    assert len(packets.keys) > 1 or name == "offset.ts"


@pytest.mark.parametrize("fps", RATES)
@pytest.mark.parametrize("name", KINDS)
def test_at_or_before_and_nearest_are_their_definitions(name: str, fps: float, tmp_path: Path) -> None:
    path, _, times = kind(tmp_path, name)
    timeline = timeline_of(path)
    end, rate = timeline.end * timeline.time_base, Fraction(str(fps))
    grid = [k / rate for k in range(10_000) if k / rate < end]
    before = [max(i for i, time in enumerate(times) if time <= at) for at in grid]
    nearest = [min(range(len(times)), key=lambda i: (abs(times[i] - at), i)) for at in grid]
    assert timeline.select("at_or_before", fps).tolist() == before
    assert timeline.select("nearest", fps).tolist() == nearest
    assert timeline.select("index_linspace", fps).tolist() == [
        int(index) for index in np.linspace(0, len(times) - 1, len(grid))
    ]


@pytest.mark.parametrize("fps", RATES)
@pytest.mark.parametrize("name", KINDS)
def test_ffmpeg_near_is_what_ffmpeg_puts_out(name: str, fps: float, tmp_path: Path) -> None:
    path, shows, _ = kind(tmp_path, name)
    selected = [shows[index] for index in timeline_of(path).select("ffmpeg_near", fps)]
    assert selected == ffmpeg(path, f"fps={fps}")


@pytest.mark.parametrize("name", KINDS)
def test_at_or_before_is_what_ffmpeg_puts_out_when_it_rounds_up(name: str, tmp_path: Path) -> None:
    path, shows, _ = kind(tmp_path, name)
    selected = [shows[index] for index in timeline_of(path).select("at_or_before", 5)]
    theirs = ffmpeg(path, "fps=5:round=up")
    assert selected[: len(theirs)] == theirs[: len(selected)]
    assert abs(len(selected) - len(theirs)) <= 1


def ffmpeg(path: Path, filters: str) -> list[int]:
    """Return the indices that the frames show that ffmpeg puts out."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", path, "-vf", filters]
    raw = subprocess.run([*command, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True, check=True).stdout
    return [index_of(image) for image in np.frombuffer(raw, np.uint8).reshape(-1, HEIGHT, WIDTH, 3)]


@given(st.lists(st.integers(1, 400), min_size=1, max_size=40), st.sampled_from(RATES))
def test_every_rule_selects_ascending_frames_that_exist(gaps: list[int], fps: float) -> None:
    ticks = np.cumsum([0, *gaps])
    timeline = of([Fraction(int(tick), 100) for tick in ticks[:-1]], Fraction(int(ticks[-1]), 100))
    for rule in ("at_or_before", "nearest", "ffmpeg_near", "index_linspace"):
        indices = timeline.select(rule, fps)
        assert np.all(np.diff(indices) >= 0)
        assert indices.size == 0 or (indices[0] >= 0 and indices[-1] < len(timeline.pts))


def test_of_two_equally_near_frames_the_earlier_is_nearest() -> None:
    timeline = of([Fraction(0), Fraction(4, 5), Fraction(6, 5)], Fraction(2))
    assert timeline.select("nearest", 1).tolist() == [0, 1]


def test_a_time_before_the_first_frame_takes_the_first() -> None:
    timeline = of([Fraction(3, 2), Fraction(2)], Fraction(3))
    assert timeline.select("at_or_before", 1).tolist() == [0, 0, 1]
    assert timeline.at_or_before([0.0, 1.6, 2.0, 9.0]).tolist() == [0, 0, 1, 1]


def test_an_unknown_rule_is_an_error_that_names_the_known() -> None:
    with pytest.raises(ValueError, match="'newest' is not one of at_or_before, nearest"):
        of([Fraction(0)], Fraction(1)).select("newest", 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", ["mkv", "mov", "flv", "m2ts", "3gp"])
def test_every_container_gives_its_frames(suffix: str, tmp_path: Path) -> None:
    path = make(tmp_path / f"a.{suffix}", CFR_25)
    assert timeline_of(path).pts.tolist() == [frame.pts for frame in frames(path)]
    assert timeline_of(path).t_s.tolist() == [float(time) for time in CFR_25]


def test_packets_without_times_are_timed_by_decoding(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mpg", CFR_25)
    with av.open(str(path)) as container:
        assert any(packet.pts is None for packet in container.demux(video=0) if packet.size)
    assert timeline_of(path).t_s.tolist() == [float(time) for time in CFR_25]
    assert not timeline_of(path).gaps


def test_what_is_no_video_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.mp4").write_text("no video")
    with pytest.raises(MediaError, match="cannot be decoded"):
        timeline_of(tmp_path / "text.mp4")


def test_a_truncated_video_has_a_gap_to_its_end(tmp_path: Path) -> None:
    times = [Fraction(i, 25) for i in range(250)]
    whole = make(tmp_path / "whole.mp4", times, options={"movflags": "faststart"}).read_bytes()
    (tmp_path / "half.mp4").write_bytes(whole[: len(whole) // 2])
    half = timeline_of(tmp_path / "half.mp4")
    *_, (start_s, end_s, reason) = half.gaps
    assert start_s <= half.end_s < end_s == pytest.approx(10, abs=0.1)
    assert re.match("truncated: |damaged|cannot be decoded|.*partial file", reason)
    assert half.truncated_s == end_s
