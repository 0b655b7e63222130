"""What a method gets that sees nothing, such as Random, and how often a tolerance would take it for another."""

from dataclasses import dataclass
from statistics import NormalDist

from stepline.tables.text import percent


@dataclass(frozen=True)
class Blind:
    """The number of a method that sees nothing.

    method: its name. value: in percent, None where it has none yet. sd: the standard deviation of a draw, 0 where
    nothing is drawn.
    """

    method: str
    value: float | None
    sd: float

    def chance(self, low: float, high: float) -> float:
        """Return the probability that a draw lies in [low, high], by the normal distribution; 1 without a value."""
        if self.value is None:
            return 1.0
        if not self.sd:
            return float(low <= self.value <= high)
        draws = NormalDist(self.value, self.sd)
        return draws.cdf(high) - draws.cdf(low)

    def text(self, low: float, high: float) -> str:
        """Return its value, and the probability, in words."""
        if self.value is None:
            return f"what {self.method} gets is not known"
        return f"{self.method} gets {percent(self.value)}, and lies there with probability {self.chance(low, high):.2f}"
