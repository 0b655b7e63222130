"""The most frequent training plan for every window, which sees no video. Ties: the first by its actions.

An action of it that is not in the pool is a uniform guess. Where each video has its own number of actions, it is the
most frequent plan of that length; where there is none, of the next shorter length, and guesses after it.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.methods.planner import Planner
from stepline.benchmarks.oepp.windows import Window
from stepline.metrics.plans import GUESS


class MostFrequent(Planner):
    """The baseline that counts plans."""

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
