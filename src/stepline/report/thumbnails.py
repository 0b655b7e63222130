"""Small pictures of a video at given times."""

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
"""Of how many moments of a second a picture may be: few enough to keep all of a video until its shots are known."""


def write_thumbnails(availability: Path, shots: Path, folder: Path, manifest: Path) -> None:
    """Write a picture of each shot of each present video and say in ``manifest`` which: ``pictures``, shot -> file.

    They are ``folder/<video>/<8 hex of the video's sha256>-<time in ms>.jpg``, where the 8 digits stand for the sha256
    in what the upright video is known by. A shot's time is the quarter of a second that is nearest to its middle, of
    two the earlier, or the middle where that lies in another shot. Pictures that stand there are kept, so they outlive
    their video.
    """
    videos: dict[str, dict[str, Any]] = {}
    records = read_availability(availability)
    for video, record in progress(records.items(), what="pictures", unit=VIDEO, size=lambda item: item[1].seen_s):
        if record.status != "present":
            videos[video] = {"status": record.status, "reason": record.reason}
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
        reason = f"no pictures of {len(absent)} shots: {_why_gone(record)}"
    there = {str(shot): str(file) for shot, (_, file) in files.items() if file.exists()}
    for other in folder.glob("*.jpg") if folder.is_dir() else ():
        if str(other) not in there.values():
            other.unlink()
    return {"status": "present", "reason": reason, "pictures": there}


def files_of(record: Record, shots: Sequence[tuple[float, float]], folder: Path) -> dict[int, tuple[float, Path]]:
    """Return time and file of the picture of each shot, by its number. shots: start and end, in s."""
    source = record.identity("upright").replace(record.sha256, record.sha256[:8])
    times_s = {shot: _shown_at(*span) for shot, span in enumerate(shots)}
    return {shot: (time_s, folder / f"{source}-{round(1000 * time_s):08d}.jpg") for shot, time_s in times_s.items()}


def _shown_at(start_s: float, end_s: float) -> float:
    middle_s = (start_s + end_s) / 2
    before_s = floor(middle_s * SAMPLES_PER_S) / SAMPLES_PER_S
    nearest_s = min(before_s, before_s + 1 / SAMPLES_PER_S, key=lambda time_s: abs(time_s - middle_s))
    return nearest_s if start_s <= nearest_s < end_s else middle_s


def _why_gone(record: Record) -> str:
    """Return why a video is not there, as its own record says, which knows what came after the shard's."""
    path = Path(record.path)
    own = path.with_suffix(".json")
    last = read_availability(own).get(record.video, record) if own.exists() else record
    return f"{path} is gone: run `snakemake`, which brings it again" if last.kept else "the video was deleted after use"


@dataclass(frozen=True)
class Thumbnails:
    """Of a data set's videos: pictures by the index of their shot, and why there are not all."""

    pictures: dict[str, dict[int, Path]]
    reasons: dict[str, str]


def read_thumbnails(study: str, shards: Sequence[str]) -> Thumbnails:
    """Return what the records of some shards list; nothing of a shard that has none."""
    found = Thumbnails({}, {})
    for path in (paths.manifest(paths.thumbnails(study), shard) for shard in shards):
        for video, made in read_manifest(path).items() if path.exists() else ():
            pictures = {int(shot): Path(file) for shot, file in made.get("pictures", {}).items()}
            found.pictures[video] = dict(sorted(pictures.items()))
            if made["status"] == "present" and made["reason"]:
                found.reasons[video] = made["reason"]
    return found


def thumbnails(video: Path, times_s: Sequence[float]) -> list[bytes | None]:
    """Return a JPEG, 160 pixels wide and upright, for each time: of the last frame at or before it.

    times_s: ascending, in seconds. None stands for each time in a gap or after the video's end, and for all of a video
    that cannot be read.
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
    """A tap of the media's pass: of each quarter of a second, k / 4 s, it yields (k, the JPEG of ``thumbnails``)."""

    def begin(self, _: Path) -> Iterator[tuple[int, bytes]]:
        """Begin a video."""
        self._last: DecodedFrame | None = None
        self._next = 0
        yield from ()

    def take(self, frame: DecodedFrame) -> Iterator[tuple[int, bytes]]:
        """Yield what is shown up to the frame."""
        yield from self._shown_before(frame.t_s)
        self._last = frame

    def end(self) -> Iterator[tuple[int, bytes]]:
        """Yield what is shown up to the end."""
        if self._last is not None:
            yield from self._shown_before(self._last.end_s)

    def _shown_before(self, end_s: float) -> Iterator[tuple[int, bytes]]:
        if self._last is not None and self._next < end_s * SAMPLES_PER_S:
            first, self._next = self._next, ceil(end_s * SAMPLES_PER_S)
            jpeg = _jpeg(self._last)
            yield from ((number, jpeg) for number in range(first, self._next))


def _jpeg(frame: DecodedFrame) -> bytes:
    import PIL.Image

    width, height = frame.size
    content = io.BytesIO()
    picture = PIL.Image.fromarray(frame.rgb(WIDTH, max(1, round(WIDTH * height / width))))
    picture.save(content, "JPEG", quality=75)
    return content.getvalue()
