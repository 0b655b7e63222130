"""The reader against what the frames show."""

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from stepline.media import decode
from stepline.media.decode import MediaError, frames
from stepline.media.frame import DecodedFrame
from stepline.media.read import pyav, timeline_of, with_timeline
from stepline.media.salvage import salvaged
from stepline.media.timeline import Timeline
from tests.media.clips import CFR_25, KINDS, copy_from, index_of, kind, make
from tests.processes import ordinary

av = pytest.importorskip("av")


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list of the pts of the packets that are decoded from here on."""
    packets: list[int] = []
    decode_packet = decode.Stream.decode

    def listed(self: decode.Stream, packet: "av.Packet", **after: int | None) -> Iterator[DecodedFrame]:
        packets.append(packet.pts)
        return decode_packet(self, packet, **after)

    monkeypatch.setattr(decode.Stream, "decode", listed)
    return packets


@pytest.mark.parametrize("fps", [1, 8, 16, 30])
@pytest.mark.parametrize("rule", ["at_or_before", "nearest", "ffmpeg_near", "index_linspace"])
@pytest.mark.parametrize("name", KINDS)
def test_the_frames_that_come_are_those_that_were_selected(name: str, rule: str, fps: int, tmp_path: Path) -> None:
    path, shows, _ = kind(tmp_path, name)
    timeline = timeline_of(path)
    indices = timeline.select(rule, fps)
    assert [index_of(frame.rgb()) for frame in pyav(path, timeline, indices)] == [shows[index] for index in indices]


@pytest.mark.parametrize("codec", ["libx264", "libx265", "mpeg4", "libvpx-vp9", "libsvtav1"])
def test_dropping_frames_changes_no_other(codec: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 96, 3), np.uint8)
    path = tmp_path / "a.mkv"
    with ordinary(), av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=30, options={"g": "40", "bf": "3", "preset": "8"} | SPEED[codec])
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        for i in range(90):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.roll(noise, i, (0, 1)), format="rgb24")))
        container.mux(stream.encode())
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    whole = [frame.rgb() for frame in frames(path)]
    timeline = timeline_of(path)
    for fps in (1, 4, 16):
        indices = timeline.select("at_or_before", fps)
        for index, frame in zip(indices, pyav(path, timeline, indices), strict=True):
            assert np.array_equal(frame.rgb(), whole[index])


SPEED = {
    "libx264": {"preset": "veryfast"},
    "libx265": {"preset": "ultrafast"},
    "mpeg4": {},
    "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8", "auto-alt-ref": "1", "lag-in-frames": "10"},
    "libsvtav1": {"preset": "12"},
}


def test_real_footage_is_the_same_with_and_without_dropping(real_data: Path) -> None:
    path = real_data / "spacewalk/clips/animation3.mp4"
    timeline = timeline_of(path)
    indices = timeline.select("at_or_before", 8)
    wanted = set(timeline.pts[indices].tolist())
    dropping = list(pyav(path, timeline, indices))
    whole = [frame for frame in frames(path) if frame.pts in wanted]
    assert len(dropping) == len(whole) == len(indices)
    assert all(np.array_equal(a.rgb(398, 224), b.rgb(398, 224)) for a, b in zip(dropping, whole, strict=True))


class TestAGap:
    TIMES = tuple(Fraction(i, 25) for i in range(1500))
    WANTED = np.array([3, 4, 900, 901, 1400])

    def test_is_jumped(self, tmp_path: Path, fed: list[int]) -> None:
        path = make(tmp_path / "a.mp4", self.TIMES)
        timeline = timeline_of(path)
        assert [index_of(f.rgb()) for f in pyav(path, timeline, self.WANTED)] == self.WANTED.tolist()
        assert len(fed) < 150
        fed.clear()
        assert [index_of(f.rgb()) for f in pyav(path, timeline, self.WANTED[3:])] == [901, 1400]
        assert len(fed) < 100

    def test_is_jumped_behind_an_edit_list_too(self, tmp_path: Path, fed: list[int]) -> None:
        path = copy_from(make(tmp_path / "a.mp4", self.TIMES), tmp_path / "cut.mp4", 1.1)
        timeline = timeline_of(path)
        first = index_of(next(iter(pyav(path, timeline, np.array([0])))).rgb())
        fed.clear()
        shown = [index_of(frame.rgb()) for frame in pyav(path, timeline, self.WANTED)]
        assert shown == (self.WANTED + first).tolist()
        assert len(fed) < 150

    def test_is_read_where_the_container_cannot_be_entered(self, tmp_path: Path, fed: list[int]) -> None:
        path = make(tmp_path / "a.ts", self.TIMES)
        timeline = salvaged(path)
        keys = Timeline(timeline.pts, timeline.time_base, timeline.end, timeline.pts[::7])
        fed.clear()
        assert [index_of(f.rgb()) for f in pyav(path, keys, self.WANTED)] == self.WANTED.tolist()
        assert len(fed) > 1400


def test_a_repeated_index_repeats_its_frame(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", CFR_25)
    indices = np.array([5, 5, 5, 6, 70, 70])
    assert [index_of(frame.rgb()) for frame in pyav(path, timeline_of(path), indices)] == indices.tolist()


def test_a_picture_is_scaled(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", CFR_25)
    [frame] = pyav(path, timeline_of(path), np.array([9]))
    assert frame.rgb(32, 8).shape == (8, 32, 3)
    assert frame.rgb().shape == (64, 320, 3)


def test_a_frame_that_does_not_come_out_is_never_replaced_by_another(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", CFR_25)
    true = timeline_of(path)
    false = Timeline(np.insert(true.pts, 10, true.pts[10] - 1), true.time_base, true.end, true.keys)
    with pytest.raises(match=r"the frame at 0\.400 s cannot be decoded"):
        list(pyav(path, false, np.arange(20)))
    tried = []

    def make_of(timeline: Timeline) -> list[int]:
        tried.append(len(timeline.pts))
        used = false if len(tried) == 1 else timeline
        return [index_of(frame.rgb()) for frame in pyav(path, used, np.arange(20))]

    assert with_timeline(path, make_of) == list(range(20))
    assert tried == [75, 75]


def test_a_truncated_video_is_an_error(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", [Fraction(i, 25) for i in range(250)], options={"movflags": "faststart"})
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(MediaError):
        with_timeline(path, lambda timeline: list(pyav(path, timeline, timeline.select("at_or_before", 5))))
