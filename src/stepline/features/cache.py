"""The features of a shard for one spec: the store, staged parts, and failures of this run."""

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepline.aside import sweep
from stepline.availability import Record
from stepline.errors import StoreError
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.frames import Begun
from stepline.features.store import Damaged, Part, read_gaps
from stepline.io import read_arrays, read_json, write_arrays, write_json
from stepline.media.spans import Spans
from stepline.media.timeline import Gap, described
from stepline.paths import Location, Remote
from stepline.spec import ClipSpec, FrameSpec, digest

Clips = Sequence[tuple[float, float]]
CHUNK = 512
"""The approximate number of rows that are staged together, and so the most that a kill can lose."""


class Held(NamedTuple):
    """Rows of a video with their k and span, and the video's spans and gaps, as in ``frames.Begun``."""

    rows: NDArray[Any]
    k: NDArray[np.int64]
    span: NDArray[np.int64]
    spans: Spans
    gaps: list[Gap]


@dataclass
class Coming:
    """Rows of a video that are being computed.

    anew: whether they are computed for the second time, with another timeline. Then no rows are staged before all are
    complete, as a later run could not continue from them. rows: the rows so far, in the order of ``begun``. ended:
    whether all clips of the video have arrived.
    """

    record: Record
    begun: Begun
    anew: bool = False
    rows: list[NDArray[Any]] = field(default_factory=list)
    staged: int = 0
    ended: bool = False

    @property
    def count(self) -> int:
        """The number of rows so far."""
        return self.staged + sum(map(len, self.rows))


