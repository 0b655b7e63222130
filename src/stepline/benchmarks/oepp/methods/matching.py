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
from stepline.errors import ConfigError


def make(material: Material, fits: list[Path]) -> Iterator[tuple[int, Method]]:
    """Yield the baseline; raise ConfigError where video and text have different dimensions."""
    cosine = material.options["matching"]["similarity"] == "cosine"
    horizon = material.entry.horizon
    assert horizon is not None

    def predict(part: Part, windows: Sequence[Window]) -> list[tuple[int, ...]]:
        text, observed = material.text(part), material.observations(windows)
        if text.shape[1] != observed.rows.shape[1]:
            raise ConfigError(
                f"config: oepp.features.{material.entry.features}: video has {observed.rows.shape[1]} dimensions and "
                f"text {text.shape[1]}; matching wants both of one network"
            )
        rows = observed.rows[observed.index].astype(np.float64)
        start, end = rows[:, :3].mean(axis=1), rows[:, 3:].mean(axis=1)
        vectors = _unit(text.astype(np.float64)) if cosine else text.astype(np.float64)
        ranked = [_ranked(vector, vectors) for vector in (start, (start + end) / 2, end)]
        plan = np.concatenate([ranked[0][:, :1], ranked[1][:, : horizon - 2], ranked[2][:, :1]], axis=1)
        return [tuple(each) for each in plan.tolist()]

    yield 0, predict


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _ranked(observed: NDArray[np.float64], vectors: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the (N, classes) places of the classes, nearest first; an observation's own length changes no order."""
    scores = np.round(observed @ vectors.T, 12)  # equal vectors of two classes must tie
    ranked: NDArray[np.int64] = np.argsort(-scores, axis=1, kind="stable")
    return ranked
