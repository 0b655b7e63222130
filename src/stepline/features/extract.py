"""The features stage: from videos to a store."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from stepline.availability import Record, read_availability, write_manifest
from stepline.backbones.registry import FRAME_BACKBONES
from stepline.errors import StoreError
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.store import Rows
from stepline.io import atomic_path
from stepline.media.decode import MediaError
from stepline.media.decord import decord
from stepline.media.process import Limits, killable
from stepline.media.read import Reader, pyav, with_timeline
from stepline.media.timeline import Timeline
from stepline.progress import progress
from stepline.spec import FrameSpec, digest

READERS: dict[str, Reader] = {"pyav": pyav, "decord": decord}


def extract(availability: Path, spec: FrameSpec, folder: Path, manifest: Path, *, limits: Limits) -> None:
    """Make the store ``folder`` of a shard's present videos and say in ``manifest`` what became of each.

    Row k of a video describes the frame that stands for k / fps seconds by the spec's ``frame_rule``. A video that
    cannot be read whole, within the limits, is ``failed`` with its reason. Rows that the store holds already are kept
    where the video is the same file. Each video is committed on its own in ``<folder>.parts``, so a killed run goes on
    where it stopped.
    """
    videos: dict[str, dict[str, Any]] = {}
    parts: dict[str, Rows] = {}
    sources: dict[str, str] = {}
    staged = folder.with_name(f"{folder.name}.parts")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        stored = _stored(folder, spec)
        for video, record in progress(read_availability(availability).items(), what="features", unit="videos"):
            if record.status != "present":
                videos[video] = {"status": record.status, "reason": record.reason}
                continue
            try:
                rows = stored.get((video, record.sha256))
                parts[video] = _part(record, spec, staged, limits) if rows is None else rows
            except MediaError as error:
                videos[video] = {"status": "failed", "reason": str(error)}
                continue
            sources[video] = record.sha256
            made = {"n_rows": len(parts[video]), "source_sha256": record.sha256}
            videos[video] = {"status": "present", "reason": "", **made}
        if stored.keys() != sources.items() or not stored:
            store.write(folder, spec, parts, 1 / spec.fps, sources=sources)
        shutil.rmtree(staged, ignore_errors=True)
    write_manifest(manifest, videos, spec=spec.record())


def _stored(folder: Path, spec: FrameSpec) -> dict[tuple[str, str], Rows]:
    """Return the undamaged rows that the store holds, by video and source."""
    try:
        bank = Bank.open([folder], spec)
    except StoreError:
        return {}
    return {
        (video, block.source_sha256): bank.rows[video]
        for video, block in bank.blocks.items()
        if store.digest(bank.rows[video]) == block.sha256
    }


def _part(record: Record, spec: FrameSpec, staged: Path, limits: Limits) -> Rows:
    path = staged / f"{record.video}.{digest([record.sha256, spec.record()])}.npy"
    if not path.exists():
        video = Path(record.path)
        if not video.is_file():
            raise MediaError(f"{video}: no such file")
        [rows] = killable(_rows, video, spec, limits=limits, duration_s=record.duration_s)
        with atomic_path(path) as part:
            np.save(part, rows)
    loaded: Rows = np.load(path)
    return loaded


def _rows(video: Path, spec: FrameSpec) -> Iterator[Rows]:
    def describe(timeline: Timeline) -> Rows:
        indices = timeline.select(spec.frame_rule, spec.fps)
        chosen, repeats = np.unique(indices, return_counts=True)
        shown = READERS[spec.reader](video, timeline, chosen)
        return np.repeat(np.stack([backbone.describe(frame.rgb(), spec) for frame in shown]), repeats, axis=0)

    backbone = FRAME_BACKBONES[spec.name]
    yield with_timeline(video, describe)
