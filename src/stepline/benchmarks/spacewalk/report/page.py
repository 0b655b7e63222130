"""The page of a study: results by window length, labels and predictions over time, and outputs of the stages."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline import paths, tables
from stepline.asr import transcript
from stepline.asr.transcript import Sentence
from stepline.availability import Record, read_availability
from stepline.benchmark import Job
from stepline.benchmarks.spacewalk.items import read_items
from stepline.benchmarks.spacewalk.kinds import Choice
from stepline.datasets import demo
from stepline.datasets.studies import STEP_RECOGNITION
from stepline.report import Picture, svg_address
from stepline.report.shots import read_shots
from stepline.report.stages import Stages
from stepline.report.thumbnails import read_thumbnails
from stepline.runs.predictions import read_predictions
from stepline.runs.shown import timeline_command
from stepline.tables import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stepline.benchmarks.spacewalk.benchmark import Spacewalk

    Style = Mapping[str, tuple[str, str]]
    Track = Mapping[str, Mapping[int, int | None]]


def page(benchmark: "Spacewalk", rows: Sequence[Row]) -> dict[str, Any]:
    """Return the content of Table 2's page other than its tables; a method looks the same in all figures."""
    from stepline.benchmarks.spacewalk.report.figure_contexts import styles

    style = styles(rows)
    return {
        "figures": lambda part: by_context(part, style),
        "spreads": spreads(rows),
        "examples": timelines(benchmark),
        "stages": stages(benchmark),
    }


def by_context(rows: Sequence[Row], style: "Style") -> "dict[str, Figure]":
    """Draw a table on one release with all its metrics. style: from `figure_contexts.styles`."""
    from stepline.benchmarks.spacewalk.report.figure_contexts import contexts

    return {next(iter(tables.measures(rows))): contexts(rows, style)}


def spreads(rows: Sequence[Row]) -> list[Picture]:
    """Return a figure per table and release: the accuracy of each method on each video, at its longest window."""
    from stepline.benchmarks.spacewalk.report.figure_spread import longest_context, spread

    pictures = []
    for (table, release), part in tables.groups(rows).items():
        shown = longest_context(row for row in part if row.metric == "accuracy" and row.per_video)
        if shown:
            ranges = "; ".join(
                f"{row.method} {min(row.per_video.values()):.1f} to {max(row.per_video.values()):.1f}" for row in shown
            )
            alt = f"Accuracy of each video, in percent: {ranges}."
            caption = f"Table {table} on {release}: {part[0].title}"
            pictures.append(Picture(svg_address(spread(shown)), alt, caption))
    return pictures


def timelines(benchmark: "Spacewalk") -> list[Picture]:
    """Return a figure per test recording of the last release: labels over time, and the methods' predictions below."""
    from stepline.benchmarks.spacewalk.report.figure_timeline import timeline

    release = benchmark.releases[-1]
    tracks = _tracks(benchmark, release)
    pictures = []
    for video, items in read_items(benchmark.released.load(release), STEP_RECOGNITION, "test").items():
        labels = [item.label for item in items]
        shown = {name: [made[video].get(item.id) for item in items] for name, made in tracks.items() if video in made}
        shares = ", ".join(
            f"{name} {100 * sum(p == t for p, t in zip(track, labels, strict=True)) / len(labels):.1f} %"
            for name, track in shown.items()
        )
        alt = f"Labels of {len(labels)} samples of {video} over time, above predictions. Correct: {shares or 'none'}."
        drawn = timeline([item.t_s for item in items], labels, shown)
        command = timeline_command(benchmark.name, video)
        pictures.append(Picture(svg_address(drawn), alt, f"Recording {video}, release {release}", command))
    return pictures


def _tracks(benchmark: "Spacewalk", release: str) -> "dict[str, Track]":
    """Return the predictions of each method by video and sample: its lowest seed at its longest window.

    None is a guess.
    """
    jobs = [job for job in benchmark.jobs("table2") if job.release == release and job.entry.task == STEP_RECOGNITION]
    longest = {job.entry.id: job for job in jobs if job.entry.kind_name != "random"}
    tracks: dict[str, Track] = {}
    for job in longest.values():
        file = paths.predictions(benchmark.name, release, job.entry.id, job.context)
        made = read_predictions(file, Choice, benchmark.spec(job))[0] if file.exists() else []
        first = min((each.seed for each in made), default=0)
        tracks[_name(job)] = {
            each.video: {
                sample: None if label < 0 else label
                for sample, label in zip(each.ids.tolist(), each.chosen.tolist(), strict=True)
            }
            for each in made
            if (each.seed, each.split) == (first, "test")
        }
    return tracks


def _name(job: Job) -> str:
    setting = "" if job.entry.setting == "baseline" else f", {job.entry.setting}"
    return f"{job.entry.method}{setting}{'' if job.context_s is None else f', {job.context}'}"


def stages(benchmark: "Spacewalk") -> Stages | None:
    """Return the outputs of the stages for the study's videos; None if no stage has run."""
    name, shards = benchmark.name, benchmark.pipeline.videos.all_shards
    records: list[Record] = []
    for path in (paths.availability(name, shard) for shard in shards):
        records += read_availability(path).values() if path.exists() else []
    if not records:
        return None
    videos = [record.video for record in records if record.status == "present"]
    pictures = read_thumbnails(name, shards)
    return Stages(
        availability=records,
        shots={video: read_shots(paths.shots(name) / f"{video}.parquet") for video in videos},
        pictures=pictures.pictures,
        without_pictures=pictures.reasons,
        transcripts={video: _transcript(benchmark.pipeline.speech.folder / f"{video}.parquet") for video in videos},
        scripts={video: _script(video) for video in videos} if name == "demo" else {},
    )


def _transcript(path: Path) -> Sequence[Sentence]:
    return transcript.read(path) if path.exists() else ()


def _script(video: str) -> list[Sentence]:
    return [Sentence(text=text, start_s=start_s, end_s=end_s) for text, start_s, end_s in demo.sentences(video)]
