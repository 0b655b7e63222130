"""Thumbnails of a video at given times."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor
from pathlib import Path
from typing import Any, cast

from stepline import paths
from stepline.availability import Record, read_availability, read_manifest, write_manifest
from stepline.io import write_bytes
from stepline.media.decode import MediaError
from stepline.media.frame import DecodedFrame
from stepline.media.read import pyav, with_timeline
from stepline.media.timeline import Timeline
from stepline.progress import VIDEO, progress
from stepline.report.shots import read_shots

WIDTH = 160
SAMPLES_PER_S = 4
"""Possible thumbnails per second, few enough to keep them all until the shots of a video are known."""


def write_thumbnails(availability: Path, shots: Path, folder: Path, manifest: Path) -> None:
    """Write a thumbnail of each shot of each present video and record it in ``manifest``: ``pictures``, shot -> file.

    Files are ``folder/<video>/<8 hex of the sha256>-<time in ms>.jpg``; the sha256 identifies the upright video. The
    time of a shot is the quarter second nearest to its middle (the earlier of two), or the exact middle if that quarter
    second is in another shot. Existing thumbnails are kept, so they remain after their video is deleted. Those of
    videos that are not present are removed.
    """
    videos: dict[str, dict[str, Any]] = {}
    records = read_availability(availability)
    for video, record in progress(records.items(), what="pictures", unit=VIDEO, size=lambda item: item[1].seen_s):
        if record.status != "present":
            videos[video] = {"status": record.status, "reason": record.reason}
            for old in (folder / video).glob("*.jpg"):
                old.unlink()
            continue
        videos[video] = _write(record, read_shots(shots / f"{video}.parquet"), folder / video)
    write_manifest(manifest, videos)


def _write(record: Record, shots: Sequence[tuple[float, float]], folder: Path) -> dict[str, Any]:
    files = files_of(record, shots, folder)
    absent = {time_s: file for time_s, file in files.values() if not file.exists()}
    reason = ""
    if absent and Path(record.path).exists():
        for file, picture in zip(absent.values(), thumbnails(Path(record.path), list(absent)), strict=True):
            if picture is not None:
                write_bytes(file, picture)
    elif absent:
        reason = f"no pictures for {len(absent)} shots: {_why_gone(record)}"
    there = {str(shot): str(file) for shot, (_, file) in files.items() if file.exists()}
    for other in folder.glob("*.jpg") if folder.is_dir() else ():
        if str(other) not in there.values():
            other.unlink()
    return {"status": "present", "reason": reason, "pictures": there}


def files_of(record: Record, shots: Sequence[tuple[float, float]], folder: Path) -> dict[int, tuple[float, Path]]:
    """Return time and file of each shot's thumbnail, by shot number. shots: start and end in seconds."""
    source = record.identity("upright").replace(record.sha256, record.sha256[:8])
    times_s = {shot: _shown_at(*span) for shot, span in enumerate(shots)}
    return {shot: (time_s, folder / f"{source}-{round(1000 * time_s):08d}.jpg") for shot, time_s in times_s.items()}


def _shown_at(start_s: float, end_s: float) -> float:
    middle_s = (start_s + end_s) / 2
    before_s = floor(middle_s * SAMPLES_PER_S) / SAMPLES_PER_S
    nearest_s = min(before_s, before_s + 1 / SAMPLES_PER_S, key=lambda time_s: abs(time_s - middle_s))
    return nearest_s if start_s <= nearest_s < end_s else middle_s


def _why_gone(record: Record) -> str:
    """Return why a video is missing, from its own record, which is newer than the shard's."""
    path = Path(record.path)
    own = path.with_suffix(".json")
    last = read_availability(own).get(record.video, record) if own.exists() else record
    return (
        f"{path} no longer exists: run `snakemake`, which fetches it again"
        if last.kept
        else "the video was deleted after use"
    )


@dataclass(frozen=True)
class Thumbnails:
    """The thumbnails of a data set's videos by shot index, and the reasons for missing ones."""

    pictures: dict[str, dict[int, Path]]
    reasons: dict[str, str]


def read_thumbnails(study: str, shards: Sequence[str]) -> Thumbnails:
    """Return the thumbnails in the records of these shards; shards without a record are skipped."""
    found = Thumbnails({}, {})
    for path in (paths.manifest(paths.thumbnails(study), shard) for shard in shards):
        for video, made in read_manifest(path).items() if path.exists() else ():
            pictures = {int(shot): Path(file) for shot, file in made.get("pictures", {}).items()}
            found.pictures[video] = dict(sorted(pictures.items()))
            if made["status"] == "present" and made["reason"]:
                found.reasons[video] = made["reason"]
    return found


def thumbnails(video: Path, times_s: Sequence[float]) -> list[bytes | None]:
    """Return an upright JPEG of the last frame at or before each time, 160 pixels wide, in the shape that players show.

    times_s: ascending, in seconds. The result is None for times in a gap or after the end, and for all times if the
    video cannot be read.
    """
    if not times_s:
        return []

    def pictures(timeline: Timeline) -> list[bytes | None]:
        indices = timeline.at_or_before([time for time in times_s if time < timeline.end_s])
        lost = timeline.lost[indices]
        frames = pyav(video, timeline, indices[~lost]) if len(indices[~lost]) else iter(())
        return [None if gone else _jpeg(cast(DecodedFrame, next(frames))) for gone in lost]

    try:
        images = with_timeline(video, pictures)
    except MediaError:
        images = []
    return images + [None] * (len(times_s) - len(images))


class Samples:
    """A tap of the media pass: yields (k, JPEG as in ``thumbnails``) for each time k / 4 s."""

    def begin(self, _: Path) -> Iterator[tuple[int, bytes]]:
        """Start a video."""
        self._last: DecodedFrame | None = None
        self._next = 0
        yield from ()

    def take(self, frame: DecodedFrame) -> Iterator[tuple[int, bytes]]:
        """Yield the samples before this frame."""
        yield from self._shown_before(frame.t_s)
        self._last = frame

    def end(self) -> Iterator[tuple[int, bytes]]:
        """Yield the remaining samples."""
        if self._last is not None:
            yield from self._shown_before(self._last.end_s)

    def _shown_before(self, end_s: float) -> Iterator[tuple[int, bytes]]:
        if self._last is not None and self._next < end_s * SAMPLES_PER_S:
            first, self._next = self._next, ceil(end_s * SAMPLES_PER_S)
            jpeg = _jpeg(self._last)
            yield from ((number, jpeg) for number in range(first, self._next))


def _jpeg(frame: DecodedFrame) -> bytes:
    import PIL.Image

    content = io.BytesIO()
    picture = PIL.Image.fromarray(frame.rgb(WIDTH, max(1, round(WIDTH / frame.aspect))))
    picture.save(content, "JPEG", quality=75)
    return content.getvalue()
