"""The report of a study: tables, figures and examples."""

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
"""Maximum number of values listed in a figure's text; with more values, it states only the highest."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A table on one release: its figures, its lines with the commands that explain them, and its panels."""

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
    """Write the page as one self-contained HTML file without network access. Equal inputs produce equal bytes.

    rows: the rows of all tables. figures: returns the figures of a table on one release by metric, from its rows with a
    number to draw, ours or the paper's. explain: returns the command that explains a row, or "". spreads:
    figures of per-video values. shown: ``title`` and ``how_to_read``; ``examples`` (figures of single videos),
    ``examples_title`` and ``how_to_read_examples``.

    The page begins with the first table that has a figure, on its last release.
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
        truncated=tables.TRUNCATES if any(row.truncated for row in rows) else "",
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
    """Write the first figure of ``rows`` as SVG, or an empty figure if there is nothing to draw."""
    from matplotlib.figure import Figure

    from stepline.report.figures import render

    write_bytes(path, render(next(iter(_drawn(rows, figures).values()), Figure())))


def _drawn(rows: Sequence[Row], figures: "Figures") -> "dict[tuple[str, str, str], Figure]":
    """Return the figures by table, release and metric."""
    from stepline.report.figures import has_number

    return {
        (*group, metric): figure
        for group, part in tables.groups([row for row in rows if has_number(row)]).items()
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
    """Return the computed values of a metric as text."""
    measure = tables.measures(rows)[metric]
    computed = [row for row in rows if row.metric == metric and row.status != "reference"]
    known = [(row.value, row) for row in computed if row.value is not None]
    values = [f"{_name(row)} {tables.metric_text(measure, value)}" for value, row in known]
    if len(values) > VALUES_SAID:
        _, best = max(zip(known, values, strict=True), key=lambda each: each[0][0])
        values = [f"{len(values)} values, listed in the tables below; the highest is {best}"]
    unit = " in percent" if measure.unit == "%" else ""
    return f"{measure.title}{unit}: {'; '.join(values) or 'nothing computed yet'}."


def _name(row: Row) -> str:
    context = "" if row.context_s is None else tables.context_name(row.context_s)
    return " ".join(filter(None, [row.method, row.modality, row.setting, context]))
