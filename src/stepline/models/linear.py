"""Last-layer fine-tuning: linear layers on clip features (Spacewalk-18, Eq. 1 and 3, Appendix E.1)."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepline.models.training import fit_head, loaded

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Matching:
    """Clips to match with the steps of their own recording.

    features: (N, D), of clips. owner: (N,), the recording of each clip. label: (N,), in 1..K of that recording. steps:
    for each recording, (K, E) features of its steps; in last-layer fine-tuning E = D.
    """

    features: NDArray[np.float32]
    owner: NDArray[np.int64]
    label: NDArray[np.int64]
    steps: list[NDArray[np.float32]]


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Queries with two candidates each, one of which shows the query's step.

    query: (N, D). candidates: (N, 2, D). answer: (N,), 0 or 1.
    """

    query: NDArray[np.float32]
    candidates: NDArray[np.float32]
    answer: NDArray[np.int64]


def fit_linear(
    train: Matching, val: Matching, path: Path, *, epochs: int, batch_size: int, learning_rate: float, seed: int
) -> None:
    """Train the linear layer from (N, D) clips to (K, E) step features, and write it to ``path``; see ``fit_head``.

    The loss is the cross entropy of the dot products with all K steps of the clip's own recording. Eq. 1 has no class
    Irrelevant, so ``train`` and ``val`` must not contain such clips. The layer has a bias and PyTorch's default
    initialisation. The file contains ``weight`` (E, D) and ``bias`` (E,).
    """
    import torch

    features, held_out = torch.from_numpy(train.features), torch.from_numpy(val.features)
    owner, target, steps, step_owner = step_tensors(train.owner, train.label, train.steps)
    truth = step_tensors(val.owner, val.label, val.steps)
    fit_head(
        lambda: torch.nn.Linear(features.shape[1], steps.shape[1]),
        lambda model, batch: [step_loss(model(features[batch]), owner[batch], target[batch], steps, step_owner)],
        lambda model: step_loss(model(held_out), *truth),
        len(features),
        path,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
    )


def apply_linear(path: Path, features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (N, D) features mapped to (N, E) by the checkpoint in ``path``; raise StoreError if it is damaged."""
    with loaded(path) as state:
        mapped: NDArray[np.float32] = features @ state["weight"].T + state["bias"]
    return mapped


def fit_pairs(
    train: Pairs, val: Pairs, path: Path, *, epochs: int, batch_size: int, learning_rate: float, seed: int
) -> None:
    """Train one linear layer for queries and one for candidates, and write them to ``path``; see ``fit_head``.

    The loss is the cross entropy of the dot products of a mapped query with its two mapped candidates (Eq. 3). Both
    layers have a bias and PyTorch's default initialisation. The file contains ``query.weight`` (D, D), ``query.bias``
    (D,), and the same for ``candidate``.
    """
    import torch

    query, candidates, answer = (torch.from_numpy(part) for part in (train.query, train.candidates, train.answer))
    val_query, val_candidates, val_answer = (torch.from_numpy(part) for part in (val.query, val.candidates, val.answer))
    dimension = train.query.shape[1]
    fit_head(
        lambda: torch.nn.ModuleDict({name: torch.nn.Linear(dimension, dimension) for name in ("query", "candidate")}),
        lambda model, batch: [_pair_loss(model, query[batch], candidates[batch], answer[batch])],
        lambda model: _pair_loss(model, val_query, val_candidates, val_answer),
        len(query),
        path,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
    )


def apply_pairs(path: Path, query: NDArray[np.float32], candidates: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the (N, 2) scores of the (N, 2, D) candidates of (N, D) queries with the checkpoint in ``path``.

    Raises StoreError if it is damaged.
    """
    with loaded(path) as state:
        mapped = query @ state["query.weight"].T + state["query.bias"]
        others = candidates @ state["candidate.weight"].T + state["candidate.bias"]
    scores: NDArray[np.float32] = np.einsum("nd,ncd->nc", mapped, others)
    return scores


def _pair_loss(
    model: "torch.nn.ModuleDict", query: "torch.Tensor", candidates: "torch.Tensor", answer: "torch.Tensor"
) -> "torch.Tensor":
    import torch

    logits = torch.einsum("nd,ncd->nc", model["query"](query), model["candidate"](candidates))
    return torch.nn.functional.cross_entropy(logits, answer)


def step_tensors(
    owner: NDArray[np.int64], label: NDArray[np.int64], steps: list[NDArray[np.float32]]
) -> "tuple[torch.Tensor, ...]":
    """Return the owners, the targets as indices into all recordings' steps, these steps, and the steps' owners."""
    import torch

    first = np.cumsum([0] + [len(each) for each in steps])
    step_owner = np.concatenate([np.full(len(each), number) for number, each in enumerate(steps)])
    arrays = owner, first[owner] + label - 1, np.concatenate(steps), step_owner
    return tuple(torch.from_numpy(array) for array in arrays)


def step_loss(
    mapped: "torch.Tensor",
    owner: "torch.Tensor",
    target: "torch.Tensor",
    steps: "torch.Tensor",
    step_owner: "torch.Tensor",
) -> "torch.Tensor":
    """Return the mean cross entropy of the dot products of (N, E) clips with the steps of their recordings (Eq. 1)."""
    import torch

    logits = mapped @ steps.T
    logits = logits.masked_fill(owner[:, None] != step_owner[None, :], -torch.inf)
    return torch.nn.functional.cross_entropy(logits, target)
