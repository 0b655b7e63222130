"""Formatting of values in cells."""

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from stepline.benchmark.words import Metric


def round_half_up(value: float, step: Decimal) -> Decimal:
    """Return ``value`` rounded half up to the digits of ``step``, tolerating float errors just below a half."""
    return Decimal(repr(round(value, 8))).quantize(step, ROUND_HALF_UP)


def percent(value: float) -> str:
    """Return a percentage with 2 decimals, as in the papers."""
    return str(round_half_up(value, Decimal("0.01")))


def metric_text(metric: Metric, value: float) -> str:
    """Return a metric's value as text without unit: a whole number for a count, otherwise with 2 decimals."""
    return str(round_half_up(value, Decimal(1))) if metric.unit == "count" else percent(value)


def shown_value(metric: Metric, value: float) -> str:
    """Return a metric's value with its unit."""
    return metric_text(metric, value) + (" %" if metric.unit == "%" else "")


def difference_text(metric: Metric, difference: float) -> str:
    """Return a difference from the paper's value with its sign, or without sign if it rounds to zero."""
    text = metric_text(metric, difference)
    return f"{'+' if difference > 0 else ''}{text}" if float(text) else text.removeprefix("-")


def value_text(value: Any) -> str:
    """Return an option's or a cell's value as text; lists are joined with commas."""
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
    """Return a number without trailing zeros, "" if unknown."""
    return "" if value is None else f"{float(value)!r}".removesuffix(".0")
