"""The most frequent training plan for every window, a blind baseline. The first in the order of actions wins a tie.

Its actions that are not in the pool become uniform guesses. The plan for a window is the most frequent one of the
window's length, or else of the next shorter length, followed by guesses.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.methods.planner import Planner
from stepline.benchmarks.oepp.windows import Window
from stepline.metrics.plans import GUESS


class MostFrequent(Planner):
    """The most frequent plan of train."""

    def plans(
        self, inputs: OeppInputs, split: str, windows: Sequence[Window], fit: Path | None
    ) -> list[tuple[int, ...]]:
        """Return, for each window, the most frequent plan of its length."""
        counts = Counter(window.actions for window in inputs.used("train"))
        by_length: dict[int, tuple[str, ...]] = {}
        for plan in sorted(counts, key=lambda each: (-counts[each], each)):
            by_length.setdefault(len(plan), plan)
        place = {action: number for number, action in enumerate(inputs.pool(split))}
        made = []
        for length in (len(window.actions) for window in windows):
            plan = by_length[max((each for each in by_length if each <= length), default=min(by_length))]
            ids = [place.get(action, GUESS) for action in plan[:length]]
            made.append((*ids, *(GUESS,) * (length - len(ids))))
        return made
