"""The pictures that wait for their rows: in memory and on disk."""

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("av")
pytest.importorskip("cv2")

from stepline.features import frames
from stepline.features.frames import Batch, Begun, FrameTap, Request, _Held, batches, split
from stepline.media.decode import DamagedError, MediaError
from stepline.media.decode import frames as decoded
from stepline.media.frame import DecodedFrame
from stepline.media.read import Reader, pyav
from stepline.media.timeline import Timeline, scan
from stepline.spec import Orientation, ReaderName
from tests.features import toy
from tests.media.clips import CFR_30, make

LISTED = replace(toy.SPEC, placement="ends")
LONG = [(i / 10, i / 10 + 2.5) for i in range(12)] + [(0.0, 4.0), (1.0, 1.2)]


def messages(video: Path, *requests: Request) -> list[Any]:
    """Return what comes, without what it took."""
    return plain(batches(video, requests, ()))


def plain(sent: Iterable[Any]) -> list[Any]:
    return [
        (message.of, message.clips.tobytes(), message.shown.tolist())
        if isinstance(message, Batch)
        else (message.of, message.order.tolist())
        for message in sent
        if isinstance(message, Batch | Begun)
    ]


@pytest.mark.parametrize("held", [0, 5 * 32 * 32 * 3, 17 * 32 * 32 * 3])
def test_rows_do_not_depend_on_where_pictures_wait(held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    video = make(tmp_path / "a.mp4", CFR_30)
    requests = [
        Request(spec=LISTED, batch_size=3, listed=LONG, scratch=tmp_path / "new/scratch"),
        Request(spec=replace(LISTED, steps=(("exact", 8, 6, "bilinear"),)), batch_size=2, listed=LONG, done=4),
        Request(spec=toy.SPEC, batch_size=4),
    ]
    in_memory = messages(video, *requests)
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr(frames, "HELD", held)
    assert messages(video, *requests) == in_memory
    assert (tmp_path / "new/scratch").is_dir()
    assert not list((tmp_path / "new/scratch").iterdir())


def test_rows_are_split_by_their_number_alone() -> None:
    assert split(10, 8) == [8, 2]
    assert split(23, 8) == [8, 8, 4, 2, 1]
    assert split(200, 64) == [64, 64, 64, 8]
    assert split(7, 5) == [4, 2, 1]
    assert split(0, 8) == []


@given(st.integers(0, 400), st.integers(1, 80))
def test_rows_that_are_left_are_split_as_those_of_a_whole_run(rows: int, most: int) -> None:
    sizes = split(rows, most)
    assert sum(sizes) == rows
    assert {size & (size - 1) for size in sizes} <= {0}
    for number in range(len(sizes)):
        assert split(rows - sum(sizes[:number]), most) == sizes[number:]


def test_batches_go_on_after_those_that_are_done(tmp_path: Path) -> None:
    video = make(tmp_path / "a.mp4", CFR_30)
    whole = messages(video, Request(spec=LISTED, batch_size=8, listed=LONG))
    assert whole[0][1] == sorted(range(len(LONG)), key=lambda i: LONG[i][1])
    assert [len(shown) for _, _, shown in whole[1:]] == [8, 4, 2]
    for batch, done in enumerate((8, 12, 14), 2):
        assert messages(video, Request(spec=LISTED, batch_size=8, listed=LONG, done=done))[1:] == whole[batch:]


def test_what_lies_after_the_end_is_zero_and_not_shown(tmp_path: Path) -> None:
    video = make(tmp_path / "a.mp4", CFR_30[:36])  # 1.2 s: five times at 4 fps
    begun, *sent = batches(video, [Request(spec=toy.SPEC, batch_size=1)], ())
    assert begun.order.tolist() == [0, 1]
    assert [batch.shown.tolist() for batch in sent] == [[[True] * 4], [[True, False, False, False]]]
    assert [bool(clip.any()) for batch in sent for clip in batch.clips[0]][1:] == [True] * 4 + [False] * 3


def test_a_tap_sends_what_a_pass_alone_sends_and_knows_a_frame_that_does_not_come(tmp_path: Path) -> None:
    video = make(tmp_path / "a.mp4", CFR_30)
    requests = [Request(spec=toy.SPEC, batch_size=4), Request(spec=LISTED, batch_size=2, listed=LONG[:3])]
    sent = list(decoded(video))

    def tapped(taken: Sequence[DecodedFrame]) -> Iterator[Any]:
        tap = FrameTap(requests)
        yield from tap.begin(video)
        for frame in taken:
            yield from tap.take(frame)
        yield from tap.end()

    assert plain(tapped(sent)) == messages(video, *requests)
    with pytest.raises(DamagedError, match=r"^the frame before 0\.033 s is missing"):
        list(tapped(sent[1:]))
    with pytest.raises(DamagedError, match="^1 frames are missing"):
        list(tapped(sent[:110]))


def test_a_salvaged_video_is_refused_for_its_gaps_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    video, asked = make(tmp_path / "a.mp4", CFR_30), Request(spec=toy.SPEC, batch_size=4)
    timeline, whole = scan(video), messages(video, asked)

    def damaged(path: Path) -> Timeline:
        raise DamagedError("no times")

    monkeypatch.setattr(frames, "scan", damaged)
    monkeypatch.setattr(frames, "salvaged", lambda path: timeline)
    assert plain(batches(video, [asked], (), "skip")) == whole
    monkeypatch.setattr(frames, "salvaged", lambda path: replace(timeline, gaps=((4.0, 9.0, "truncated"),)))
    with pytest.raises(MediaError, match=r"^4\.000 to 9\.000 s: truncated"):
        list(batches(video, [asked], (), "skip"))


@pytest.mark.parametrize("orientation", ["upright", "stored"])
@pytest.mark.parametrize("name", ["pyav", "decord"])
def test_the_reader_and_the_orientation_are_those_of_the_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: ReaderName, orientation: Orientation
) -> None:
    asked = []

    def noting(name: str) -> Reader:
        return lambda *where, turned: asked.append((name, turned)) or pyav(*where, turned=turned)

    monkeypatch.setattr(frames, "READERS", {name: noting(name) for name in frames.READERS})
    spec = replace(toy.SPEC, reader=name, orientation=orientation)
    messages(make(tmp_path / "a.mp4", CFR_30), Request(spec=spec, batch_size=4))
    assert asked == [(name, orientation == "upright")]


