"""The lengths of videos: from records, the list or file headers, otherwise guessed."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stepline.availability import Record
from stepline.datasets.schema import Video
from stepline.media.decode import MediaError
from stepline.media.headers import Headers
from stepline.media.process import Limits
from stepline.overview.records import available
from stepline.pipeline import Pipeline

READ = 24
"""Maximum number of files whose headers are read; the length of other files is estimated from their size."""


@dataclass(frozen=True)
class Lengths:
    """The seconds read from each video that exists or may be downloaded. guessed: the videos with a guessed length."""

    seconds: Mapping[str, float]
    guessed: frozenset[str]


def lengths(pipeline: Pipeline, shards: Sequence[str]) -> Lengths:
    """Return the lengths of the videos in the given shards."""
    seconds: dict[str, float] = {}
    unknown: list[Video] = []
    spans = _spans(pipeline)
    for shard in shards:
        records = available(pipeline, shard)
        for video in pipeline.videos.members(shard):
            record = records.get(video.id)
            if record and not _may_come(record, video):
                continue
            if record and record.duration_s:
                known_s = record.duration_s
            elif video.duration_s is not None:
                known_s = video.duration_s
            else:
                unknown.append(video)
                continue
            read_s = sum(end_s - start_s for start_s, end_s in spans.get(video.id, []))
            seconds[video.id] = min(known_s, read_s) if read_s else known_s
    places = {video.id: Path(pipeline.videos.place(video)) for video in unknown if pipeline.videos.place(video)}
    limits = Limits(**pipeline.config["media"]["limits"])
    measured = _by_files({video: path for video, path in places.items() if path.is_file()}, limits)
    guessed = {video.id: video.length_s for video in unknown if video.id not in measured.seconds}
    return Lengths({**seconds, **measured.seconds, **guessed}, measured.guessed | guessed.keys())


def _may_come(record: Record, video: Video) -> bool:
    """Return whether a video exists or its download will be tried again."""
    return record.status == "present" or (record.status == "failed" and bool(video.url))


def _spans(pipeline: Pipeline) -> Mapping[str, Sequence[Sequence[float]]]:
    """Return the spans that are read from each video, if all files that list them exist."""
    return pipeline.videos.spans() if all(path.exists() for path in pipeline.videos.inputs) else {}


def _by_files(places: Mapping[str, Path], limits: Limits) -> Lengths:
    """Return the lengths of files, from the headers of some and the sizes of the others."""
    if not places:
        return Lengths({}, frozenset())
    read: dict[str, float] = {}
    with Headers(limits) as headers:
        for video in list(places)[:: -(-len(places) // READ)]:
            with suppress(MediaError):
                read[video] = headers(places[video]).duration_s
    sizes = {video: path.stat().st_size for video, path in places.items()}
    if not sum(read.values()):
        return Lengths({}, frozenset())
    bytes_per_s = sum(sizes[video] for video in read) / sum(read.values())
    rest = {video: size / bytes_per_s for video, size in sizes.items() if not read.get(video)}
    return Lengths(read | rest, frozenset(rest))
