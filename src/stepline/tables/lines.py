"""A line for each number, as a reader sees it: the paper's, ours, the difference, the status and the facts."""

from collections.abc import Sequence
from dataclasses import dataclass

from stepline.tables.layout import context_name, is_oracle, sees_text
from stepline.tables.rows import UNDECLARED, Row
from stepline.tables.text import difference_text, metric_text, percent


@dataclass(frozen=True, kw_only=True)
class NumberLine:
    """A number's cells as texts; empty where there is nothing to say. row: what they were made of.

    context: "" of all where no number has a window. ours: with its standard deviation over seeds. command: computes a
    missing number; "" of any other.
    """

    row: Row
    method: str
    oracle: bool
    context: str
    metric: str
    paper: str
    ours: str
    difference: str
    interval: str
    sees: str
    note: str
    command: str


def lines(rows: Sequence[Row]) -> list[NumberLine]:
    """Return a line for each row."""
    windowed = any(row.context_s is not None for row in rows)
    return [_line(row, windowed) for row in rows]


def _line(row: Row, windowed: bool) -> NumberLine:
    ours = row.value is not None and row.status != "reference"
    sd = "" if row.value_sd is None else f" ± {percent(row.value_sd)}"
    undeclared = row.status == "needs" and row.command == UNDECLARED
    return NumberLine(
        row=row,
        method=", ".join(filter(None, [row.method, row.modality])),
        oracle=is_oracle(row.sees),
        context=context_name(row.context_s) if windowed else "",
        metric=row.measure.title,
        paper=" ".join(filter(None, [row.printed, f"[{row.rerun}]" if row.rerun else ""])),
        ours=f"{metric_text(row.measure, row.value)}{sd}" if ours and row.value is not None else "",
        difference="" if row.difference is None else difference_text(row.measure, row.difference),
        interval=_interval(row.ci_low, row.ci_high),
        sees=sees_text(row.sees),
        note="; ".join(filter(None, [row.note, row.command if undeclared else ""])),
        command="" if undeclared else row.command,
    )


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{percent(low)} to {percent(high)}"


LINE_COLUMNS = (
    *("Method", "Setting", "Context", "Metric", "Paper", "Ours", "Difference", "Status"),
    *("95 % interval", "Seeds", "It may see"),
)


def computed(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return the computed numbers with what stands beside them, as texts in the order of ``LINE_COLUMNS``."""
    return [
        (
            *(line.method, line.row.setting, line.context, line.metric, line.paper, line.ours, line.difference),
            "; ".join(filter(None, [line.row.status, line.row.beside])),
            *(line.interval, str(len(line.row.seeds)) if line.row.seeds else "", line.sees),
        )
        for line in lines(rows)
        if line.ours
    ]
