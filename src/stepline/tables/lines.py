"""The printed line of each number: the paper's value, ours, the difference, the status and the facts."""

from collections.abc import Sequence
from dataclasses import dataclass

from stepline.tables.layout import context_name, is_oracle, sees_text
from stepline.tables.rows import UNDECLARED, Row
from stepline.tables.text import difference_text, metric_text, percent


@dataclass(frozen=True, kw_only=True)
class NumberLine:
    """The cells of a number as text; "" for empty cells. row: the row they come from.

    context: "" if no number has a window. ours: includes the standard deviation over seeds. command: computes a missing
    number; "" for other numbers.
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
    """Return one line per row."""
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
        paper=row.paper_text,
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
    *("95 % interval", "Seeds", "Input", "Note"),
)


def computed(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return the lines of the computed numbers, as texts in the order of ``LINE_COLUMNS``."""
    return [
        (
            *(line.method, line.row.setting, line.context, line.metric, line.paper, line.ours, line.difference),
            *(line.row.status, line.interval, str(len(line.row.seeds)) if line.row.seeds else "", line.sees, line.note),
        )
        for line in lines(rows)
        if line.ours
    ]
