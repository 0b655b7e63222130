"""Uniform guesses over the pool, scored by their exact expectation: nothing is drawn."""

from collections.abc import Sequence
from pathlib import Path

from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.methods.planner import Planner
from stepline.benchmarks.oepp.windows import Window
from stepline.metrics.plans import GUESS


class Random(Planner):
    """A guess at each step."""

    def plans(
        self, inputs: OeppInputs, split: str, windows: Sequence[Window], fit: Path | None
    ) -> list[tuple[int, ...]]:
        """Return one guess for each action of each window."""
        return [(GUESS,) * len(window.actions) for window in windows]
