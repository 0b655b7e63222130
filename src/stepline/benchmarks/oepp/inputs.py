"""The inputs of OEPP's methods: the windows of a release and their features."""

from collections.abc import Sequence
from functools import cached_property

from stepline.benchmark import Benchmark, Entry
from stepline.benchmarks.oepp.windows import Window, observation_rows, windows
from stepline.datasets import oepp
from stepline.errors import ConfigError
from stepline.features.bank import Bank
from stepline.runs.inputs import Inputs


class OeppInputs(Inputs[Benchmark[Entry]]):
    """The inputs of one entry on one release."""

    def load(self, split: str) -> list[Window]:
        """Return the windows of a split."""
        videos = oepp.load(self.release, split)  # type: ignore[arg-type]
        return windows(videos, self.entry.settings.get("horizon"), self.options["windows"]["padding"])

    def pool(self, split: str) -> tuple[str, ...]:
        """Return the action pool of a split. Plans are indices into it."""
        return oepp.pool(self.release, split)  # type: ignore[arg-type]

    def labels(self, split: str, of: Sequence[Window]) -> list[tuple[int, ...]]:
        """Return the indices of the windows' true actions in the split's pool."""
        place = {action: number for number, action in enumerate(self.pool(split))}
        return [tuple(place[action] for action in window.actions) for window in of]

    def has(self, unit: Window) -> bool:
        """Return whether all inputs of the entry for a window are available: its video or its rows of features."""
        return super().has(unit) and (not self.banks or self.rows(unit) is not None)

    def late(self, split: str) -> list[Window]:
        """Return the windows that are not ``used`` because they begin after the end of their video's features."""
        return [each for each in self.chosen(split) if super(OeppInputs, self).has(each) and not self.has(each)]

    @cached_property
    def bank(self) -> Bank:
        """The bank of the entry's features, with one row per second; raises ConfigError for another rate."""
        (bank,) = self.banks
        bank.check_whole()
        if bank.hop_s not in (0, 1):
            (name,) = self.benchmark.features(self.entry)
            raise ConfigError(f"features {name!r} have one row per {bank.hop_s:g} s; OEPP needs one per second")
        return bank

    def rows(self, window: Window) -> tuple[int, ...] | None:
        """Return the rows of a window's observations; None if it begins after the end of the features."""
        rule = self.options["windows"]["rows"]
        try:
            return observation_rows(window.start, window.end, self.bank.length(window.video), rule)
        except ValueError:
            return None
