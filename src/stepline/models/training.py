"""The training loop of all heads: Adam, and the epoch of the least validation loss."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stepline.errors import ConfigError, StoreError
from stepline.io import atomic_path
from stepline.progress import progress

if TYPE_CHECKING:
    import torch

Model = TypeVar("Model", bound="torch.nn.Module")


def fit_head(
    make: Callable[[], Model],
    losses: "Callable[[Model, torch.Tensor], Iterable[torch.Tensor]]",
    val_loss: "Callable[[Model], torch.Tensor | float]",
    size: int,
    path: Path,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    device: str = "cpu",
    resume: str = "",
    weight_decay: float = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
    clip: float = math.inf,
    factor: "Callable[[int], float]" = lambda _: 1.0,
    what: str = "fit",
) -> None:
    """Train what ``make`` returns, keep the epoch of the least validation loss (the first of equals), write it.

    losses: of a batch, whose samples are given as a part of a permutation of 0..``size`` - 1; the batch's loss is their
    sum, so that no more than one of them must be in memory. resume: what says that it is the same fit, as a digest of
    its data; then the state after each epoch is kept beside ``path`` until the last, and a fit that was killed goes on
    from it, on a CPU to the same bytes. weight_decay: added to the gradient. betas: Adam's. clip: the largest norm of
    the gradient. factor: what the learning rate is multiplied by in an epoch, from 0. what: the name of its progress.
    The safetensors file at ``path`` holds the parameters and ``val_loss`` (epochs,).
    Raises ConfigError where no validation loss is finite, or where a loss says by FloatingPointError that it is not.
    """
    import torch
    from safetensors.torch import save_file

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=device != "cpu")
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = make().to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate, betas=betas, weight_decay=weight_decay)
    found: list[float] = []
    best: dict[str, torch.Tensor] = {}
    kept = path.with_name(f"{path.name}.state")
    about = {"fit": f"{resume} {type(model).__name__} {size} {epochs} {batch_size} {learning_rate} {seed} {device}"}
    if resume and (state := _kept(kept, about)):
        found, best = state["val_loss"].tolist(), _part(state, "best")
        model.load_state_dict(_part(state, "model"))
        moments = {int(each): _part(state, f"adam.{each}") for each in state["adam"].tolist()}
        optimiser.load_state_dict(optimiser.state_dict() | {"state": moments})
        generator.set_state(state["order"])
        torch.set_rng_state(state["drawn"])
        if device != "cpu":
            torch.cuda.set_rng_state(state["drawn_there"])
    for epoch in progress(range(len(found), epochs), what=what, unit="epochs"):
        model.train()
        for group in optimiser.param_groups:
            group["lr"] = learning_rate * factor(epoch)
        for batch in torch.split(torch.randperm(size, generator=generator), batch_size):
            _update(model, optimiser, losses(model, batch), clip)
        model.eval()
        least = min(filter(math.isfinite, found), default=math.inf)
        with torch.inference_mode():
            found.append(float(val_loss(model)))
        if found[-1] < least:
            best = {name: value.detach().to("cpu", copy=True) for name, value in model.state_dict().items()}
        if resume and len(found) < epochs:
            moments = optimiser.state_dict()["state"]
            state = {"val_loss": torch.tensor(found, dtype=torch.float64), "adam": torch.tensor(sorted(moments))}
            state |= {"order": generator.get_state(), "drawn": torch.get_rng_state()}
            state |= {} if device == "cpu" else {"drawn_there": torch.cuda.get_rng_state()}
            parts = {"best": best, "model": model.state_dict()} | {f"adam.{each}": moments[each] for each in moments}
            state |= {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}
            with atomic_path(kept) as part:
                save_file(state, part, metadata=about)
    if not best:
        raise ConfigError(f"learning_rate {learning_rate:g}: no validation loss is finite; give a smaller one")
    with atomic_path(path) as part:
        save_file(best | {"val_loss": torch.tensor(found, dtype=torch.float64)}, part)
    kept.unlink(missing_ok=True)


def _update(
    model: "torch.nn.Module", optimiser: "torch.optim.Optimizer", losses: "Iterable[torch.Tensor]", clip: float
) -> None:
    import torch

    optimiser.zero_grad()
    try:
        for loss in losses:
            loss.backward()  # type: ignore[no-untyped-call]
    except FloatingPointError as error:
        rate = optimiser.param_groups[0]["lr"]
        raise ConfigError(f"learning_rate {rate:g}: {error}; give a smaller one") from None
    if clip < math.inf:
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimiser.step()


def _kept(path: Path, about: dict[str, str]) -> "dict[str, torch.Tensor]":
    """Return the state in ``path``, nothing where there is none of this fit."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            names = file.keys() if file.metadata() == about else []
            return {name: file.get_tensor(name) for name in names}
    except (FileNotFoundError, SafetensorError):
        return {}


def _part(state: "dict[str, torch.Tensor]", name: str) -> "dict[str, Any]":
    return {key.removeprefix(f"{name}."): value for key, value in state.items() if key.startswith(f"{name}.")}


@contextmanager
def loaded(path: Path) -> Iterator[dict[str, NDArray[np.float32]]]:
    """Yield what is in the checkpoint ``path``; raise StoreError where it is damaged or does not fit its use."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not path.exists():
        raise StoreError(f"{path} is not there: run `stepline fit`")
    try:
        yield load_file(path)
    except (SafetensorError, KeyError, ValueError) as error:
        raise StoreError(f"{path} is damaged ({error}): remove it and run `stepline fit` again") from None


def restore(model: Model, state: dict[str, NDArray[np.float32]], device: str) -> Model:
    """Return the model on its device with the parameters of a checkpoint that ``loaded`` gives, ready to predict.

    Raises ValueError, of which ``loaded`` makes its one line, where they are another model's.
    """
    import torch

    try:
        model.load_state_dict({name: torch.from_numpy(state[name]) for name in model.state_dict()})
    except RuntimeError as error:
        raise ValueError(str(error).splitlines()[-1].strip()) from None
    return model.to(device).eval()
