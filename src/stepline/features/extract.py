"""The features stage: from videos to a store."""

import shutil
from collections.abc import Iterator
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from stepline.availability import Record, read_availability, write_manifest
from stepline.backbones.registry import FRAME_BACKBONES
from stepline.errors import StoreError
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.store import Part, Rows
from stepline.io import atomic_path, canonical_json
from stepline.media.decode import MediaError
from stepline.media.decord import decord
from stepline.media.process import Limits, killable
from stepline.media.read import Reader, pyav, with_timeline
from stepline.media.spans import Spans, rows_within
from stepline.media.timeline import Timeline
from stepline.progress import progress
from stepline.spec import FrameSpec, digest

READERS: dict[str, Reader] = {"pyav": pyav, "decord": decord}


def extract(availability: Path, spec: FrameSpec, folder: Path, manifest: Path, *, limits: Limits) -> None:
    """Make the store ``folder`` of a shard's present videos and say in ``manifest`` what became of each.

    Row k of a video describes the frame that stands for k / fps seconds by the spec's ``frame_rule``; where its record
    names spans, there are only the rows whose time lies within one. A video that cannot be read, within the limits, is
    ``failed`` with its reason. Rows that the store holds already are kept where file and spans are the same. Each video
    is committed on its own in ``<folder>.parts``, so a killed run goes on where it stopped.
    """
    videos: dict[str, dict[str, Any]] = {}
    parts: dict[str, list[Part]] = {}
    sources: dict[str, str] = {}
    staged = folder.with_name(f"{folder.name}.parts")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        stored = _stored(folder, spec)
        kept = 0
        for video, record in progress(read_availability(availability).items(), what="features", unit="videos"):
            if record.status != "present":
                videos[video] = {"status": record.status, "reason": record.reason}
                continue
            try:
                rows = stored.get(_key(video, record.sha256, record.spans))
                kept += rows is not None
                parts[video] = _split(_part(record, spec, staged, limits) if rows is None else rows, spec, record.spans)
            except MediaError as error:
                videos[video] = {"status": "failed", "reason": str(error)}
                continue
            sources[video] = record.sha256
            made = {"n_rows": sum(len(part.rows) for part in parts[video]), "source_sha256": record.sha256}
            videos[video] = {"status": "present", "reason": "", **made}
        if not stored or not kept == len(stored) == len(parts):
            store.write(folder, spec, parts, 1 / spec.fps, sources=sources)
        shutil.rmtree(staged, ignore_errors=True)
    write_manifest(manifest, videos, spec=spec.record())


def _key(video: str, sha256: str, spans: Spans) -> str:
    """Return what rows are a video's by: its id, file and spans."""
    return canonical_json([video, sha256, spans])


def _stored(folder: Path, spec: FrameSpec) -> dict[str, Rows]:
    """Return the undamaged rows that the store holds, by video, source and spans."""
    try:
        bank = Bank.open([folder], spec)
    except StoreError:
        return {}
    found = {}
    for video, blocks in bank.blocks.items():
        rows, spans = bank.rows[video], [[block.start_s, block.end_s] for block in blocks if block.end_s < inf]
        offsets = [block.offset - blocks[0].offset for block in blocks[1:]]
        if [store.digest(part) for part in np.split(rows, offsets)] == [block.sha256 for block in blocks]:
            found[_key(video, blocks[0].source_sha256, spans)] = rows
    return found


def _split(rows: Rows, spec: FrameSpec, spans: Spans) -> list[Part]:
    """Return the rows of a video, span after span; those after its end are absent."""
    if not spans:
        return [Part(rows, 0.0, 0.0, inf)]
    parts, start = [], 0
    for span in spans:
        within = rows_within(span, spec.fps)
        parts.append(Part(rows[start : start + len(within)], float(within.start / Fraction(str(spec.fps))), *span))
        start += len(within)
    return parts


def _part(record: Record, spec: FrameSpec, staged: Path, limits: Limits) -> Rows:
    path = staged / f"{record.video}.{digest([record.sha256, record.spans, spec.record()])}.npy"
    if not path.exists():
        video = Path(record.path)
        if not video.is_file():
            raise MediaError(f"{video}: no such file")
        [rows] = killable(_rows, video, spec, record.spans, limits=limits, duration_s=record.duration_s)
        with atomic_path(path) as part:
            np.save(part, rows)
    loaded: Rows = np.load(path)
    return loaded


def _rows(video: Path, spec: FrameSpec, spans: Spans) -> Iterator[Rows]:
    def describe(timeline: Timeline) -> Rows:
        indices = timeline.select(spec.frame_rule, spec.fps)
        if spans:
            within = np.concatenate([rows_within(span, spec.fps) for span in spans]).astype(np.int64)
            indices = indices[within[within < len(indices)]]
        if not len(indices):
            raise MediaError("no row lies within its spans")
        chosen, repeats = np.unique(indices, return_counts=True)
        shown = READERS[spec.reader](video, timeline, chosen)
        return np.repeat(np.stack([backbone.describe(frame.rgb(), spec) for frame in shown]), repeats, axis=0)

    if spans and spec.frame_rule == "index_linspace":
        raise MediaError("the frame rule index_linspace counts the frames of whole videos: set media.spans to all")
    backbone = FRAME_BACKBONES[spec.name]
    yield with_timeline(video, describe)