def test_the_limit_is_shared_by_all_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most: list[int] = []

    class Noted(_Held):
        def __init__(self, allowed: int, folder: Path | None) -> None:
            most.append(allowed)
            super().__init__(allowed, folder)

    monkeypatch.setattr(frames, "_Held", Noted)
    messages(make(tmp_path / "a.mp4", CFR_30), Request(spec=toy.SPEC, batch_size=4), Request(spec=LISTED, batch_size=2))
    assert most == [frames.HELD // 2]


@given(
    st.lists(st.integers(0, 11), max_size=60),
    st.integers(0, 4 * 6),
)
def test_what_is_held_is_what_was_put_and_places_are_used_again(numbers: list[int], most: int) -> None:
    held, there, highest, last = _Held(most, None), dict[int, np.ndarray](), 0, 0
    for time, number in enumerate(numbers):
        if number in there:
            into = np.zeros((2, 3), np.uint8)
            held.copy(number, into)
            assert np.array_equal(into, there.pop(number))
            held.drop(number)
        else:
            there[number] = np.full((2, 3), time, np.uint8)
            held.put(number, there[number])
        on_disk = len(there) - len(held._arrays)
        highest = max(highest, on_disk)
        assert len(held._arrays) * 6 <= most
        if on_disk:
            held._file.flush()
            last = held._file.seek(0, 2)
            assert last <= highest * 6
    for number, array in there.items():
        into = np.zeros((2, 3), np.uint8)
        held.copy(number, into)
        assert np.array_equal(into, array)


def test_the_worker_imports_neither_torch_nor_the_configuration() -> None:
    heavy = {"jsonschema", "pyarrow", "scipy", "torch", "yaml"}
    code = f"import sys, stepline.features.frames; sys.exit(bool({heavy} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", code], check=True)
