"""Pictures of listed clips: streamed, or kept on disk for repeated access in any order."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.availability import Record
from stepline.backbones.picture import picture
from stepline.errors import StoreError
from stepline.features.cache import Clips
from stepline.features.decoding import Job, decoded, decoders
from stepline.features.frames import Batch, Begun, Refused, Request, split
from stepline.media.decode import MediaError
from stepline.media.frame import ArrayFrame
from stepline.media.process import Limits
from stepline.media.timeline import described
from stepline.progress import progress
from stepline.spec import ClipSpec, digest

AT_ONCE = 16
"""Clips per batch while they are written to disk."""


@dataclass(frozen=True, kw_only=True)
class Videos:
    """Videos and the settings of their decoding. decoders: parallel processes. scratch: as in ``frames.Request``."""

    records: Mapping[str, Record]
    limits: Limits
    decoders: int
    scratch: Path


@dataclass(frozen=True)
class Seen:
    """Some clips of a video. places: (n,) their indices in its list. left: how many follow. Rest: ``frames.Batch``."""

    video: str
    places: NDArray[np.int64]
    clips: NDArray[Any]
    shown: NDArray[np.bool_]
    left: int


def stream(spec: ClipSpec, listed: Mapping[str, Clips], videos: Videos, batch_size: int) -> Iterator[Seen]:
    """Yield all listed clips of each video in order of completion, decoding each video once.

    A clip may be sent a second time, see ``frames.Begun``; the last one is valid. Raises StoreError if a video cannot
    be read, or one of its clips is lost.
    """
    names = [video for video in listed if listed[video]]
    asked = [Request(spec=spec, batch_size=batch_size, listed=listed[video], scratch=videos.scratch) for video in names]
    jobs = [Job(videos.records[video], [request]) for video, request in zip(names, asked, strict=True)]
    coming: dict[str, NDArray[np.int64]] = {}
    with (
        decoders(videos.limits, min(videos.decoders, len(jobs))) as processes,
        closing(decoded(jobs, processes)) as outcomes,
    ):
        for number, outcome in outcomes:
            video = names[number]
            lost = described(outcome.gaps) if isinstance(outcome, Begun) else ""
            if lost or isinstance(outcome, MediaError | Refused):
                reason = outcome.reason if isinstance(outcome, Refused) else lost or outcome
                raise StoreError(f"{videos.records[video].path} cannot be read: {reason}")
            if isinstance(outcome, Begun):
                coming[video] = outcome.order
            elif isinstance(outcome, Batch):
                n = len(outcome.clips)
                places, coming[video] = coming[video][:n], coming[video][n:]
                yield Seen(video, places, outcome.clips, outcome.shown, len(coming[video]))


def keep(spec: ClipSpec, listed: Mapping[str, Clips], videos: Videos, folder: Path) -> dict[str, NDArray[Any]]:
    """Return the (N, T, H, W, 3) pictures of each video's listed clips, on disk in a folder of their own.

    The spec's pictures have one size and none is missing. A video is not decoded if its pictures exist already.
    Raises StoreError if the disk does not have enough space, and the errors of ``stream``.
    """
    blank = picture(ArrayFrame(np.zeros((720, 1280, 3), np.uint8)), spec.steps)
    shape, size = (spec.num_frames, *blank.shape), spec.num_frames * blank.nbytes
    sources = {video: videos.records[video].identity(spec.orientation) for video in listed if listed[video]}
    paths = {
        video: folder / f"{video}-{digest([sources[video], list(clips), spec.record()])}.pictures"
        for video, clips in listed.items()
        if clips
    }
    folder.mkdir(parents=True, exist_ok=True)
    for path in set(folder.iterdir()) - {*paths.values()}:
        path.unlink()
    missing = {video: listed[video] for video, path in paths.items() if not path.exists()}
    needed, free = size * sum(map(len, missing.values())), shutil.disk_usage(folder).free
    if needed > free:
        raise StoreError(
            f"{folder}: the pictures of {needed // size} windows need {needed / 1e9:.1f} GB during a fit, but "
            f"{free / 1e9:.1f} GB are free: free more space there"
        )
    total = sum(len(split(len(clips), AT_ONCE)) for clips in missing.values())
    for seen in progress(stream(spec, missing, videos, AT_ONCE), what="pictures", unit="batches", total=total):
        part = paths[seen.video].with_suffix(".part")
        with open(part, "r+b" if part.exists() else "wb") as file:
            for place, clip in zip(seen.places.tolist(), seen.clips, strict=True):
                file.seek(place * size)
                file.write(clip.tobytes())
            if not seen.left:
                file.flush()
                os.fsync(file.fileno())
        if not seen.left:
            part.replace(paths[seen.video])
    return {
        video: np.memmap(path, blank.dtype, "r", shape=(len(listed[video]), *shape)) for video, path in paths.items()
    }
