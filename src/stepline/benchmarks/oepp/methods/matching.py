"""Video and text by their similarity alone (Sec. 5.2): the first action by the start, the last by the end.

An observation is the mean of its 3 rows. Those between are the T - 2 actions nearest to the mean of both, in the order
of their similarity; nothing keeps them from being the first or last one too. The paper says neither. Ties: lowest id.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.benchmarks.oepp.material import Material
from stepline.benchmarks.oepp.methods import Method
from stepline.benchmarks.oepp.windows import Window
from stepline.datasets.oepp import Part


def make(material: Material, fits: list[Path]) -> Iterator[tuple[int, Method]]:
    """Yield the baseline; video and text have the same D."""
    cosine = material.options["matching"]["similarity"] == "cosine"
    horizon = material.entry.horizon
    assert horizon is not None

    def predict(part: Part, windows: Sequence[Window]) -> list[tuple[int, ...]]:
        text, observed = material.text(part), material.observations(windows)
        rows, vectors = observed.rows[observed.index].astype(np.float64), text.astype(np.float64)
        start, end = rows[:, :3].mean(axis=1), rows[:, 3:].mean(axis=1)
        first, between, last = (ranked(each, vectors, cosine=cosine) for each in (start, (start + end) / 2, end))
        plan = np.concatenate([first[:, :1], between[:, : horizon - 2], last[:, :1]], axis=1)
        return [tuple(each) for each in plan.tolist()]

    yield 0, predict


def ranked(observed: NDArray[np.float64], text: NDArray[np.float64], *, cosine: bool) -> NDArray[np.int64]:
    """Return the (N, classes) places of the classes by their similarity to each observation, nearest first.

    observed: (N, D), whose lengths change no order. text: (classes, D). Equal vectors tie: the lower place is first.
    """
    lengths = np.maximum(np.linalg.norm(text, axis=1), 1e-12) if cosine else 1.0
    _, same, back = np.unique(text, axis=0, return_index=True, return_inverse=True)
    scores = (observed @ text.T / lengths)[:, same[back]]
    found: NDArray[np.int64] = np.argsort(-scores, axis=1, kind="stable")
    return found
