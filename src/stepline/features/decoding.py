"""Several videos decoded at once, each in a process of its own, with a bounded number of batches under way."""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event

from stepline.availability import Record
from stepline.features.frames import Message, Request, batches
from stepline.media.decode import MediaError
from stepline.media.process import Limits, killable
from stepline.stopping import kill_children

Job = tuple[Record, Sequence[Request]]


@dataclass(frozen=True)
class Ended:
    """A video was decoded to its end."""


Outcome = Message | MediaError | Ended


def decoded(
    jobs: Sequence[Job], limits: Limits, decoders: int, damaged: str = "partial"
) -> Generator[tuple[int, Outcome]]:
    """Yield what comes of each job, with its place in ``jobs``: its messages in order, then its end or the MediaError.

    damaged: ``partial`` or ``skip``, as in ``frames.batches``. Messages of ``decoders`` jobs are mixed. One waits,
    besides those that the decoders hold. Raises whatever else the decoding raises.
    """
    waiting: Queue[tuple[int, Outcome]] = Queue(maxsize=1)
    stopped = Event()

    def work(place: int) -> None:
        for outcome in _outcomes(*jobs[place], limits, damaged):
            while not stopped.is_set():
                try:
                    waiting.put((place, outcome), timeout=0.2)
                    break
                except Full:
                    continue
            if stopped.is_set():
                return

    with ThreadPoolExecutor(decoders) as threads:
        working = [threads.submit(work, place) for place in range(len(jobs))]
        try:
            yield from _until_done(waiting, len(jobs), lambda: [each.result() for each in working if each.done()])
        finally:
            stopped.set()
            threads.shutdown(wait=False, cancel_futures=True)
            while not all(each.done() for each in working):
                kill_children()
                wait(working, timeout=0.2)


def _outcomes(record: Record, requests: Sequence[Request], limits: Limits, damaged: str) -> Iterator[Outcome]:
    video = Path(record.path)
    try:
        if not video.is_file():
            raise MediaError(f"{video}: no such file")
        asked = video, requests, record.spans, damaged
        yield from killable(batches, *asked, limits=limits, duration_s=record.duration_s)
    except MediaError as error:
        yield error
    else:
        yield Ended()


def _until_done(
    waiting: "Queue[tuple[int, Outcome]]", jobs: int, check: Callable[[], object]
) -> Iterator[tuple[int, Outcome]]:
    """Yield what waits until all jobs have come to an end; ``check`` raises what a decoder raised."""
    while jobs:
        check()
        try:
            place, outcome = waiting.get(timeout=1)
        except Empty:
            continue
        jobs -= isinstance(outcome, MediaError | Ended)
        yield place, outcome
