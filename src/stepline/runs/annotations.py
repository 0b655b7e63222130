"""The annotations of a data set's videos, from whatever source it has."""

from collections.abc import Sequence
from typing import Any

from stepline import paths
from stepline.availability import read_availability
from stepline.benchmark import Benchmark
from stepline.datasets import shards
from stepline.datasets.dataset import Dataset
from stepline.datasets.segments import LabelledSpan, read_segments
from stepline.errors import ReleaseError
from stepline.features.export.job import Annotated


def annotations(dataset: Dataset, benchmarks: Sequence[Benchmark[Any]]) -> dict[str, Annotated]:
    """Return split, duration and segments of all videos.

    The segments are the user's. Videos without them have the true segments of the first configured release that has
    any. A duration is that of the file, or else of the release. Raises ReleaseError if a release is absent or damaged.
    """
    videos = {video.id: video for video in dataset.videos()}
    if not videos:
        raise ReleaseError(f"{dataset.name} lists no videos: run `stepline fetch {dataset.listed_by or dataset.name}`")
    found = read_segments(dataset.name, dataset.segments, videos) if dataset.segments else {}
    for benchmark in benchmarks:
        for release in benchmark.options["releases"]:
            job = next((job for job in benchmark.jobs() if job.release == release), None)
            if job is None or benchmark.dataset(release) != dataset.name:
                continue
            inputs = benchmark.inputs(job)
            for video in videos.keys() - found.keys():
                true = benchmark.in_time(inputs, video, None)
                if true and true.truth:
                    found[video] = [LabelledSpan(each.start_s, each.end_s, each.label) for each in true.truth]
    durations_s = _durations_s(dataset.name)
    return {
        name: Annotated(
            split=video.split,
            duration_s=durations_s.get(name, video.duration_s),
            segments=found.get(name, ()),
        )
        for name, video in videos.items()
    }


def _durations_s(dataset: str) -> dict[str, float]:
    """Return the durations of the files, as their headers state them."""
    files = [paths.availability(dataset, shard) for shard in {*shards.read(paths.shards(dataset)).values()}]
    read = [record for file in files if file.exists() for record in read_availability(file).values()]
    return {record.video: record.duration_s for record in read if record.duration_s}
