"""Truth and predictions of one video over time, as a benchmark says them of each of its jobs."""

from collections.abc import Iterator, Sequence
from typing import Any

from stepline.benchmark import Benchmark, InTime, Job
from stepline.errors import ConfigError, SteplineError
from stepline.report.timeline.track import Track
from stepline.runs.predictions import read_predictions


def truth(benchmark: Benchmark[Any], dataset: str, video: str, release: str = "") -> Iterator[Track]:
    """Yield the true steps of a video by each configured release that has it; a note where a release cannot be read."""
    for each in _releases(benchmark, dataset, release):
        job = next((job for job in benchmark.jobs() if job.release == each), None)
        try:
            found = benchmark.in_time(benchmark.inputs(job), video, None) if job else None
        except SteplineError as error:
            yield Track(name=f"True steps, {each}", note=str(error))
            continue
        if found and found.truth:
            yield Track(name=f"True steps, {each}", spans=found.truth)


def predicted(
    benchmark: Benchmark[Any], dataset: str, video: str, entry: str, release: str = "", context: str = ""
) -> list[Track]:
    """Return what an entry says of a video, by its lowest seed: of each release and window length, or of those named.

    An entry without windows is shown at any length. Raises ConfigError where the benchmark has no such job, StoreError
    where its predictions are absent or stale.
    """
    releases = _releases(benchmark, dataset, release)
    jobs = [job for job in benchmark.jobs(entry=entry) if job.release in releases and job.entry.id == entry]
    chosen = [job for job in jobs if context in ("", job.context)] or [job for job in jobs if job.context == "all"]
    if not chosen:
        of = f"has no predictions of {entry} on {', '.join(releases) or dataset}"
        known = ", ".join(dict.fromkeys(job.context for job in jobs))
        raise ConfigError(f"{benchmark.name} {of}" + (f" at {context}; choose from {known}" if known else ""))
    return [_track(benchmark, video, job) for job in chosen]


def _releases(benchmark: Benchmark[Any], dataset: str, release: str) -> Sequence[str]:
    known: list[str] = [each for each in benchmark.options["releases"] if benchmark.dataset(each) == dataset]
    if release and release not in known:
        raise ConfigError(f"release {release!r} of {dataset} is not configured; choose from {', '.join(known)}")
    return [release] if release else known


def _track(benchmark: Benchmark[Any], video: str, job: Job) -> Track:
    name = f"{job.entry.id}, {job.release}, {job.context}"
    made, about = read_predictions(benchmark.predictions(job), benchmark.prediction, benchmark.spec(job))
    if not made:
        return Track(name=name, note=f"nothing predicted: needs {', '.join(about['needs'])}")
    inputs = benchmark.inputs(job)
    selected, _ = benchmark.select(inputs, made)
    first = min(each.seed for each in selected)
    mine = [each for each in selected if each.video == video and each.seed == first]
    if not mine:
        splits = ", ".join(dict.fromkeys(each.split for each in selected))
        return Track(name=name, note=f"nothing predicted for this video; the predictions are of {splits}")
    found: InTime | None = benchmark.in_time(inputs, video, mine[-1])
    if found is None:
        return Track(name=name, note="its predictions have no times, or the true steps of this video are not known")
    return Track(name=name, spans=found.predicted, rule=found.rule, predicted=True)
