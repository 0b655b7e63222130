"""The page of a study: its tables, figures of them, and examples."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline import tables
from stepline.io import write_bytes
from stepline.report import Picture, svg_address, write_html
from stepline.report.stages import Stages, stage_values
from stepline.tables import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Figures = Callable[[Sequence[Row]], Mapping[str, Figure]]

VALUES_SAID = 40
"""Values of a figure that its text lists; of more it says the highest."""


def write_study(
    path: Path,
    rows: Sequence[Row],
    figures: "Figures",
    *,
    spreads: Sequence[Picture] = (),
    stages: Stages | None = None,
    **shown: Any,
) -> None:
    """Write the page as one self-contained HTML file: no script, no network, same inputs same bytes.

    rows: of all tables. figures: returns the figures of a table on one release by the metric that each is about; it is
    asked where there are numbers to draw, the paper's or ours. spreads: figures of single videos' values. shown:
    ``title``, ``how_to_read``; ``examples``, figures of single videos, ``examples_title``, ``how_to_read_examples``.
    """
    statuses = [row.status for row in rows]
    write_html(
        path,
        "template.html.j2",
        **shown,
        counts=[(status, statuses.count(status)) for status in tables.MARKS if status in statuses],
        results=_results(rows, figures),
        spreads=spreads,
        stages=stages and stage_values(stages),
        legend=tables.legend(rows),
        panels=tables.panels(rows),
        marks=tables.MARKS,
        missing=tables.missing(rows),
        facts=tables.facts(rows),
        value_columns=tables.VALUE_COLUMNS,
        values={group: tables.values(part) for group, part in tables.groups(rows).items()},
    )


def write_figure(path: Path, rows: Sequence[Row], figures: "Figures") -> None:
    """Write the first of the figures of ``rows`` as SVG, an empty one where nothing can be drawn."""
    from matplotlib.figure import Figure

    from stepline.report.figures import render

    write_bytes(path, render(next(iter(_drawn(rows, figures).values()), Figure())))


def _drawn(rows: Sequence[Row], figures: "Figures") -> "dict[tuple[str, str, str], Figure]":
    """Return figures by table, release and metric."""
    from stepline.report.figures import has_number

    return {
        (*group, metric): figure
        for group, part in tables.groups(rows).items()
        if any(map(has_number, part))
        for metric, figure in figures(part).items()
    }


def _results(rows: Sequence[Row], figures: "Figures") -> list[Picture]:
    groups, drawn = tables.groups(rows), _drawn(rows, figures)
    pictures = []
    for (table, release, metric), figure in drawn.items():
        part = groups[table, release]
        alone = sum(key[:2] == (table, release) for key in drawn) == 1
        name = "" if alone else f", {tables.measures(part)[metric].title}"
        caption = f"Table {table} on {release}: {part[0].title}{name}"
        pictures.append(Picture(svg_address(figure), _said(part, metric), caption))
    return pictures


def _said(rows: Sequence[Row], metric: str) -> str:
    """Return the computed values of a metric in words."""
    measure = tables.measures(rows)[metric]
    computed = [row for row in rows if row.metric == metric and row.status != "reference"]
    known = [(row.value, row) for row in computed if row.value is not None]
    values = [f"{_name(row)} {tables.metric_text(measure, value)}" for value, row in known]
    if len(values) > VALUES_SAID:
        _, best = max(zip(known, values, strict=True), key=lambda each: each[0][0])
        values = [f"{len(values)} values, which the tables below hold; the highest is {best}"]
    return f"{measure.title}{'' if measure.count else ' in percent'}: {'; '.join(values) or 'nothing computed yet'}."


def _name(row: Row) -> str:
    context = "" if row.context_s is None else tables.context_name(row.context_s)
    return " ".join(filter(None, [row.method, row.modality, row.setting, context]))
