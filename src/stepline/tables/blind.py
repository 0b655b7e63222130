"""Blind baselines, such as Random, and the probability that their score falls within a tolerance by chance."""

from dataclasses import dataclass
from statistics import NormalDist

from stepline.tables.text import percent


@dataclass(frozen=True)
class Blind:
    """The score of a blind baseline, which sees no content.

    method: its name. value: in percent, None if unknown. sd: the standard deviation of a random draw, 0 if the baseline
    is deterministic.
    """

    method: str
    value: float | None
    sd: float

    def chance(self, low: float, high: float) -> float:
        """Return the probability that a draw lies in [low, high] under a normal distribution; 1 without a value."""
        if self.value is None:
            return 1.0
        if not self.sd:
            return float(low <= self.value <= high)
        draws = NormalDist(self.value, self.sd)
        return draws.cdf(high) - draws.cdf(low)

    def text(self, low: float, high: float) -> str:
        """Return the value and the probability as text."""
        if self.value is None:
            return f"the score of {self.method} is unknown"
        return (
            f"{self.method} scores {percent(self.value)}, in this range with probability {self.chance(low, high):.2f}"
        )
