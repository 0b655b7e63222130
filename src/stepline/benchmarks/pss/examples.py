"""Segments of some videos over time."""

from stepline import paths
from stepline.benchmark import Benchmark, Entry
from stepline.benchmarks.pss.kinds import Segmentation
from stepline.datasets import pss
from stepline.report import Picture, svg_address
from stepline.runs.predictions import read_predictions

SHOWN = 3
"""Videos whose segments are drawn, of each data set: the first of the test split that are evaluated."""
TRACKS = {"uniform-segments": "8 or 10 parts", "pdvc-s3d": "PDVC, S3D", "softsoda-s3d": "SoftSODA, S3D"}


def timelines(benchmark: Benchmark[Entry]) -> list[Picture]:
    """Return the annotated segments of some videos, and below them predictions of the lowest seed."""
    return [picture for release in benchmark.options["releases"] for picture in _timelines(benchmark, release)]


def _timelines(benchmark: Benchmark[Entry], release: str) -> list[Picture]:
    from stepline.benchmarks.pss.figure_segments import segments

    tracks: dict[str, dict[str, tuple[tuple[float, float], ...]]] = {}
    for job in benchmark.jobs():
        file = paths.predictions(benchmark.name, release, job.entry.id, job.context)
        if job.release == release and job.entry.id in TRACKS and file.exists():
            made, _ = read_predictions(file, Segmentation, benchmark.spec(job))
            first = min((p.seed for p in made), default=0)
            tracks[TRACKS[job.entry.id]] = {p.video: p.segments for p in made if (p.seed, p.split) == (first, "test")}
    pictures = []
    procedures = pss.load(release, "test")
    shown = [video for video in procedures if any(video in found for found in tracks.values())]
    for video in shown[:SHOWN]:
        drawn = {"annotated": procedures[video].segments}
        drawn |= {name: tracks[name][video] for name in TRACKS.values() if video in tracks.get(name, {})}
        alt = f"Segments of {video} over time: " + "; ".join(f"{name} {len(each)}" for name, each in drawn.items())
        figure = segments(procedures[video].duration_s, drawn)
        pictures.append(Picture(svg_address(figure), alt, f"{video}, {release}"))
    return pictures
