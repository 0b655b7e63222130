"""Predictions of single videos, as pages show them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stepline import paths
from stepline.availability import read_availability
from stepline.benchmark import Benchmark
from stepline.invocation import current
from stepline.report import Picture, svg_address
from stepline.runs.predictions import read_predictions

SHOWN = 3
"""Videos that are drawn of each release."""


def lowest_seed(benchmark: Benchmark[Any], release: str, entries: Iterable[str]) -> dict[str, list[Any]]:
    """Return the predictions of some entries on a release by their lowest seed, by id, as far as they are there."""
    found: dict[str, list[Any]] = {}
    for job in benchmark.jobs():
        file = benchmark.predictions(job)
        if job.release == release and job.entry.id in entries and file.exists():
            made, _ = read_predictions(file, benchmark.prediction, benchmark.spec(job))
            first = min((each.seed for each in made), default=0)
            found[job.entry.id] = [each for each in made if each.seed == first]
    return found


def timeline_command(dataset: str, video: str, *options: str) -> str:
    """Return the command that makes the timeline of a video, with options of ``stepline show``.

    It is empty where the video is not there.
    """
    record = paths.videos(dataset) / f"{video}.json"
    there = record.exists() and read_availability(record)[video].status == "present"
    return current().verb("show", dataset, video, *options) if there else ""


def timelines(
    benchmark: Benchmark[Any],
    tracks: Mapping[str, str],
    annotated: Callable[[str], Mapping[str, Any]],
    *,
    most: int | None = None,
) -> list[Picture]:
    """Return pictures of the first predicted videos of each release: annotated segments, and below them predicted ones.

    tracks: the names of entries whose predictions have ``segments``, by id. annotated: returns the videos of a release
    by id, each with ``duration_s`` and ``segments``. most: of the predicted segments, the first; None is all of them.
    """
    from stepline.report.figure_segments import segments

    pictures = []
    for release in benchmark.options["releases"]:
        truth, made = annotated(release), lowest_seed(benchmark, release, tracks)
        found = {tracks[entry]: {each.video: each.segments for each in listed} for entry, listed in made.items()}
        for video in [video for video in truth if any(video in track for track in found.values())][:SHOWN]:
            drawn = {"annotated": truth[video].segments}
            shown = {entry: name for entry, name in tracks.items() if video in found.get(name, {})}
            drawn |= {name: found[name][video][:most] for name in shown.values()}
            alt = f"Segments of {video} over time: " + "; ".join(f"{name} {len(each)}" for name, each in drawn.items())
            figure = segments(truth[video].duration_s, drawn)
            options = [word for entry in shown for word in ("--entry", entry)]
            command = timeline_command(benchmark.dataset(release), video, *options, "--release", release)
            pictures.append(Picture(svg_address(figure), alt, f"{video}, {release}", command))
    return pictures
