"""Values as the text of cells."""

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from stepline.benchmark.words import Metric


def round_half_up(value: float, step: Decimal) -> Decimal:
    """Return ``value`` with the digits of ``step``; halves go up, also those just below which a float lies."""
    return Decimal(repr(round(value, 8))).quantize(step, ROUND_HALF_UP)


def percent(value: float) -> str:
    """Return a percentage with the 2 decimals of the papers."""
    return str(round_half_up(value, Decimal("0.01")))


def metric_text(metric: Metric, value: float) -> str:
    """Return a metric's value as it is shown: a whole number of a count, else a percentage."""
    return str(round_half_up(value, Decimal(1))) if metric.count else percent(value)


def shown_value(metric: Metric, value: float) -> str:
    """Return a metric's value with its unit."""
    return metric_text(metric, value) + ("" if metric.count else " %")


def difference_text(metric: Metric, difference: float) -> str:
    """Return a difference from the paper's value with its sign; none of what rounds to zero."""
    text = metric_text(metric, difference)
    return f"{'+' if difference > 0 else ''}{text}" if float(text) else text.removeprefix("-")


def value_text(value: Any) -> str:
    """Return an option's or a cell's value as text; lists are joined by a comma."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        return ",".join(map(value_text, value))
    return str(value)


def number_text(value: float | None) -> str:
    """Return a number without needless zeros, empty where it is unknown."""
    return "" if value is None else f"{float(value)!r}".removesuffix(".0")
