"""The observations of windows: the rows of features at their start and goal."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.windows import Window


@dataclass(frozen=True)
class Observations:
    """Start and end observations of windows. rows: (R, D) float32, the last row zeros. index: (N, 6) rows by window."""

    rows: NDArray[np.float32]
    index: NDArray[np.int64]

    @classmethod
    def of(cls, inputs: OeppInputs, windows: Sequence[Window]) -> "Observations":
        """Return the observations of ``used`` windows, with each row of the bank once."""
        listed: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
        for number, window in enumerate(windows):
            rows = inputs.rows(window)
            assert rows is not None
            listed.setdefault(window.video, []).append((number, rows))
        index, parts, offset = np.empty((len(windows), 6), dtype=np.int64), [], 0
        for video, each in listed.items():
            wanted = np.array([rows for _, rows in each])
            there = np.unique(wanted[wanted >= 0])
            parts.append(np.asarray(inputs.bank[video][there], dtype=np.float32))
            index[[number for number, _ in each]] = np.where(wanted < 0, -1, offset + np.searchsorted(there, wanted))
            offset += len(there)
        index[index < 0] = offset
        return cls(np.concatenate([*parts, np.zeros((1, inputs.bank.dimension), dtype=np.float32)]), index)
