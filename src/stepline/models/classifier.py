"""A linear classifier of features."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepline.models.training import fit_head, loaded

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Features to classify.

    features: (N, D). label: (N,) the true classes. allowed: (N, C) the classes that each can have, such as the steps of
    its recipe.
    """

    features: NDArray[np.floating]
    label: NDArray[np.int64]
    allowed: NDArray[np.bool_]


def fit_classifier(
    train: Examples, val: Examples, path: Path, *, epochs: int, batch_size: int, learning_rate: float, seed: int
) -> None:
    """Train a linear layer from D features to C classes, and write it to ``path``; see ``fit_head``.

    The loss is the cross entropy over the allowed classes. Features are standardised with the mean and the standard
    deviation of ``train``. The file contains ``weight`` (C, D), ``bias`` (C,), ``mean`` and ``scale`` (D,).
    """
    import torch

    mean, scale = train.features.mean(axis=0), train.features.std(axis=0)
    statistics = {"mean": mean, "scale": np.where(scale > 0, scale, 1)}

    def tensors(part: Examples) -> "list[torch.Tensor]":
        rows = (part.features - statistics["mean"]) / statistics["scale"]
        return [torch.from_numpy(array) for array in (rows.astype(np.float32), part.label, part.allowed)]

    def make() -> "torch.nn.Linear":
        layer = torch.nn.Linear(train.features.shape[1], train.allowed.shape[1])
        for name, array in statistics.items():
            layer.register_buffer(name, torch.from_numpy(array.astype(np.float32)))
        return layer

    rows, label, allowed = tensors(train)
    held_out = tensors(val)
    fit_head(
        make,
        lambda model, batch: [_loss(model, rows[batch], label[batch], allowed[batch])],
        lambda model: _loss(model, *held_out),
        len(rows),
        path,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
    )


def classify(path: Path, features: NDArray[np.floating], allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the (N,) allowed classes with the highest scores, the lowest of equal ones.

    features: (N, D). allowed: (N, C). Raises StoreError if the checkpoint in ``path`` is damaged.
    """
    with loaded(path) as state:
        scores = ((features - state["mean"]) / state["scale"]) @ state["weight"].T + state["bias"]
    chosen: NDArray[np.int64] = np.where(allowed, scores, -np.inf).argmax(axis=1)
    return chosen


def _loss(
    layer: "torch.nn.Linear", rows: "torch.Tensor", label: "torch.Tensor", allowed: "torch.Tensor"
) -> "torch.Tensor":
    import torch

    return torch.nn.functional.cross_entropy(layer(rows).masked_fill(~allowed, -torch.inf), label)
