"""The features stage: from a shard's videos to stores, decoding each video once for all specs."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stepline.availability import Record, read_availability, write_manifest
from stepline.config import Config
from stepline.errors import SteplineError
from stepline.features.cache import Clips, FeatureCache
from stepline.features.decoding import Ended, Job, Left, OfMedia, Outcome, decoded, decoders
from stepline.features.encoder import Encoder, Encoders
from stepline.features.frames import DESCRIBED, Batch, Begun, Refused, Request
from stepline.features.meter import Meter
from stepline.features.mixed import Mixed
from stepline.media.decode import MediaError
from stepline.media.prepare import Beside, Media
from stepline.media.process import Decoder, Limits
from stepline.paths import Location, computing
from stepline.spec import ClipSpec, FrameSpec
from stepline.stopping import Stopped, whole_step
from stepline.turns import all_videos

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Work:
    """The features of a shard for one spec.

    store: their location. files: weights by name. listed: clips by video. late: a line for each video of which listed
    clips were cut or left out, because they lie after its end.
    """

    spec: FrameSpec
    store: Location
    files: Mapping[str, Path] = field(default_factory=dict)
    listed: Mapping[str, Clips] = field(default_factory=dict)
    late: Mapping[str, str] = field(default_factory=dict)


def extract(
    availability: Path,
    works: Sequence[Work],
    manifest: Path,
    *,
    lock: Path,
    limits: Limits,
    damaged: str = "partial",
    options: Config,
    media: Media | None = None,
) -> None:
    """Write the store of the first of ``works`` for a shard's present videos, and the status of each to ``manifest``.

    The first work is the job's own. Missing rows of the other works, of the same shard, are computed in the same pass
    and staged, so that their jobs find them complete. ``lock`` serialises the jobs of a shard (see ``turns``). The job
    that holds it reserves a GPU, if a network must run. A video that cannot be read within the limits is ``failed``
    with a reason. A damaged video has its readable rows and its ``gaps``; if ``damaged`` is ``skip``, it is ``failed``.
    Existing rows of a store are kept if file, spans and clips are the same, and rows that were staged before a kill are
    used. options: the configuration's ``features``. Raises the error of the first work's network; errors of other
    networks are logged, and raised by their own jobs. Raises Stopped, after staging the rows so far, if the process is
    asked to end. If the process is killed, any of the works may be the cause, as by its memory: each of them is then
    computed by its own job alone, until that job has ended.
    """
    records = read_availability(availability)
    present = [record for record in records.values() if record.status == "present"]
    with all_videos(lock):
        filling = _Filling(works, options, damaged, media)
        filling.run(present, limits)
        for number, error in filling.errors.items():
            if number == 0:
                raise error
            log.warning("%s: %s", works[number].spec.name, error)
        made = filling.caches[0].commit(present)
    for video in made.keys() & works[0].late.keys():
        made[video]["reason"] = "; ".join(filter(None, (made[video]["reason"], works[0].late[video])))
    absent = {r.video: {"status": r.status, "reason": r.reason} for r in records.values() if r.status != "present"}
    write_manifest(manifest, absent | made, spec=works[0].spec.record())


class _Filling:
    """The computation of rows that are missing in caches. errors: the errors of failed works, by their index."""

    def __init__(self, works: Sequence[Work], options: Config, damaged: str, media: Media | None) -> None:
        self.works, self.options, self.damaged, self.media = works, options, damaged, media
        self.caches = [FeatureCache(work.spec, work.store, work.listed, damaged) for work in works]
        self.errors: dict[int, Exception] = {}

    def run(self, present: Sequence[Record], limits: Limits) -> None:
        marks = [computing(work.store) for work in self.works]
        killed = {n for n, mark in enumerate(marks) if mark.exists()}
        ours = [0] if 0 in killed else [n for n in range(len(marks)) if n not in killed]
        missing = [[n for n in ours if not self.caches[n].has(record)] for record in present]
        numbers = sorted({n for each in missing for n in each})
        n_decoders = min(self.options["decoders"], sum(map(bool, missing)))
        with (
            decoders(limits, n_decoders) as processes,
            _marked([marks[n] for n in {0, *numbers}]),
        ):
            self._load(numbers)
            if numbers:
                together = " in one pass; if it is killed, the next run computes each alone" if len(numbers) > 1 else ""
                log.info("computing %s%s", ", ".join(self.works[n].spec.name for n in numbers), together)
            can = [[n for n in numbers if n not in self.errors] for numbers in missing]
            self._fill([(record, numbers) for record, numbers in zip(present, can, strict=True) if numbers], processes)

    def _fill(self, missing: Sequence[tuple[Record, Sequence[int]]], processes: Sequence[Decoder]) -> None:
        jobs, of = [], []
        for record, numbers in missing:
            requests = [self._request(record, n) for n in numbers]
            jobs.append(Job(record, requests, self._beside(record, requests)))
            of.append(numbers)
        streams = decoded(jobs, processes, self.damaged)
        reading = "media" if any(job.media for job in jobs) else "decode"
        durations_s = [job.record.duration_s for job in jobs]
        with closing(streams), Meter(durations_s, reading=reading) as self.meter:
            try:
                for place, message in streams:
                    with whole_step():
                        self._take(jobs[place], of[place], message)
                with whole_step():
                    self._rest()
            except Stopped:
                kept = [f"{cache.spec.name}: {line}" for cache in self.caches for line in cache.keep()]
                raise Stopped("; ".join(["finished videos are kept", *kept])) from None
            finally:
                for job in jobs:
                    if job.media is not None:
                        job.media.leave()

    def _beside(self, record: Record, requests: Sequence[Request]) -> Beside | None:
        if self.media is None or record.spans or any(request.spec.reader != "pyav" for request in requests):
            return None
        there = Path(record.path).is_file() and self.media.known(record) is None
        return Beside(self.media, record) if there else None

    def _load(self, numbers: Sequence[int]) -> None:
        self.networks: dict[int, Encoder] = {}
        self.mixed: dict[int, Mixed] = {}
        encoders = Encoders(self.options)
        for n in numbers:
            work = self.works[n]
            if not isinstance(work.spec, ClipSpec):
                continue
            try:
                self.networks[n] = encoders.load(work.spec, work.files)
                if work.spec.batches == "mixed":
                    self.mixed[n] = Mixed(self.networks[n], self.caches[n])
            except (SteplineError, ModuleNotFoundError, OSError) as error:
                self.errors[n] = error

    def _request(self, record: Record, n: int) -> Request:
        cache = self.caches[n]
        return Request(
            spec=self.works[n].spec,
            batch_size=self.networks[n].batch_size if n in self.networks else DESCRIBED,
            done=cache.done(record),
            listed=cache.clips(record.video),
            scratch=cache.folder.parent,
        )

    def _take(self, job: Job, numbers: Sequence[int], message: Outcome) -> None:
        record, media = job.record, job.media
        match message:
            case OfMedia(item) if media is not None:
                media.take(item)
            case Left() if media is not None:
                media.leave()
                for n in set(numbers) - self.errors.keys():
                    self.caches[n].restart(record)
            case MediaError():
                for n in numbers:
                    self.caches[n].fail(record, str(message))
            case Ended():
                if media is not None:
                    media.end()
                for n in set(numbers) - self.errors.keys():
                    self.caches[n].finish(record)
                self.meter.ended()
            case Begun() | Batch() | Refused() if (n := numbers[message.of]) not in self.errors:
                self._of_features(record, n, message, len(numbers))

    def _of_features(self, record: Record, n: int, message: Begun | Batch | Refused, sides: int) -> None:
        if isinstance(message, Refused):
            self.caches[n].fail(record, message.reason)
        elif isinstance(message, Begun):
            self.caches[n].begin(record, message)
        else:
            self._batch(record, n, message, sides)

    def _batch(self, record: Record, n: int, batch: Batch, sides: int) -> None:
        try:
            if n in self.mixed:
                with self.meter.timed("model"):
                    total = self.mixed[n].add(record, batch.clips, batch.shown)
            else:
                with self.meter.timed("model"):
                    rows = self.networks[n](batch.clips, batch.shown) if n in self.networks else batch.clips
                with self.meter.timed("write"):
                    total = self.caches[n].add(record, rows)
        except SteplineError as error:
            self.errors[n] = error
            return
        done_s = record.duration_s * len(batch.clips) / total
        network = f"{self.works[n].spec.name}.{self.networks[n].runs_on}" if n in self.networks else ""
        times = {"decode_s": batch.decode_s, "picture_s": batch.picture_s}
        self.meter.add(done_s / sides, network=network, video_s=done_s, **times)

    def _rest(self) -> None:
        for n in self.mixed.keys() - self.errors.keys():
            try:
                self.mixed[n].rest()
            except SteplineError as error:
                self.errors[n] = error


@contextmanager
def _marked(marks: Sequence[Path]) -> Iterator[None]:
    """Keep files at ``marks`` during the block, which only a kill leaves behind. An error leaves those of before."""
    passing = [mark for mark in marks if not mark.exists()]
    for mark in marks:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text("alone" if len(marks) == 1 else "together", encoding="utf-8")
    try:
        yield
        passing = [*marks]
    finally:
        for mark in passing:
            mark.unlink(missing_ok=True)
