"""Training that resumes after a kill, and selection of the epoch with the lowest validation loss."""

import copy
import functools
import itertools
import logging
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stepline.errors import ConfigError, StoreError
from stepline.io import write_tensors
from stepline.progress import progress
from stepline.seal import check

if TYPE_CHECKING:
    import torch

Model = TypeVar("Model", bound="torch.nn.Module")
log = logging.getLogger("stepline")

SHORT_S, WAIT = 0.5, 20
"""If writing the state takes longer than ``SHORT_S``, the next write waits for ``WAIT`` times as long."""
MEASURED, LONG_S = 10, 60
"""A fit estimates its duration from ``MEASURED`` updates after the first, and logs it if it is above ``LONG_S``."""


def train(
    kept: "Mapping[str, torch.Tensor]",
    optimiser: "torch.optim.Optimizer",
    losses: "Callable[[torch.Tensor], Iterable[torch.Tensor]]",
    batches: "Iterator[torch.Tensor]",
    path: Path,
    *,
    epochs: int,
    updates: int,
    rate: Callable[[int], float],
    every: int,
    resume: str,
    what: str,
    val_loss: "Callable[[], torch.Tensor | float] | None" = None,
    clip: float = math.inf,
    after: Callable[[int], None] = lambda _: None,
    also: "Mapping[str, torch.Tensor] | None" = None,
) -> None:
    """Train, and write ``kept``, the live tensors of a model by name, to the safetensors file ``path``.

    losses: yields the losses of a batch one by one, so that only one must be in memory; their sum is minimised.
    updates: per epoch. rate: the learning rate of an update, counted from 0 over all epochs. val_loss: called after
    each epoch. The tensors with the lowest validation loss (the first in a tie) are written with ``val_loss``
    (epochs,); without validation, the last tensors are written with the training ``loss`` of each update. clip: the
    maximum norm of the gradient. after: called after each update with the number of finished updates.
    resume: identifies the fit, such as a digest of its data. If it is given, the state is saved next to ``path`` every
    ``every`` updates, a large one less often, and a killed fit resumes from it; on a CPU the result has the same bytes.
    also: further live tensors of the state. what: the name in the progress display.
    Raises FloatingPointError if a training loss is not finite and there is no validation, or if no validation loss is
    finite. Raises StoreError if the state is damaged.
    """
    import torch
    from safetensors.torch import save_file

    state = _State(path, resume, kept, also or {}, optimiser)
    done = state.read() if resume else 0
    for _ in itertools.islice(batches, done):
        pass
    total = epochs * updates
    clock = _Clock(what, total - done, validated=val_loss is not None)
    for update in progress(range(done, total), what=what, unit="updates"):
        parts = _update(optimiser, losses(next(batches)), rate(update), clip)
        after(update + 1)
        clock.updated()
        if val_loss is None:
            state.found.append(sum(map(float, parts)))
            if not math.isfinite(state.found[-1]):
                raise FloatingPointError(f"the loss of step {update} is not finite")
        elif (update + 1) % updates == 0:
            state.validated(float(val_loss()))
        if resume and (update + 1) % every == 0 and update + 1 < total:
            state.write(update + 1)
    if val_loss and not state.best:
        raise FloatingPointError("no validation loss is finite")
    tensors = _plain(state.best if val_loss else kept)
    found = torch.tensor(state.found, dtype=torch.float64)
    write_tensors(path, tensors | {"val_loss" if val_loss else "loss": found}, save_file)
    state.path.unlink(missing_ok=True)


class _Clock:
    """Says by the first updates how long all take."""

    def __init__(self, what: str, updates: int, *, validated: bool) -> None:
        self.what, self.updates, self.done = what, updates, 0
        self.besides = ", besides validation after each epoch" if validated else ""
        self.start_s = 0.0

    def updated(self) -> None:
        """Count an update; after the first few, log the estimated duration."""
        import torch

        self.done += 1
        if self.done not in (1, MEASURED + 1):
            return
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.synchronize()
        if self.done == 1:
            self.start_s = time.perf_counter()
            return
        rate = MEASURED / (time.perf_counter() - self.start_s)
        left_s = self.updates / rate
        amount = f"{left_s / 3600:.1f} h" if left_s > 5400 else f"{left_s / 60:.0f} min"
        line = f"{self.what}: {self.updates:,} updates take about {amount} ({rate:.2g} a second){self.besides}"
        log.info("%s", line)
        if left_s > LONG_S:
            print(line, file=sys.stderr)


