"""Several videos decoded at once: order, ends, errors, and what a consumer that stops leaves behind."""

import re
import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from fractions import Fraction
from multiprocessing import active_children
from pathlib import Path
from threading import active_count
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("av")
pytest.importorskip("cv2")

from stepline.availability import Record
from stepline.backbones.histogram import HistogramSpec
from stepline.features import decoding
from stepline.features.decoding import Ended, Job, Left
from stepline.features.frames import Batch, Begun, Refused, Request, batches
from stepline.media.decode import DamagedError, MediaError
from stepline.media.prepare import Beside
from stepline.media.process import Decoder, Limits
from tests.features import toy
from tests.features.test_extract import present
from tests.media.clips import CFR_25, LIMITS, VFR, make

ONE, TWO = Request(spec=HistogramSpec(), batch_size=3), Request(spec=toy.SPEC, batch_size=2)


def job(path: Path, *requests: Request) -> Job:
    return Job(present(path), requests or (ONE,))


def decoded(jobs: list[Job], limits: Limits, n: int) -> Generator[tuple[int, Any]]:
    """Decode with n processes of their own."""
    with decoding.decoders(limits, n) as processes:
        yield from decoding.decoded(jobs, processes)


def plain(message: Any) -> Any:
    """Return what a message says, without what it took."""
    if isinstance(message, Batch):
        return message.of, message.clips.tobytes(), message.shown.tolist()
    if isinstance(message, Begun):
        return message.of, message.order.tolist(), message.k.tolist(), message.span.tolist()
    return message


def test_a_video_s_messages_keep_their_order_beside_others(tmp_path: Path) -> None:
    paths = [make(tmp_path / f"{i}.mp4", times) for i, times in enumerate((CFR_25, VFR, CFR_25[:30], CFR_25[:9]))]
    came: dict[int, list[Any]] = {place: [] for place in range(len(paths))}
    for place, message in decoded([job(path, ONE, TWO) for path in paths], LIMITS, 3):
        assert Ended() not in came[place]
        came[place].append(plain(message))
    for place, path in enumerate(paths):
        assert came[place] == [*map(plain, batches(path, (ONE, TWO), ())), Ended()]
        assert len(came[place]) > 3


def test_a_video_that_cannot_be_read_ends_with_its_reason_and_the_others_come(tmp_path: Path) -> None:
    (tmp_path / "text.mp4").write_text("no video")
    whole = make(tmp_path / "whole.mp4", CFR_25)
    absent = Record(video="absent", status="present", path=str(tmp_path / "absent.mp4"))
    jobs = [job(tmp_path / "text.mp4"), Job(absent, [ONE]), job(whole)]
    last = {}
    for place, message in decoded(jobs, LIMITS, 2):
        assert not isinstance(last.get(place), MediaError | Ended)
        last[place] = message
    assert [type(last[place]) for place in range(3)] == [MediaError, MediaError, Ended]
    assert str(last[1]) == f"{tmp_path}/absent.mp4: no such file"


def test_a_request_that_cannot_be_met_is_refused_alone(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", CFR_25)
    impossible = replace(TWO, spec=replace(toy.SPEC, steps=(("centre_crop", 4096, "round"),)))
    messages = [message for _, message in decoded([job(path, impossible, ONE)], LIMITS, 1)]
    [refused] = [message for message in messages if isinstance(message, Refused)]
    assert refused.of == 0
    assert "('centre_crop', 4096, 'round') is not applicable" in refused.reason
    assert sum(len(message.clips) for message in messages if isinstance(message, Batch)) == 15


def test_a_fault_of_the_decoder_is_an_error_of_its_video(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", CFR_25[:5])
    faulty = replace(ONE, spec=HistogramSpec(reader="none"))  # type: ignore[arg-type]
    ends = dict(decoded([job(path, faulty), job(path)], LIMITS, 2))
    assert re.fullmatch(r"the decoder failed: KeyError in frames\.py, line \d+: 'none'", str(ends[0]))
    assert ends[1] == Ended()


def test_a_job_decodes_for_its_video_s_length_its_spans_and_what_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def noted(self: Decoder, work: Any, video: Path, *rest: Any, **limits: Any) -> Iterator[Any]:
        asked.append((work, video, *rest, limits))
        yield from ()

    monkeypatch.setattr(Decoder, "__call__", noted)
    (tmp_path / "a.mp4").touch()
    record = replace(present(tmp_path / "a.mp4"), duration_s=7.0, spans=[[1.0, 2.0]])
    assert list(decoding.decoded([Job(record, [ONE])], [Decoder(LIMITS)], "skip")) == [(0, Ended())]
    assert asked == [(batches, tmp_path / "a.mp4", [ONE], [[1.0, 2.0]], "skip", {"duration_s": 7.0})]


def test_after_damage_all_rows_are_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "a.mp4", CFR_25)

    def damaged(*_: Any) -> Iterator[Any]:
        raise DamagedError("a frame is missing")
        yield

    monkeypatch.setattr(decoding, "_with_media", damaged)
    some = Job(present(path), [replace(ONE, done=3)], cast(Beside, object()))
    with decoding.decoders(LIMITS, 1) as processes:
        said = [message for _, message in decoding.decoded([some], processes)]
    assert said[0] == Left()
    assert sum(len(message.clips) for message in said if isinstance(message, Batch)) == 15


def test_a_consumer_that_stops_leaves_no_process_behind(tmp_path: Path) -> None:
    paths = [make(tmp_path / f"{name}.mp4", [Fraction(i, 25) for i in range(500)]) for name in "abc"]
    threads, others = active_count(), {*active_children()}
    stream = decoded([job(path) for path in paths], LIMITS, 2)
    next(stream)
    assert len({*active_children()} - others) == 2
    stream.close()
    assert {*active_children()} <= others
    assert active_count() == threads


def test_decoders_wait_for_a_slow_consumer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = []

    def counted(*arguments: Any, **limits: Any) -> Iterator[np.ndarray]:
        for i in range(100):
            made.append(i)
            yield np.zeros(1)

    monkeypatch.setattr(Decoder, "__call__", counted)
    (tmp_path / "a.mp4").touch()
    stream = decoded([job(tmp_path / "a.mp4")] * 3, LIMITS, 2)
    next(stream)
    time.sleep(0.5)
    assert len(made) == 1 + 1 + 2
    stream.close()


def silent(video: Path, requests: list[Request], spans: Any, damaged: str) -> Iterator[int]:
    yield 0
    time.sleep(600)


def test_a_decoder_that_says_nothing_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "batches", silent)
    messages = decoded([job(make(tmp_path / f"{i}.mp4", CFR_25[:5])) for i in range(3)], LIMITS, 2)
    assert next(messages)[1] == 0
    start = time.monotonic()
    messages.close()
    assert time.monotonic() - start < LIMITS.least_s / 4
    assert not active_children()
