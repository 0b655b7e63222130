"""Parallel decoding of several videos in several processes, with a bounded number of batches in memory."""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from queue import Empty, Full, Queue, SimpleQueue
from threading import Event
from typing import Any

from stepline.availability import Record
from stepline.features.frames import Batch, Begun, FrameTap, Message, Refused, Request, batches
from stepline.media.decode import DamagedError, MediaError
from stepline.media.frame import DecodedFrame
from stepline.media.one_pass import Tap, decode
from stepline.media.prepare import Beside
from stepline.media.process import Decoder, Limits
from stepline.stopping import kill_children


@dataclass(frozen=True)
class Job:
    """The requests for a video. media: its media, if the same pass produces them."""

    record: Record
    requests: Sequence[Request]
    media: Beside | None = None


@dataclass(frozen=True)
class OfMedia:
    """An item for ``Job.media``."""

    item: Any


@dataclass(frozen=True)
class Left:
    """The video is damaged: this pass produces no media, and another pass computes all rows again."""


@dataclass(frozen=True)
class Ended:
    """A video was decoded to its end."""


Outcome = Message | OfMedia | Left | MediaError | Ended


@contextmanager
def decoders(limits: Limits, n: int) -> Iterator[list[Decoder]]:
    """Start n processes, which end with the block. It is cheapest before a network is loaded: see ``Decoder.start``."""
    with ExitStack() as stack:
        made = [stack.enter_context(Decoder(limits)) for _ in range(n)]
        for each in made:
            each.start()
        yield made


def decoded(
    jobs: Sequence[Job], processes: Sequence[Decoder], damaged: str = "partial"
) -> Generator[tuple[int, Outcome]]:
    """Yield the outcomes of each job, with its index in ``jobs``: its messages in order, then its end or a MediaError.

    damaged: ``partial`` or ``skip``, as in ``frames.batches``. Messages of up to ``len(processes)`` jobs are
    interleaved. One message waits here, in addition to those that the processes hold. Raises any other error of the
    decoding.
    """
    waiting: Queue[tuple[int, Outcome]] = Queue(maxsize=1)
    stopped = Event()
    free: SimpleQueue[Decoder] = SimpleQueue()
    for process in processes:
        free.put(process)

    def work(place: int) -> None:
        decoder = free.get()
        for outcome in _outcomes(jobs[place], decoder, damaged):
            while not stopped.is_set():
                try:
                    waiting.put((place, outcome), timeout=0.2)
                    break
                except Full:
                    continue
            if stopped.is_set():
                return
        free.put(decoder)

    with ThreadPoolExecutor(len(processes) or 1) as threads:
        working = [threads.submit(work, place) for place in range(len(jobs))]
        try:
            yield from _until_done(waiting, len(jobs), lambda: [each.result() for each in working if each.done()])
        finally:
            stopped.set()
            threads.shutdown(wait=False, cancel_futures=True)
            while not all(each.done() for each in working):
                kill_children()
                wait(working, timeout=0.2)


def _outcomes(job: Job, decoder: Decoder, damaged: str) -> Iterator[Outcome]:
    record, requests, video = job.record, job.requests, Path(job.record.path)
    try:
        if not video.is_file():
            raise MediaError(f"{video}: no such file")
        if job.media is not None:
            try:
                yield from _with_media(job, job.media, decoder)
            except DamagedError:
                yield Left()
                requests = [replace(request, done=0) for request in requests]
            else:
                yield Ended()
                return
        yield from decoder(batches, video, requests, record.spans, damaged, duration_s=record.duration_s)
    except MediaError as error:
        yield error
    else:
        yield Ended()


def _with_media(job: Job, media: Beside, decoder: Decoder) -> Iterator[Outcome]:
    taps = Taps([FrameTap(job.requests), *([media.tap] if media.tap else [])])
    asked = Path(job.record.path), media.begin(), (), media.turned, media.track, taps
    for item in decoder(decode, *asked, duration_s=job.record.duration_s):
        yield item if isinstance(item, Begun | Batch | Refused) else OfMedia(item)


@dataclass(frozen=True)
class Taps:
    """Several taps as one."""

    taps: Sequence[Tap]

    def begin(self, path: Path) -> Iterator[Any]:
        """Begin all taps."""
        return chain.from_iterable(tap.begin(path) for tap in self.taps)

    def take(self, frame: DecodedFrame) -> Iterator[Any]:
        """Give the frame to all taps."""
        return chain.from_iterable(tap.take(frame) for tap in self.taps)

    def end(self) -> Iterator[Any]:
        """End all taps."""
        return chain.from_iterable(tap.end() for tap in self.taps)


def _until_done(
    waiting: "Queue[tuple[int, Outcome]]", jobs: int, check: Callable[[], object]
) -> Iterator[tuple[int, Outcome]]:
    """Yield the outcomes until all jobs have ended; ``check`` raises the error of a decoder."""
    while jobs:
        check()
        try:
            place, outcome = waiting.get(timeout=1)
        except Empty:
            continue
        jobs -= isinstance(outcome, MediaError | Ended)
        yield place, outcome
