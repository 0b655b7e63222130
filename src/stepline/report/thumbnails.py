"""Small pictures of a video at given times."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from stepline import paths
from stepline.availability import Record, read_availability, read_manifest, write_manifest
from stepline.io import write_bytes
from stepline.media.decode import MediaError
from stepline.media.frame import DecodedFrame
from stepline.media.read import pyav, with_timeline
from stepline.media.timeline import Timeline
from stepline.progress import progress
from stepline.report.shots import SHOTS_SHOWN, read_shots, spread

WIDTH = 160


def write_thumbnails(availability: Path, shots: Path, folder: Path, manifest: Path) -> None:
    """Write pictures of shots of each present video and say in ``manifest`` which: ``pictures``, shot -> file.

    Up to ``SHOTS_SHOWN`` shots, spread over the video, each by its middle frame, as
    ``folder/<video>/<8 hex of the video's sha256>-<time in ms>.jpg``, where the 8 digits stand for the sha256 in what
    the upright video is known by. Those that stand there are kept, so that pictures outlive their video.
    """
    videos: dict[str, dict[str, Any]] = {}
    for video, record in progress(read_availability(availability).items(), what="thumbnails", unit="videos"):
        if record.status != "present":
            videos[video] = {"status": record.status, "reason": record.reason}
            continue
        found = read_shots(shots / f"{video}.parquet")
        times = {shot: sum(found[shot]) / 2 for shot in spread(len(found), SHOTS_SHOWN)}
        videos[video] = _write(record, times, folder / video)
    write_manifest(manifest, videos)


def _write(record: Record, times: dict[int, float], folder: Path) -> dict[str, Any]:
    source = record.identity("upright").replace(record.sha256, record.sha256[:8])
    files = {shot: folder / f"{source}-{round(1000 * time):08d}.jpg" for shot, time in times.items()}
    absent = [shot for shot, file in files.items() if not file.exists()]
    reason = ""
    if absent and Path(record.path).exists():
        for shot, picture in zip(absent, thumbnails(Path(record.path), [times[shot] for shot in absent]), strict=True):
            if picture is not None:
                write_bytes(files[shot], picture)
    elif absent:
        reason = f"no pictures of {len(absent)} shots: {_why_gone(record)}"
    there = {str(shot): str(file) for shot, file in files.items() if file.exists()}
    for other in folder.glob("*.jpg") if folder.is_dir() else ():
        if str(other) not in there.values():
            other.unlink()
    return {"status": "present", "reason": reason, "pictures": there}


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


def _jpeg(frame: DecodedFrame) -> bytes:
    import PIL.Image

    upright = PIL.Image.fromarray(frame.rgb())
    content = io.BytesIO()
    image = upright.resize((WIDTH, max(1, round(WIDTH * upright.height / upright.width))))
    image.save(content, "JPEG", quality=75)
    return content.getvalue()
