"""The annotations of a data set's videos, from whatever source it has."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from stepline.benchmark import Benchmark
from stepline.datasets.dataset import Dataset
from stepline.datasets.segments import LabelledSpan, known_ends_s, read_segments
from stepline.errors import ReleaseError
from stepline.features.export.job import Annotated


def annotations(
    dataset: Dataset, benchmarks: Sequence[Benchmark[Any]], ends_s: Mapping[str, float] = MappingProxyType({})
) -> dict[str, Annotated]:
    """Return split, duration and segments of all videos.

    The segments are the user's, without times after ``ends_s``, see ``read_segments``. Videos without them have the
    true segments of the first configured release that has any. A duration is that of the file, or else of the release.
    Raises ReleaseError if a release is absent or damaged.
    """
    videos = {video.id: video for video in dataset.videos()}
    if not videos:
        raise ReleaseError(f"{dataset.name} lists no videos: run `stepline fetch {dataset.listed_by or dataset.name}`")
    found = read_segments(dataset.name, dataset.segments, videos, ends_s=ends_s) if dataset.segments else {}
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
    known_s = known_ends_s(dataset.name)
    return {
        name: Annotated(
            split=video.split,
            duration_s=known_s.get(name, video.duration_s),
            segments=found.get(name, ()),
        )
        for name, video in videos.items()
    }