def _update(
    optimiser: "torch.optim.Optimizer", losses: "Iterable[torch.Tensor]", rate: float, clip: float
) -> "list[torch.Tensor]":
    """Update with the sum of the losses, and return the losses."""
    import torch

    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.zero_grad()
    parts = []
    for loss in losses:
        loss.backward()  # type: ignore[no-untyped-call]
        parts.append(loss.detach())
    if clip < math.inf:
        torch.nn.utils.clip_grad_norm_([each for g in optimiser.param_groups for each in g["params"]], clip)
    optimiser.step()
    return parts


def shuffled(size: int, batch_size: int, seed: int, *, full: bool = False) -> "Iterator[torch.Tensor]":
    """Yield endless batches of successive permutations of 0..``size`` - 1; only full batches if ``full``."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    while True:
        for batch in torch.split(torch.randperm(size, generator=generator), batch_size):
            if len(batch) == batch_size or not full:
                yield batch


class _State:
    """The state that the next update depends on, also saved in a file next to the result.

    found: the losses so far. best: the tensors with the lowest validation loss.
    """

    def __init__(
        self,
        result: Path,
        fit: str,
        kept: "Mapping[str, torch.Tensor]",
        also: "Mapping[str, torch.Tensor]",
        optimiser: "torch.optim.Optimizer",
    ) -> None:
        self.path = result.with_name(f"{result.name}.state")
        self.found: list[float] = []
        self.best: dict[str, torch.Tensor] = {}
        self._about = {"state of": fit}
        self._live = {"kept": kept, "also": also}
        self._optimiser = optimiser
        self._on_gpu = any(tensor.is_cuda for tensor in kept.values())
        self._written = self._took = 0.0

    def validated(self, loss: float) -> None:
        """Record a validation loss, and copy the tensors if it is the lowest so far."""
        if loss < min(filter(math.isfinite, self.found), default=math.inf):
            self.best = {name: value.detach().to("cpu", copy=True) for name, value in self._live["kept"].items()}
        self.found.append(loss)

    def write(self, done: int) -> None:
        """Write the state after ``done`` updates, unless a recent write took long."""
        import torch
        from safetensors.torch import save_file

        begun = time.monotonic()
        if begun - self._written < WAIT * self._took:
            return
        moments = self._optimiser.state_dict()["state"]
        parts = {**self._live, "best": self.best, **{f"adam.{n}": each for n, each in moments.items()}}
        state = {f"{part}.{name}": value for part, of in parts.items() for name, value in _plain(of).items()}
        state |= {"done": torch.tensor(done), "found": torch.tensor(self.found, dtype=torch.float64)}
        state |= {"drawn": torch.get_rng_state()} | (
            {"drawn_there": torch.cuda.get_rng_state()} if self._on_gpu else {}
        )
        write_tensors(self.path, state, save_file, self._about)
        self._written = time.monotonic()
        self._took = self._written - begun if self._written - begun > SHORT_S else 0.0

    def read(self) -> int:
        """Restore the state from the file and return its number of finished updates; 0 if it is not of this fit."""
        import torch
        from safetensors import SafetensorError, safe_open

        moments: dict[int, dict[str, torch.Tensor]] = {}
        try:
            check(self.path)
            with safe_open(self.path, "pt") as file, torch.no_grad():
                if not self._about.items() <= (file.metadata() or {}).items():
                    return 0
                for key in sorted(file.keys()):
                    part, _, name = key.partition(".")
                    if part in self._live:
                        self._live[part][name].copy_(file.get_tensor(key))
                    elif part == "best":
                        self.best[name] = file.get_tensor(key)
                    elif part == "adam":
                        number, _, moment = name.partition(".")
                        moments.setdefault(int(number), {})[moment] = file.get_tensor(key)
                self.found = file.get_tensor("found").tolist()
                torch.set_rng_state(file.get_tensor("drawn"))
                if self._on_gpu:
                    torch.cuda.set_rng_state(file.get_tensor("drawn_there"))
                done = int(file.get_tensor("done"))
        except FileNotFoundError:
            return 0
        except (SafetensorError, ValueError) as error:
            raise StoreError(f"{self.path} is damaged ({error}): remove it and run `stepline fit` again") from None
        self._optimiser.load_state_dict(self._optimiser.state_dict() | {"state": moments})
        return done


def _plain(tensors: "Mapping[str, torch.Tensor]") -> "dict[str, torch.Tensor]":
    return {name: value.detach().contiguous() for name, value in tensors.items()}


def fit_head(
    make: Callable[[], Model],
    losses: "Callable[[Model, torch.Tensor], Iterable[torch.Tensor]]",
    val_loss: "Callable[[Model], torch.Tensor | float] | None",
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
    decoupled: bool = False,
    batches: "Iterator[torch.Tensor] | None" = None,
    groups: "Callable[[Model], list[dict[str, Any]]] | None" = None,
    what: str = "fit",
) -> None:
    """Train the result of ``make`` with Adam, and write the epoch with the lowest validation loss; see ``train``.

    losses: of a batch, given as indices from a permutation of 0..``size`` - 1. val_loss: if it is None, the last epoch
    is written. resume: if it is given, the state is saved after each epoch. weight_decay: added to the gradient, or
    ``decoupled`` from it as in AdamW. betas: of Adam. factor: the factor on the learning rate as a function of the
    epochs before the update, fractions included: 1.25 after a quarter of the second epoch. steps: updates per epoch,
    each with a full batch of successive permutations; None means one pass over a permutation, with a smaller last
    batch.
    average: the decay d of a parameter average a at update k, counted from 1 over all epochs: a = d a + (1 - d)
    parameters. The average starts at the initial parameters; it is validated and written. fused: run Adam in one pass
    over the parameters, about five times faster and equal up to rounding. batches: endless, instead of permutations.
    groups: parameter groups as in torch's optimisers, with options other than the learning rate; None means one group.
    Raises ConfigError if no validation loss is finite, if a loss raises FloatingPointError, or if ``steps`` is given
    and no batch is full.
    """
    import torch

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=device != "cpu")
    if batches is None and steps is not None and size < batch_size:
        raise ConfigError(f"batch_size {batch_size} is more than the {size} training samples; give a smaller one")
    updates = steps or max(1, math.ceil(size / batch_size))
    torch.manual_seed(seed)
    model = make().to(device).train()
    judged, share = (model, lambda _: 1.0) if average is None else (copy.deepcopy(model), average)

    def judge(val_loss: "Callable[[Model], torch.Tensor | float]") -> float:
        judged.eval()
        with torch.inference_mode():
            loss = float(val_loss(judged))
        model.train()
        return loss

    fit = (resume, type(model).__name__, size, epochs, updates, batch_size, learning_rate, seed, device)
    try:
        train(
            judged.state_dict(),
            (torch.optim.AdamW if decoupled else torch.optim.Adam)(
                groups(model) if groups else model.parameters(),
                lr=learning_rate,
                betas=betas,
                weight_decay=weight_decay,
                fused=fused or None,
            ),
            lambda batch: losses(model, batch),
            batches or shuffled(size, batch_size, seed, full=steps is not None),
            path,
            epochs=epochs,
            updates=updates,
            rate=lambda update: learning_rate * factor(update // updates + update % updates / updates),
            every=updates,
            resume=resume and " ".join(map(str, fit)),
            what=what,
            val_loss=val_loss and functools.partial(judge, val_loss),
            clip=clip,
            after=lambda update: blend(judged, model, share(update)),
            also={} if judged is model else model.state_dict(),
        )
    except FloatingPointError as error:
        raise ConfigError(f"learning_rate {learning_rate:g}: {error}; give a smaller one") from None


def blend(average: "torch.nn.Module", model: "torch.nn.Module", share: float) -> None:
    """Update the parameters of an average with those of a model."""
    import torch

    if share == 1:
        return
    with torch.no_grad():
        for old, new in zip(average.parameters(), model.parameters(), strict=True):
            old.lerp_(new, 1 - share)


@contextmanager
def loaded(path: Path) -> Iterator[dict[str, NDArray[np.float32]]]:
    """Yield the content of the checkpoint ``path``; raise StoreError if it is damaged or does not fit its use."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not path.exists():
        raise StoreError(f"{path} does not exist: run `stepline fit`")
    try:
        check(path)
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
