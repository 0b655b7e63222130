"""The page of PSS: its tables, their pictures, and segments of some videos over time."""

from collections.abc import Sequence
from pathlib import Path

from stepline import paths
from stepline.benchmarks.pss.plan import Plan
from stepline.benchmarks.pss.predictions import read_predictions
from stepline.benchmarks.pss.table import table_rows
from stepline.datasets import pss
from stepline.io import write_bytes
from stepline.report import Picture, svg_address, write_tables
from stepline.tables import Row, groups, metric_text

SHOWN = 3
"""Videos whose segments are drawn, of each data set: the first of the test split that are evaluated."""
TRACKS = {"uniform-segments": "8 or 10 parts", "pdvc-s3d": "PDVC, S3D", "softsoda-s3d": "SoftSODA, S3D"}
HOW_TO_READ = (
    "Filled markers are ours, with the 95 % interval by bootstrap over the videos; hollow ones are the paper's. A star "
    "marks a method that sees more than any system would have."
)
HOW_TO_READ_TIMELINES = "The top strip holds the annotated segments, the strips below predictions of the lowest seed."


def write_report(plan: Plan, path: Path) -> None:
    """Write the HTML page and, beside it, ``table2.svg``: SODA-D of Table 2, or what the first table is about."""
    from stepline.report.figure_scores import scores
    from stepline.report.figures import render

    rows = [row for target in plan.tables for row in table_rows(plan, target)]
    drawn = {group: scores(part, _metric(part)) for group, part in groups(rows).items()}
    results = [
        Picture(svg_address(drawn[table, release]), _said(part), f"Table {table} on {release}: {part[0].title}")
        for (table, release), part in groups(rows).items()
    ]
    write_tables(
        path,
        title="PSS: ordered segmentation and summarisation",
        rows=rows,
        results=results,
        how_to_read=HOW_TO_READ,
        examples=[picture for release in plan.datasets for picture in _timelines(plan, release)],
        how_to_read_examples=HOW_TO_READ_TIMELINES,
    )
    shown = ("2", "youcook2")
    write_bytes(path.with_name("table2.svg"), render(drawn[shown] if shown in drawn else next(iter(drawn.values()))))


def _metric(rows: Sequence[Row]) -> str:
    return next(metric for metric in ("soda_d", "cider") if any(row.metric == metric for row in rows))


def _said(rows: Sequence[Row]) -> str:
    metric = _metric(rows)
    values = [
        f"{row.method} {row.modality} {row.setting} {metric_text(metric, row.value)}"
        for row in rows
        if row.metric == metric and row.value is not None
    ]
    return f"{metric} in percent: {'; '.join(values) or 'nothing computed yet'}."


def _timelines(plan: Plan, release: str) -> list[Picture]:
    from stepline.report.figure_segments import segments

    tracks: dict[str, dict[str, tuple[tuple[float, float], ...]]] = {}
    for entry, name in TRACKS.items():
        file = paths.predictions("pss", release, entry, paths.context_label(None))
        if (entry, release) in plan.pairs() and not plan.lacking(plan.entries[entry], release) and file.exists():
            made, _ = read_predictions(file)
            first = min((p.seed for p in made), default=0)
            tracks[name] = {p.video: p.segments for p in made if (p.seed, p.split) == (first, "test")}
    pictures = []
    shown = [video for video in pss.load(release, "test") if any(video in found for found in tracks.values())]
    for video in shown[:SHOWN]:
        procedure = pss.load(release, "test")[video]
        drawn = {"annotated": procedure.segments}
        drawn |= {name: found[video] for name, found in tracks.items() if video in found}
        alt = f"Segments of {video} over time: " + "; ".join(f"{name} {len(each)}" for name, each in drawn.items())
        pictures.append(Picture(svg_address(segments(procedure.duration_s, drawn)), alt, f"{video}, {release}"))
    return pictures
