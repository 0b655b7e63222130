"""Tables as files: tidy CSV, and Markdown as in the paper."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from stepline.io import csv_text, write_text
from stepline.printable import printable
from stepline.tables.layout import Panel, facts, groups, missing, panels
from stepline.tables.lines import LINE_COLUMNS, computed
from stepline.tables.rows import COLUMNS, TRUNCATED, Row
from stepline.tables.status import MARKS, MEANINGS, TRUNCATES
from stepline.tables.text import metric_text, number_text, value_text


def write_csv(rows: Sequence[Row], path: Path | str) -> None:
    """Write the rows as tidy CSV, one line per number.

    Values have 4 decimals, counts none. Unknown values are empty. Lists are joined with ';'.
    """
    write_lines(path, COLUMNS, ([_csv_cell(row, column) for column in COLUMNS] for row in rows))


def write_lines(path: Path | str, header: Sequence[str], body: Iterable[Iterable[Any]]) -> None:
    """Write rows as CSV below a header."""
    write_text(path, csv_text(header, body))


def _csv_cell(row: Row, column: str) -> str:
    if column in ("paper", "options"):
        return row.printed if column == "paper" else row.options_text
    value = getattr(row, column)
    if column == "context_s":
        return number_text(value)
    if isinstance(value, tuple):
        return ";".join(map(str, value))
    if isinstance(value, float):
        return metric_text(row.measure, value) if row.measure.unit == "count" else f"{round(value, 4) + 0.0:.4f}"
    return value_text(value)


def legend(rows: Sequence[Row]) -> str:
    """Return the legend of the cells in laid-out tables."""
    counted = any(row.measure.unit == "count" for row in rows)
    truncated = any(row.truncated for row in rows)
    cut = f" {TRUNCATED} after a number: {TRUNCATES}." if truncated else ""
    whole = ", counts as whole numbers" if counted else ""
    return (
        f"Each cell: ours (the paper's [another run by its authors, see below]) and the mark of its status.{cut} "
        f"Values in percent unless a column says otherwise{whole}."
    )


def write_markdown(rows: Sequence[Row], path: Path | str, *, title: str) -> None:
    """Write the rows laid out as in the paper, then the missing numbers, then notes on how to read the tables."""
    statuses = {row.status for row in rows}
    marks = [(mark, status, MEANINGS[status]) for status, mark in MARKS.items() if status in statuses]
    parts = [
        f"# {title}",
        f"{legend(rows)} Bold: a method with input that no real system would have.",
        markdown_table(("Mark", "Status", "Meaning"), marks),
    ]
    for panel in panels(rows):
        parts += [f"## {panel.title}", _markdown_panel(panel)]
    gaps = missing(rows)
    parts += ["## What is missing"]
    if gaps:
        cells = [
            (gap.needs, str(gap.count), "; ".join(gap.methods), f"`{gap.command}`" if gap.command else "")
            for gap in gaps
        ]
        parts += [markdown_table(("Needs", "Numbers", "Methods", "Command"), cells)]
    else:
        parts += ["Nothing."]
    for (table, release, terms), part in zip(facts(rows), groups(rows).values(), strict=True):
        parts += [f"## Table {table}, release {release}: how to read it"]
        parts += ["\n".join(f"- **{term}**: {_escape(text)}" for term, text in terms)]
        if numbers := computed(part):
            parts += [markdown_table(LINE_COLUMNS, numbers)]
    write_text(path, "\n\n".join(parts) + "\n")


def _markdown_panel(panel: Panel) -> str:
    body = []
    for line in panel.lines:
        method = f"**{line.method}: sees {line.sees}**" if line.oracle else line.method
        body.append((line.setting, method, line.modality, *(cell.text for cell in line.cells)))
    return markdown_table(("Setting", "Method", "Modality", *panel.columns), body)


def markdown_table(header: Sequence[str], body: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown, with markup in cells escaped."""
    lines = [header, ["---"] * len(header), *body]
    return "\n".join("| " + " | ".join(_escape(cell) for cell in line) + " |" for line in lines)


def _escape(text: str) -> str:
    return printable(" ".join(text.replace("|", "\\|").replace("<", "&lt;").split()))
