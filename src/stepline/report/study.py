"""The page of a study: its tables, figures of them, and examples."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class Part:
    """A table on one release: pictures of it, its lines, each with the command that explains it, and its panels."""

    title: str
    pictures: Sequence[Picture]
    windowed: bool
    lines: Sequence[tuple[tables.NumberLine, str]]
    panels: Sequence[tables.Panel]


def write_study(
    path: Path,
    rows: Sequence[Row],
    figures: "Figures",
    *,
    explain: Callable[[Row], str],
    spreads: Sequence[Picture] = (),
    stages: Stages | None = None,
    **shown: Any,
) -> None:
    """Write the page as one self-contained HTML file: no network, same inputs same bytes.

    rows: of all tables. figures: returns the figures of a table on one release by the metric that each is about; it is
    asked where there are numbers to draw, the paper's or ours. explain: returns the command that prints what stands
    behind a row, "" of a row without. spreads: figures of single videos' values. shown: ``title``, ``how_to_read``;
    ``examples``, figures of single videos, ``examples_title``, ``how_to_read_examples``.

    The first table that has a figure stands first, on its last release.
    """
    statuses = [row.status for row in rows]
    groups, drawn = tables.groups(rows), _drawn(rows, figures)
    table = next((table for table, _, _ in drawn), rows[0].table)
    first = [key for key in groups if key[0] == table and (not drawn or any(each[:2] == key for each in drawn))][-1]
    metric = next((metric for *group, metric in drawn if tuple(group) == first), "")
    parts = {group: _part(part, _pictures(group, part, drawn), explain) for group, part in groups.items()}
    write_html(
        path,
        "template.html.j2",
        **shown,
        counts=[(status, statuses.count(status)) for status in tables.MARKS if status in statuses],
        finding=tables.finding(rows, groups[first], metric),
        first=parts.pop(first),
        others=list(parts.values()),
        spreads=spreads,
        stages=stages and stage_values(stages),
        legend=tables.legend(rows),
        marks=tables.MARKS,
        meanings=tables.MEANINGS,
        oracles=list(dict.fromkeys(each.text for row in rows for each in row.sees if each.oracle)),
        rerun=next((row.rerun_note for row in rows if row.rerun), ""),
        blind=tables.blind_methods(rows),
        missing=tables.missing(rows),
        undeclared=tables.UNDECLARED,
        facts=tables.facts(rows),
    )


def _part(rows: Sequence[Row], pictures: Sequence[Picture], explain: Callable[[Row], str]) -> Part:
    return Part(
        title=f"Table {rows[0].table} on {rows[0].release}: {rows[0].title}",
        pictures=pictures,
        windowed=any(row.context_s is not None for row in rows),
        lines=[(line, explain(line.row)) for line in tables.lines(rows)],
        panels=tables.panels(rows),
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


def _pictures(
    group: tuple[str, str], rows: Sequence[Row], drawn: "Mapping[tuple[str, str, str], Figure]"
) -> list[Picture]:
    mine = {metric: figure for (*key, metric), figure in drawn.items() if tuple(key) == group}
    pictures = []
    for metric, figure in mine.items():
        caption = "" if len(mine) == 1 else tables.measures(rows)[metric].title
        pictures.append(Picture(svg_address(figure), _said(rows, metric), caption))
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
