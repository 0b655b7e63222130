"""Last-layer fine-tuning: a linear map of clip features onto step features (Spacewalk-18, Eq. 1, Appendix E.1)."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepline.errors import ConfigError, StoreError
from stepline.io import atomic_path

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Matching:
    """Clips to be matched with the steps of their own recording.

    features: (N, D) of clips. owner: (N,) the recording of each. label: (N,) in 1..K of that recording.
    steps: per recording, (K, D) features of its steps.
    """

    features: NDArray[np.float32]
    owner: NDArray[np.int64]
    label: NDArray[np.int64]
    steps: list[NDArray[np.float32]]


def fit_linear(
    train: Matching, val: Matching, path: Path, *, epochs: int, batch_size: int, learning_rate: float, seed: int
) -> None:
    """Train the map, keep the epoch of the least validation loss (the first of equals), and write it to ``path``.

    The loss is the cross entropy of the dot products with all K steps of the clip's own recording; Eq. 1 has no
    Irrelevant, so such clips must not be in ``train`` or ``val``. Adam, no weight decay, PyTorch's default start, bias.
    The safetensors file holds ``weight`` (D, D), ``bias`` (D,) and ``val_loss`` (epochs,).
    Raises ConfigError where no validation loss is finite.
    """
    import torch
    from safetensors.torch import save_file

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    dimension = train.features.shape[1]
    model = torch.nn.Linear(dimension, dimension)
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    features, owner, target, steps, step_owner = _tensors(train)
    held_out, *truth = _tensors(val)
    losses, best, least = [], {}, math.inf
    for _ in range(epochs):
        order = torch.randperm(len(features), generator=generator)
        for batch in torch.split(order, batch_size):
            optimiser.zero_grad()
            loss = _loss(model(features[batch]), owner[batch], target[batch], steps, step_owner)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        with torch.inference_mode():
            losses.append(float(_loss(model(held_out), *truth)))
        if losses[-1] < least:
            least, best = losses[-1], {name: value.detach().clone() for name, value in model.state_dict().items()}
    if not best:
        raise ConfigError("last_layer.learning_rate: no validation loss is finite; give a smaller one")
    with atomic_path(path) as part:
        save_file(best | {"val_loss": torch.tensor(losses, dtype=torch.float64)}, part)


def apply_linear(path: Path, features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the (N, D) features mapped by the checkpoint in ``path``; raise StoreError where that is damaged."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        state = load_file(path)
        mapped: NDArray[np.float32] = features @ state["weight"].T + state["bias"]
    except (SafetensorError, KeyError, ValueError) as error:
        raise StoreError(f"{path} is damaged ({error}): remove it and run `stepline fit` again") from None
    return mapped


def _tensors(data: Matching) -> "tuple[torch.Tensor, ...]":
    import torch

    first = np.cumsum([0] + [len(steps) for steps in data.steps])
    step_owner = np.concatenate([np.full(len(steps), number) for number, steps in enumerate(data.steps)])
    return (
        torch.from_numpy(data.features),
        torch.from_numpy(data.owner),
        torch.from_numpy(first[data.owner] + data.label - 1),
        torch.from_numpy(np.concatenate(data.steps)),
        torch.from_numpy(step_owner),
    )


def _loss(
    mapped: "torch.Tensor",
    owner: "torch.Tensor",
    target: "torch.Tensor",
    steps: "torch.Tensor",
    step_owner: "torch.Tensor",
) -> "torch.Tensor":
    import torch

    logits = mapped @ steps.T
    logits = logits.masked_fill(owner[:, None] != step_owner[None, :], -torch.inf)
    return torch.nn.functional.cross_entropy(logits, target)
