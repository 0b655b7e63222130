"""What methods work on: one data set's annotation and the features of an entry."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stepline.benchmarks.pss.entries import Entry
from stepline.benchmarks.pss.plan import Job, Plan
from stepline.datasets import pss
from stepline.datasets.pss import Procedure
from stepline.datasets.schema import Split
from stepline.features.bank import Bank, open_named
from stepline.features.resize import resize


@dataclass(frozen=True)
class Material:
    """One data set as an entry sees it."""

    plan: Plan
    dataset: str
    entry: Entry

    def procedures(self, split: Split) -> dict[str, Procedure]:
        """Return all annotated videos of a split."""
        if split not in self._procedures:
            self._procedures[split] = pss.load(self.dataset, split)
        return self._procedures[split]

    @cached_property
    def _procedures(self) -> dict[Split, dict[str, Procedure]]:
        return {}

    def used(self, split: Split) -> list[Procedure]:
        """Return the videos of a split that the subset holds and of which all features are there."""
        chosen = self.plan.chosen(self.dataset)
        return [
            procedure
            for video, procedure in self.procedures(split).items()
            if video in chosen and all(video in bank for bank in self.banks)
        ]

    @cached_property
    def banks(self) -> Sequence[Bank]:
        """The banks of the entry's features, in the configured order."""
        return [open_named(self.plan.footage[self.dataset], name) for name in self.plan.features(self.entry)]

    @property
    def dimension(self) -> int:
        """D of the features, all banks together."""
        return sum(bank.dimension for bank in self.banks)

    @property
    def spec(self) -> str:
        """The 8 hex digits of what decides the entry's predictions."""
        return self.plan.spec(Job(release=self.dataset, entry=self.entry))

    def features(self, video: str, length: int) -> NDArray[np.float32]:
        """Return the (length, D) features of a video: each bank's rows resized, then put side by side."""
        return np.concatenate([resize(bank[video], length) for bank in self.banks], axis=1, dtype=np.float32)
