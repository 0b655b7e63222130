"""The features stage: from videos to a store."""

import shutil
from itertools import count
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
from stepline.io import atomic_path, sha256_file
from stepline.media.decode import MediaError, at_or_before
from stepline.progress import progress
from stepline.spec import Spec, digest


def extract(availability: Path, spec: Spec, folder: Path, manifest: Path) -> None:
    """Make the store ``folder`` of a shard's present videos and say in ``manifest`` what became of each.

    Row k of a video describes the last frame at or before k / fps seconds, as long as a frame is shown. A video that
    cannot be read whole is ``failed`` with its reason. Rows that the store holds already are kept where the video is
    the same file. Each video is committed on its own in ``<folder>.parts``, so a killed run goes on where it stopped.
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
                source = _source(record)
                rows = stored.get((video, source))
                parts[video] = _part(record, source, spec, staged) if rows is None else rows
            except MediaError as error:
                videos[video] = {"status": "failed", "reason": str(error)}
                continue
            sources[video] = source
            videos[video] = {"status": "present", "reason": "", "n_rows": len(parts[video]), "source_sha256": source}
        if stored.keys() != sources.items() or not stored:
            store.write(folder, spec, parts, 1 / FRAME_BACKBONES[spec.name].fps, sources=sources)
        shutil.rmtree(staged, ignore_errors=True)
    write_manifest(manifest, videos, spec=spec.record())


def _stored(folder: Path, spec: Spec) -> dict[tuple[str, str], Rows]:
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


def _source(record: Record) -> str:
    if not Path(record.path).is_file():
        raise MediaError(f"{record.path}: no such file")
    return record.sha256 or sha256_file(record.path)


def _part(record: Record, source: str, spec: Spec, staged: Path) -> Rows:
    path = staged / f"{record.video}.{digest([source, spec.record()])}.npy"
    if not path.exists():
        backbone = FRAME_BACKBONES[spec.name]
        times = (k / backbone.fps for k in count())
        rows = np.stack([backbone.describe(image, spec) for image in at_or_before(Path(record.path), times)])
        with atomic_path(path) as part:
            np.save(part, rows)
    loaded: Rows = np.load(path)
    return loaded
