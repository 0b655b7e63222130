"""The moments that a search found, as files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from stepline import paths
from stepline.availability import Record, read_availability
from stepline.io import atomic_path
from stepline.media.clip import write_clip
from stepline.media.decode import MediaError
from stepline.pipeline import Pipeline
from stepline.search.searcher import Ranked


def kept_files(pipeline: Pipeline) -> dict[str, Path]:
    """Return the files of the videos of a data set that are there."""
    records: dict[str, Record] = {}
    for shard in pipeline.videos.all_shards:
        if (path := paths.availability(pipeline.name, shard)).exists():
            records |= read_availability(path)
    return {
        video: Path(record.path) for video, record in records.items() if record.path and Path(record.path).is_file()
    }


def write_clips(pipeline: Pipeline, moments: Sequence[Ranked], folder: Path) -> Iterator[str]:
    """Write each moment as ``<video>-<start>-<end>.mp4`` and yield a line of each: the file, or why there is none."""
    files = kept_files(pipeline)
    for moment in moments:
        clip = folder / f"{moment.video}-{short(moment.start_s)}-{short(moment.end_s)}.mp4"
        try:
            if moment.video not in files:
                raise MediaError("the video is not kept")
            with atomic_path(clip) as part:
                write_clip(files[moment.video], part, moment.start_s, moment.end_s)
        except MediaError as error:
            yield f"no clip of {moment.video}: {error}"
        else:
            yield f"clip: {clip}"


def short(time_s: float) -> str:
    """Return seconds with up to three decimals."""
    return f"{time_s:.3f}".rstrip("0").rstrip(".")
