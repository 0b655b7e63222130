"""Numbers to draw, and what was drawn."""

from typing import Any

from matplotlib.figure import Figure

from stepline.tables import Number
from tests.tables.numbers import number


def line(value: float | None, **changes: Any) -> Number:
    base: dict[str, Any] = {
        "table": "A6", "title": "Step recognition by window length", "entry": "a6", "method": "InternVideo",
        "modality": "V+L", "setting": "last-layer", "release": "v2", "paper_release": "",
    }  # fmt: skip
    measured = {"value": value, "sd": None, "ci": [(value or 0) - 1, (value or 0) + 2], "seeds": [0]}
    score = {"metrics": {"accuracy": measured, "map": measured}, "status": "present"}
    return number(**(base | {"score": score if value else None} | changes))


def points(figure: Figure, panel: int) -> dict[tuple[str, bool], list[float]]:
    """Return by colour and whether it is hollow the values of a panel's curves."""
    return {
        (str(curve.get_color()), curve.get_markerfacecolor() == "white"): [float(y) for y in curve.get_ydata()]  # type: ignore[union-attr]
        for curve in figure.axes[panel].get_lines()
        if len(curve.get_xdata())  # type: ignore[arg-type]
    }
