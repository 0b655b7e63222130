"""The training loop of all heads: Adam, and the epoch of the least validation loss."""

import copy
import itertools
import math
import time
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
SHORT_S, WAIT = 0.5, 20
"""A state that takes longer to write is not written before so many times as long have passed."""


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
    factor: Callable[[float], float] = lambda _: 1.0,
    steps: int | None = None,
    average: Callable[[int], float] | None = None,
    fused: bool = False,
    what: str = "fit",
) -> None:
    """Train what ``make`` returns, keep the epoch of the least validation loss (the first of equals), write it.

    losses: of a batch, whose samples are given as a part of a permutation of 0..``size`` - 1; the batch's loss is their
    sum, so that no more than one of them must be in memory. resume: what says that it is the same fit, as a digest of
    its data; then the state after an epoch is kept beside ``path`` until the last, a large one not after each, and a
    fit that was killed goes on from it, on a CPU to the same bytes. weight_decay: added to the gradient. betas: Adam's.
    clip: the largest norm of the gradient. factor: what the learning rate is multiplied by in an update, of the epochs
    before it, the part of its own among them: 1.25 after a quarter of the second. steps: updates of an epoch, each of a
    full batch of permutations that are drawn one after another; None is one pass over a permutation, its last batch
    what is left.
    average: the share d that an average of the parameters a keeps of itself after update k, from 1 over all epochs, in
    a = d a + (1 - d) parameters; it begins as the model does, and is what is validated and kept. fused: Adam in one
    pass over the parameters, some five times as fast, equal but for rounding. what: the name of its progress.
    The safetensors file at ``path`` holds the parameters and ``val_loss`` (epochs,).
    Raises ConfigError where no validation loss is finite, where a loss says by FloatingPointError that it is not, or
    where ``steps`` is given and no batch is full.
    """
    import torch
    from safetensors.torch import save_file

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=device != "cpu")
    if steps is not None and size < batch_size:
        raise ConfigError(f"batch_size {batch_size} is more than the {size} training samples; give a smaller one")
    updates = steps or max(1, math.ceil(size / batch_size))
    batches = _batches(size, batch_size, seed, full=steps is not None)
    torch.manual_seed(seed)
    model = make().to(device)
    judged, share = (model, lambda _: 1.0) if average is None else (copy.deepcopy(model), average)
    optimiser = torch.optim.Adam(
        model.parameters(), lr=learning_rate, betas=betas, weight_decay=weight_decay, fused=fused or None
    )
    written = took = 0.0
    found: list[float] = []
    best: dict[str, torch.Tensor] = {}
    kept = path.with_name(f"{path.name}.state")
    fit = (resume, type(model).__name__, size, epochs, updates, batch_size, learning_rate, seed, device)
    about = {"fit": " ".join(map(str, fit))}
    if resume and (state := _kept(kept, about)):
        found, best = state["val_loss"].tolist(), _part(state, "best")
        model.load_state_dict(_part(state, "model"))
        if judged is not model:
            judged.load_state_dict(_part(state, "average"))
        moments = {int(each): _part(state, f"adam.{each}") for each in state["adam"].tolist()}
        optimiser.load_state_dict(optimiser.state_dict() | {"state": moments})
        next(itertools.islice(batches, len(found) * updates - 1, None))
        torch.set_rng_state(state["drawn"])
        if device != "cpu":
            torch.cuda.set_rng_state(state["drawn_there"])
    for epoch in progress(range(len(found), epochs), what=what, unit="epochs"):
        model.train()
        for update, batch in enumerate(itertools.islice(batches, updates)):
            rate = learning_rate * factor(epoch + update / updates)
            _update(model, optimiser, losses(model, batch), rate, clip)
            _blend(judged, model, share(epoch * updates + update + 1))
        judged.eval()
        least = min(filter(math.isfinite, found), default=math.inf)
        with torch.inference_mode():
            found.append(float(val_loss(judged)))
        if found[-1] < least:
            best = {name: value.detach().to("cpu", copy=True) for name, value in judged.state_dict().items()}
        if resume and len(found) < epochs and time.monotonic() - written >= WAIT * took:
            begun = time.monotonic()
            moments = optimiser.state_dict()["state"]
            state = {"val_loss": torch.tensor(found, dtype=torch.float64), "adam": torch.tensor(sorted(moments))}
            state |= {"drawn": torch.get_rng_state()}
            state |= {} if device == "cpu" else {"drawn_there": torch.cuda.get_rng_state()}
            parts = {"best": best, "model": model.state_dict()} | {f"adam.{each}": moments[each] for each in moments}
            parts |= {} if judged is model else {"average": judged.state_dict()}
            state |= {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}
            with atomic_path(kept) as part:
                save_file(state, part, metadata=about)
            written = time.monotonic()
            took = written - begun if written - begun > SHORT_S else 0.0
    if not best:
        raise ConfigError(f"learning_rate {learning_rate:g}: no validation loss is finite; give a smaller one")
    with atomic_path(path) as part:
        save_file(best | {"val_loss": torch.tensor(found, dtype=torch.float64)}, part)
    kept.unlink(missing_ok=True)


def _batches(size: int, batch_size: int, seed: int, *, full: bool) -> "Iterator[torch.Tensor]":
    """Yield without end batches of permutations that are drawn one after another, full ones or all."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    while True:
        for batch in torch.split(torch.randperm(size, generator=generator), batch_size):
            if len(batch) == batch_size or not full:
                yield batch


def _update(
    model: "torch.nn.Module",
    optimiser: "torch.optim.Optimizer",
    losses: "Iterable[torch.Tensor]",
    rate: float,
    clip: float,
) -> None:
    import torch

    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.zero_grad()
    try:
        for loss in losses:
            loss.backward()  # type: ignore[no-untyped-call]
    except FloatingPointError as error:
        raise ConfigError(f"learning_rate {optimiser.defaults['lr']:g}: {error}; give a smaller one") from None
    if clip < math.inf:
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimiser.step()


def _blend(average: "torch.nn.Module", model: "torch.nn.Module", share: float) -> None:
    """Let the parameters of an average keep their share, and take the rest from a model's."""
    import torch

    if share == 1:
        return
    with torch.no_grad():
        for old, new in zip(average.parameters(), model.parameters(), strict=True):
            old.lerp_(new, 1 - share)


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
