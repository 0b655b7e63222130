"""Uniform guesses over the pool, scored by their exact expectation: nothing is drawn."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from stepline.benchmarks.oepp.material import Material
from stepline.benchmarks.oepp.methods import Method
from stepline.benchmarks.oepp.windows import Window
from stepline.datasets.oepp import Part
from stepline.metrics.plans import GUESS


def make(material: Material, fits: list[Path]) -> Iterator[tuple[int, Method]]:
    """Yield the baseline."""

    def predict(part: Part, windows: Sequence[Window]) -> list[tuple[int, ...]]:
        return [(GUESS,) * len(window.actions) for window in windows]

    yield 0, predict
