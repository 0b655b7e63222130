"""decord reads what it reads exactly, and nothing else."""

import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from stepline.media.decode import MediaError
from stepline.media.process import Limits, killable
from stepline.media.read import pyav, timeline_of
from stepline.media.timeline import scan
from tests.media.clips import CFR_25, KINDS, index_of, kind, make
from tests.media.test_decode import flags, two_streams

pytest.importorskip("decord")
from stepline.media.decord import decord

REFUSED = {
    "variable.mp4": "its frame rate varies",
    "cut.mp4": "an edit list cuts its start",
    "offset.ts": "the container is mpegts, not mp4",
}


@pytest.mark.parametrize("fps", [1, 16, 30])
@pytest.mark.parametrize("name", KINDS)
def test_it_gives_the_right_frames_or_none(name: str, fps: int, tmp_path: Path) -> None:
    path, shows, _ = kind(tmp_path, name)
    timeline = timeline_of(path)
    indices = timeline.select("at_or_before", fps)
    if name in REFUSED:
        with pytest.raises(MediaError, match=f"{REFUSED[name]}.: set media.reader to pyav"):
            next(decord(path, timeline, indices, turned=True))
    else:
        assert [index_of(frame.rgb()) for frame in decord(path, timeline, indices, turned=True)] == [
            shows[i] for i in indices
        ]


def test_its_pictures_are_those_of_pyav(real_data: Path) -> None:
    path = real_data / "spacewalk/clips/spacewalk5.mp4"
    timeline = scan(path)
    indices = timeline.select("at_or_before", 1)
    for ours, theirs in zip(pyav(path, timeline, indices), decord(path, timeline, indices, turned=True), strict=True):
        assert np.abs(ours.rgb().astype(int) - theirs.rgb()).max() <= 1
        assert theirs.rgb(398, 224).shape == (224, 398, 3)


def test_of_several_streams_it_reads_that_of_pyav_or_none(tmp_path: Path) -> None:
    path = two_streams(tmp_path / "larger.mp4", *flags(False, True))
    [ours], [theirs] = (read(path, scan(path), np.array([0]), turned=True) for read in (pyav, decord))
    assert np.abs(ours.rgb().astype(int) - theirs.rgb()).max() <= 1
    smaller = two_streams(tmp_path / "smaller.mp4", *flags(True, False))
    alike = two_streams(tmp_path / "alike.mp4", *flags(False, True), "-s", "64x64")
    for path, reason in ((smaller, "another of its video streams"), (alike, "video streams have the same size")):
        with pytest.raises(MediaError, match=reason):
            next(decord(path, scan(path), np.array([0]), turned=True))


def test_a_count_that_differs_is_refused(tmp_path: Path) -> None:
    timeline = scan(make(tmp_path / "long.mp4", CFR_25))
    path = make(tmp_path / "a.mp4", CFR_25[:50])
    with pytest.raises(MediaError, match="decord's frames differ from the container's"):
        next(decord(path, timeline, np.array([60]), turned=True))


def test_what_it_cannot_read_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", [Fraction(i, 25) for i in range(250)], options={"movflags": "faststart"})
    timeline = scan(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(MediaError, match="^decord: .*Error.*$") as error:
        list(decord(path, timeline, np.arange(250), turned=True))
    assert "[" not in str(error.value)
    assert "\n" not in str(error.value)


def read_slowly(path: Path) -> Iterator[int]:
    timeline = scan(path)
    for frame in decord(path, timeline, np.arange(len(timeline.pts)), turned=True):
        yield frame.rgb().size
        time.sleep(0.1)


@pytest.mark.slow
def test_its_read_ahead_is_refused_before_memory_is_full(tmp_path: Path) -> None:
    grey = np.full((720, 1280, 3), 90, np.uint8)
    path = make(tmp_path / "a.mp4", [Fraction(i, 30) for i in range(200)], picture=lambda i: grey)
    limits = Limits(memory_mb=300, least_s=60, s_per_video_s=4)
    with pytest.raises(MediaError, match="decord filled [0-9]+ MB by reading ahead: set media.reader to pyav"):
        list(killable(read_slowly, path, limits=limits, duration_s=7))
