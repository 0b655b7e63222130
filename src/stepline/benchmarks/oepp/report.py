"""The page of OEPP: its tables, their pictures, and plans of some windows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline import paths
from stepline.benchmarks.oepp.plan import Plan
from stepline.benchmarks.oepp.predictions import read_predictions
from stepline.benchmarks.oepp.table import PARTS, table_rows
from stepline.benchmarks.oepp.windows import windows
from stepline.datasets import oepp
from stepline.datasets.oepp import Part
from stepline.io import write_bytes
from stepline.report import Picture, svg_address, write_tables
from stepline.tables import METRICS, Row, groups, metric_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stepline.report.figure_plans import PlannedWindow

SHOWN = 3
"""Windows of each test part whose plans are drawn: the first ones of as many events that are not padded."""
PLANNERS = {
    "matching-t3": "Matching",
    "mlp-t3": "MLP",
    "transformer-t3": "Transformer",
    "pdpp-t3": "PDPP*",
    "vlm-t3-1": "",
}
HORIZON = 3
DRAWN = {"6": ("base_acc", "novel_acc")}
"""The metrics that are drawn of a table; of others the success rates."""
BY_HORIZON = ("3", "6")
"""The tables whose lines differ by the horizon."""
HOW_TO_READ = (
    "Filled markers are ours, with the 95 % interval by bootstrap over the videos; hollow ones are the paper's. A "
    "bound that the paper prints (<0.01) has no marker. Random is an exact expectation: nothing is drawn."
)
HOW_TO_READ_PLANS = "The top row holds the true actions, the rows below plans of the lowest seed; ✓ marks a right step."


def write_report(plan: Plan, path: Path) -> None:
    """Write the HTML page and, beside it, ``table2.svg``: the success rates of Table 2, or of the first table."""
    from stepline.report.figures import render

    rows = [row for target in plan.tables for row in table_rows(plan, target)]
    drawn = {
        (*group, metric): _figure(part, metric)
        for group, part in groups(rows).items()
        for metric in DRAWN.get(group[0], ("base_sr", "novel_sr"))
        if any(row.metric == metric for row in part)
    }
    results = [
        Picture(
            svg_address(figure), _said(part, metric), f"Table {table} on {release}: {part[0].title}, {METRICS[metric]}"
        )
        for (table, release, metric), figure in drawn.items()
        for part in [groups(rows)[table, release]]
    ]
    write_tables(
        path,
        title="OEPP: open-event procedure planning",
        rows=rows,
        results=results,
        how_to_read=HOW_TO_READ,
        examples=[picture for release in plan.study_config["releases"] for picture in _plans(plan, release)],
        how_to_read_examples=HOW_TO_READ_PLANS,
        examples_title="Plans",
    )
    first = next((figure for group, figure in drawn.items() if group[0] == "2"), next(iter(drawn.values()), None))
    write_bytes(path.with_name("table2.svg"), render(first or _figure(rows, "videos")))


def _figure(rows: Sequence[Row], metric: str) -> "Figure":
    from stepline.report.figure_plans import horizons
    from stepline.report.figure_scores import scores

    return horizons(rows, metric) if rows[0].table in BY_HORIZON else scores(rows, metric)


def _said(rows: Sequence[Row], metric: str) -> str:
    values = [
        f"{' '.join(filter(None, [row.method, row.modality, row.setting]))} {metric_text(metric, row.value)}"
        for row in rows
        if row.metric == metric and row.value is not None
    ]
    return f"{METRICS[metric]} in percent: {'; '.join(values) or 'nothing computed yet'}."


def _plans(plan: Plan, release: str) -> list[Picture]:
    from stepline.report.figure_plans import plans

    if not oepp.is_here(release):
        return []
    made: dict[str, Mapping[tuple[str, str, int], tuple[int, ...]]] = {}
    for entry, name in PLANNERS.items():
        file = paths.predictions("oepp", release, entry, paths.context_label(None))
        if (entry, release) in plan.pairs() and not plan.lacking(plan.entries[entry], release) and file.exists():
            found, _ = read_predictions(file)
            seed = min((each.seed for each in found), default=0)
            made[name or plan.study_config["llm"]["model"]] = {
                (each.part, each.video, each.index): each.plan for each in found if each.seed == seed
            }
    pictures = []
    parts: tuple[Part, ...] = ("base", "novel")
    for part in parts:
        shown = _shown(release, part, made)
        if shown:
            alt = "; ".join(
                f"{each.title}: {', '.join(each.true)}"
                + "".join(f"; {name}: {', '.join(map(str, steps))}" for name, steps in each.plans.items())
                for each in shown
            )
            pictures.append(Picture(svg_address(plans(shown)), alt, f"Plans of {PARTS[part]} windows, {release}"))
    return pictures


def _shown(release: str, part: Part, made: Mapping[str, Any]) -> "list[PlannedWindow]":
    from stepline.report.figure_plans import PlannedWindow

    pool = oepp.pool(release, part)
    found: dict[str, PlannedWindow] = {}
    for video in oepp.load(release, part):
        for window in windows([video], HORIZON, "drop")[:1]:
            key = part, window.video, window.index
            named = {
                name: [pool[each] if each >= 0 else None for each in p[key]] for name, p in made.items() if key in p
            }
            if named:
                found.setdefault(
                    video.event,
                    PlannedWindow(
                        title=f"{video.event}, {video.id}",
                        true=window.actions,
                        plans={name: tuple(steps) for name, steps in named.items()},
                    ),
                )
    return list(found.values())[:SHOWN]