class FeatureCache:
    """The features of a shard's videos for one spec.

    Rows of a video are staged in ``<store>.parts`` as they arrive, and joined once all are complete. Rows that were
    staged before a kill are not computed again.
    """

    def __init__(
        self, spec: FrameSpec, location: Location, listed: Mapping[str, Clips], damaged: str = "partial"
    ) -> None:
        """Open a store; no other process may write it.

        listed: the clips of each video, if the spec uses listed clips. damaged: with ``skip``, a video with rows for
        only a part of its length counts as failed.
        """
        self.spec, self.location, self.listed, self.damaged = spec, location, listed, damaged
        folder = self.folder = location if isinstance(location, Path) else location.folder
        self.hop = Fraction(spec.hop if isinstance(spec, ClipSpec) else 1) / Fraction(str(spec.fps))
        self._staged = folder.with_name(f"{folder.name}.parts")
        self._failures = folder.with_name(f"{folder.name}.failures.json")
        self._coming: dict[str, Coming] = {}
        sweep(folder.parent)
        store.send(location)
        self._bank: Bank | None = None
        self._stored = self._read_store()

    def clips(self, video: str) -> Clips:
        """Return the clips of a video, if the spec uses listed clips."""
        return self.listed.get(video, ())

    def has(self, record: Record) -> bool:
        """Return whether all rows of a video exist, or have failed in this run."""
        key = self._key(record)
        return self._unlisted(record) or key in self._stored or self._whole(key).exists() or key in self.failures

    def _unlisted(self, record: Record) -> bool:
        return bool(self.listed) and not self.clips(record.video)

    def done(self, record: Record) -> int:
        """Return the number of staged rows of a video, in the order in which they are computed."""
        return sum(len(_rows(path)) for path in self._chunks(self._key(record)))

    def begin(self, record: Record, begun: Begun) -> None:
        """Expect a video's rows after the staged ones. If its rows were expected already, discard them and restart."""
        anew = record.video in self._coming
        if anew:
            self._forget(record)
        self._coming[record.video] = Coming(record, begun, anew, staged=self.done(record))

    def restart(self, record: Record) -> None:
        """Expect no rows of a video, and delete its staged rows."""
        self._coming.pop(record.video, None)
        self._forget(record)

    def add(self, record: Record, rows: NDArray[np.float32]) -> int:
        """Add the next rows of a video; return its total number of rows. Raise StoreError if they cannot be stored."""
        coming = self._coming[record.video]
        coming.rows.append(store.cast(rows, self.spec, record.video, coming.count))
        if coming.count - coming.staged >= CHUNK and not coming.anew:
            self._stage(record)
        if coming.ended:
            self.finish(record)
        return len(coming.begun.order)

    def coming(self, record: Record) -> Coming | None:
        """Return the expected rows of a video: the same object until they are finished or restarted."""
        return self._coming.get(record.video)

    def finish(self, record: Record) -> None:
        """Join a video's rows once all are complete: some of its clips may still wait for a full batch."""
        coming = self.coming(record)
        if coming is None:
            return
        coming.ended = True
        if coming.count < len(coming.begun.order):
            return
        self._stage(record)
        del self._coming[record.video]
        key = self._key(record)
        chunks = self._chunks(key)
        rows = np.concatenate([_rows(path) for path in chunks])
        whole, begun = np.empty_like(rows), coming.begun
        whole[begun.order] = rows
        about = np.array(json.dumps([begun.spans, begun.gaps]))
        write_arrays(self._whole(key), rows=whole, k=begun.k, span=begun.span, about=about)
        for path in chunks:
            path.unlink()

    def keep(self) -> list[str]:
        """Stage the rows of unfinished videos, and return a line for each video that has staged rows."""
        for coming in self._coming.values():
            if not coming.anew:
                self._stage(coming.record)
        some = [coming for coming in self._coming.values() if coming.staged]
        return [f"{each.staged} of {len(each.begun.order)} rows of {each.record.video}" for each in some]

    def fail(self, record: Record, reason: str) -> None:
        """Record that a video's rows cannot be computed, for the other jobs of this run."""
        self._forget(record)
        self._coming.pop(record.video, None)
        write_json(self._failures, {"run": _run(), "videos": self.failures | {self._key(record): reason}})

    @property
    def failures(self) -> dict[str, str]:
        """The reasons why videos failed in this run, by the key of their rows."""
        if not self._failures.exists():
            return {}
        found = read_json(self._failures)
        failed: dict[str, str] = found["videos"] if found["run"] == _run() else {}
        return failed

    def commit(self, records: Sequence[Record]) -> dict[str, dict[str, Any]]:
        """Write the store with exactly the videos of ``records``, which are present; return the manifest's entries."""
        made: dict[str, dict[str, Any]] = {}
        found: dict[str, Held] = {}
        damaged: dict[str, Damaged] = {}
        kept = 0
        for record in records:
            key, video = self._key(record), record.video
            if self._unlisted(record):
                made[video] = {"status": "present", "reason": "no clip of it is listed", "n_rows": 0}
                continue
            if key in self.failures:
                made[video] = {"status": "failed", "reason": self.failures[key]}
                continue
            held = self._stored[key] if key in self._stored else self._load(key, record)
            if held.gaps and self.damaged == "skip":
                made[video] = {"status": "failed", "reason": described(held.gaps)}
                continue
            kept += key in self._stored
            found[video] = held
            made[video] = {"status": "present", "reason": described(held.gaps), "n_rows": len(held.rows)}
            made[video]["source_sha256"] = record.identity(self.spec.orientation)
            if held.gaps:
                made[video]["gaps"] = held.gaps
                damaged[video] = Damaged(key, record.spans, held.gaps)
        if not kept == self._held == len(found):
            sources = {record.video: record.identity(self.spec.orientation) for record in records}
            clips = {video: self._clips_of(video, held) for video, held in found.items()} if self.listed else None
            if self._bank is not None:
                self._bank.fetch(record.video for record in records if self._key(record) in self._stored)
            parts = {video: self._split(held) for video, held in found.items()}
            hop_s = float(self.hop)
            store.write(self.location, self.spec, parts, hop_s, sources=sources, clips=clips, damaged=damaged)
        shutil.rmtree(self._staged, ignore_errors=True)
        return made

    def _clips_of(self, video: str, held: Held) -> Clips:
        return [self.clips(video)[number] for number in held.k]

    def _read_store(self) -> dict[str, Held]:
        """Return the undamaged rows of the store by their key.

        Rows of a remote store are downloaded and checked only when the store is rewritten.
        """
        self._held = -1
        try:
            bank = self._bank = Bank.open([self.location], self.spec)
        except StoreError:
            return {}
        self._held, found = len(bank.blocks), {}
        remote = isinstance(self.location, Remote)
        for video, blocks in bank.blocks.items():
            rows, damaged = bank.unchecked(video), bank.damaged.get(video)
            spans = [[block.start_s, block.end_s] for block in blocks if damaged or block.end_s < inf]
            offsets = [block.offset - blocks[0].offset for block in blocks[1:]]
            if remote or [store.digest(part) for part in np.split(rows, offsets)] == [block.sha256 for block in blocks]:
                k = [round(Fraction(block.t0_s) / self.hop) + np.arange(block.length) for block in blocks]
                span = np.repeat(np.arange(len(blocks)), [block.length for block in blocks])
                clips = list(bank.clips.get(video, ()))
                if clips:
                    number = {clip: number for number, clip in enumerate(self.clips(video))}
                    k = [np.array([number.get(clip, 0) for clip in clips])]
                key = damaged.key if damaged else self._key_of(video, blocks[0].source_sha256, spans, clips)
                found[key] = Held(rows, np.concatenate(k), span, spans, damaged.gaps if damaged else [])
        return found

    def _key(self, record: Record) -> str:
        source = record.identity(self.spec.orientation)
        return self._key_of(record.video, source, record.spans, self.clips(record.video))

    def _key_of(self, video: str, sha256: str, spans: Spans, clips: Clips) -> str:
        """Return the cache key of a video's rows: its id and a digest of their inputs."""
        return f"{video}.{digest([sha256, [] if clips else spans, clips, self.spec.record()])}"

    def _whole(self, key: str) -> Path:
        return self._staged / f"{key}.npz"

    def _chunks(self, key: str) -> list[Path]:
        return sorted(self._staged.glob(f"{key}.*.npz"))

    def _stage(self, record: Record) -> None:
        coming = self._coming[record.video]
        if not coming.rows:
            return
        rows = np.concatenate(coming.rows)
        write_arrays(self._staged / f"{self._key(record)}.{coming.staged:09d}.npz", rows=rows)
        coming.staged += len(rows)
        coming.rows = []

    def _forget(self, record: Record) -> None:
        for path in self._chunks(self._key(record)):
            path.unlink()

    def _load(self, key: str, record: Record) -> Held:
        held = read_arrays(self._whole(key))
        about = json.loads(str(held["about"])) if "about" in held else [record.spans, []]  # older files have none
        return Held(held["rows"], held["k"], held["span"], about[0], read_gaps(about[1]))

    def _split(self, held: Held) -> list[Part]:
        """Return the rows of a video, span by span."""
        if self.listed:
            return [Part(held.rows, 0.0, 0.0, inf)]
        if not held.spans:
            return [Part(held.rows, float(int(held.k[0]) * self.hop), 0.0, inf)]
        parts = []
        for number, (start_s, end_s) in enumerate(held.spans):
            within = held.span == number
            first = int(held.k[within][0]) if within.any() else ceil(Fraction(start_s) / self.hop)
            parts.append(Part(held.rows[within], float(first * self.hop), start_s, end_s))
        return parts


def _run() -> str:
    """Return the id of the workflow run; outside a workflow, each process is a run."""
    return os.environ.get("STEPLINE_RUN") or _PROCESS


_PROCESS = f"process {os.getpid()} at {time.time_ns()}"


def _rows(path: Path) -> NDArray[Any]:
    rows: NDArray[Any] = read_arrays(path)["rows"]
    return rows
