"""The page of a study of recordings and windows: results by window length, labels and predictions over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepline import tables
from stepline.io import read_json, read_table
from stepline.report import Picture, svg_address
from stepline.report.stages import Stages
from stepline.report.study import write_study
from stepline.tables import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The labels of a release's test recordings over time, and what methods predicted.

    samples: the file of a split's samples, ``{video: [{"frame_index", "label", "id"}]}``; time is frame_index / fps.
    predictions: method name to its Parquet file (columns seed, video, sample, prediction; null is a uniform guess); the
    lowest seed is shown. A file that is absent is left out.
    """

    release: str
    samples: Path
    fps: float
    predictions: Mapping[str, Path]


WINDOWED = (
    "Filled markers are ours, with the 95 % interval by bootstrap over the videos; hollow ones are the paper's. Dashed "
    "lines are baselines and references whose value has no window length or one only. Slashes mark a broken axis."
)
LABELS = (
    "The top strip holds the labels, the strips below the predictions. Steps run from dark to light in the order of "
    "the script; grey is Irrelevant, white a uniform guess."
)


def write_report(
    path: Path,
    *,
    title: str,
    rows: Sequence[Row],
    timelines: Sequence[Timeline] = (),
    stages: Stages | None = None,
) -> None:
    """Write the page; the arguments are those of `stepline.report.study.write_study`.

    timelines: one per release that is to be shown.
    """
    from stepline.report.figure_contexts import styles

    write_study(
        path,
        title=title,
        rows=rows,
        figures=lambda part: by_context(part, styles(rows)),
        how_to_read=WINDOWED,
        spreads=_spreads(rows),
        examples=[picture for timeline in timelines for picture in _timeline(timeline)],
        how_to_read_examples=LABELS,
        stages=stages,
    )


def by_context(rows: Sequence[Row], style: Mapping[str, tuple[str, str]]) -> "dict[str, Figure]":
    """Draw a table on one release by all its metrics. style: of `stepline.report.figure_contexts.styles`."""
    from stepline.report.figure_contexts import contexts

    return {next(iter(tables.measures(rows))): contexts(rows, style)}


def _spreads(rows: Sequence[Row]) -> list[Picture]:
    from stepline.report.figure_spread import longest_context, spread

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


def _timeline(timeline: Timeline) -> list[Picture]:
    from stepline.report import figure_timeline

    present = {name: path for name, path in timeline.predictions.items() if path.is_file()}
    predictions = {name: _predictions(path) for name, path in present.items()}
    pictures = []
    for video, samples in read_json(timeline.samples).items():
        times = [sample["frame_index"] / timeline.fps for sample in samples]
        labels = [sample["label"] for sample in samples]
        tracks = {}
        for name, found in predictions.items():
            if video in found:
                tracks[name] = [found[video].get(sample["id"]) for sample in samples]
        shares = ", ".join(
            f"{name} {100 * sum(p == t for p, t in zip(track, labels, strict=True)) / len(labels):.1f} %"
            for name, track in tracks.items()
        )
        alt = f"Labels of {len(labels)} samples of {video} over time, above the predictions. Right: {shares or 'none'}."
        drawn = figure_timeline.timeline(times, labels, tracks)
        pictures.append(Picture(svg_address(drawn), alt, f"Recording {video}, release {timeline.release}"))
    return pictures


def _predictions(path: Path) -> dict[str, dict[int, int | None]]:
    """Return the predictions of the lowest seed on the test split, by video and sample."""
    columns = ["seed", "split", "video", "sample", "prediction"]
    table = read_table(path, columns=columns, filters=[("split", "==", "test")]).to_pylist()
    first = min((record["seed"] for record in table), default=0)
    found: dict[str, dict[int, int | None]] = {}
    for record in table:
        if record["seed"] == first:
            found.setdefault(record["video"], {})[record["sample"]] = record["prediction"]
    return found
