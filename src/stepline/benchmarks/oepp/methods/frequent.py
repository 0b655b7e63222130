"""The most frequent training plan for every window, which sees no video. Ties: the first by its actions.

An action of it that is not in the pool is a uniform guess. Where each video has its own number of actions, it is the
most frequent plan of that length; where there is none, of the next shorter length, and guesses after it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from stepline.benchmarks.oepp.material import Material
from stepline.benchmarks.oepp.methods import Method
from stepline.benchmarks.oepp.windows import Window
from stepline.datasets.oepp import Part
from stepline.metrics.plans import GUESS


def make(material: Material, fits: list[Path]) -> Iterator[tuple[int, Method]]:
    """Yield the baseline."""
    counts = Counter(window.actions for window in material.used("train"))
    by_length: dict[int, tuple[str, ...]] = {}
    for plan in sorted(counts, key=lambda each: (-counts[each], each)):
        by_length.setdefault(len(plan), plan)

    def predict(part: Part, windows: Sequence[Window]) -> list[tuple[int, ...]]:
        place = {action: number for number, action in enumerate(material.pool(part))}
        made = []
        for length in (len(window.actions) for window in windows):
            plan = by_length[max((each for each in by_length if each <= length), default=min(by_length))]
            ids = [place.get(action, GUESS) for action in plan[:length]]
            made.append((*ids, *(GUESS,) * (length - len(ids))))
        return made

    yield 0, predict
