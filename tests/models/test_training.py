"""The training loop: how it steps. What else it keeps and how it resumes is tested with the heads that it trains."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402

from stepline.errors import ConfigError  # noqa: E402
from stepline.io import write_tensors  # noqa: E402
from stepline.models import training  # noqa: E402
from stepline.models.training import fit_head  # noqa: E402


class Line(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.slope = torch.nn.Parameter(torch.tensor(1.0))


def fitted(losses: Callable[[Any, Any], Iterator[Any]], **options: Any) -> list[float]:
    """Return the slope after each epoch, of a single step."""
    slopes: list[float] = []

    def val_loss(model: Any) -> float:
        slopes.append(float(model.slope))
        return -len(slopes)

    settings = {"epochs": 3, "batch_size": 1, "learning_rate": 0.1, "seed": 0}
    fit_head(Line, losses, val_loss, 1, Path("f.safetensors"), **(settings | options))
    return slopes


def rising(model: Any, _: Any) -> Iterator[Any]:
    yield 1000 * model.slope


def nothing(model: Any, _: Any) -> Iterator[Any]:
    yield 0 * model.slope


def test_the_learning_rate_follows_its_factor() -> None:
    slopes = [1.0, *fitted(rising, factor=lambda epoch: 0.5**epoch)]
    steps = [before - after for before, after in pairwise(slopes)]
    assert steps == pytest.approx([0.1, 0.05, 0.025], rel=1e-4)


def test_the_factor_is_of_the_epochs_with_the_part_of_the_current_one() -> None:
    asked: list[float] = []
    drawn(size=7, batch_size=2, epochs=2, factor=lambda epochs: asked.append(epochs) or 1.0)
    assert asked == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]


def drawn(**options: Any) -> list[list[int]]:
    """Return the batches of a fit of samples that the model does not depend on."""
    batches: list[list[int]] = []

    def losses(model: Any, batch: Any) -> Iterator[Any]:
        batches.append(batch.tolist())
        yield 0 * model.slope

    settings: dict[str, Any] = {
        "learning_rate": 0.1,
        "seed": 5,
        "path": Path("f.safetensors"),
        "val_loss": lambda _: 0.0,
    }
    fit_head(Line, losses, **(settings | options))
    return batches


def permutations(size: int) -> Iterator[list[int]]:
    generator = torch.Generator().manual_seed(5)
    while True:
        yield torch.randperm(size, generator=generator).tolist()


def test_an_epoch_is_a_pass_or_so_many_full_batches() -> None:
    first, second, third = itertools.islice(permutations(7), 3)
    passes = [order[start : start + 3] for order in (first, second) for start in (0, 3, 6)]
    assert drawn(size=7, batch_size=3, epochs=2) == passes
    full = [order[start : start + 3] for order in (first, second, third) for start in (0, 3)]
    assert drawn(size=7, batch_size=3, epochs=2, steps=3) == full
    assert drawn(size=7, batch_size=7, epochs=1, steps=2) == [first, second]


def test_too_few_samples_for_a_full_batch_are_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^batch_size 8 is more than the 7 training samples; give a smaller one$"):
        drawn(size=7, batch_size=8, epochs=1, steps=1)


def test_a_loss_that_goes_off_names_the_configured_rate() -> None:
    def off(*_: Any) -> Iterator[Any]:
        raise FloatingPointError("it went off")
        yield

    with pytest.raises(ConfigError, match=r"^learning_rate 0\.1: it went off; give a smaller one$"):
        fitted(off, factor=lambda _: 0.5)


def test_the_average_is_validated_and_kept() -> None:
    """The slope falls by 0.1 an update; the shares say what the average makes of it."""
    shares = {1: 1.0, 2: 0.75, 3: 0.0, 4: 0.5, 5: 1.0, 6: 0.9}
    expected, average = [], 1.0
    for update, share in shares.items():
        average = share * average + (1 - share) * (1 - 0.1 * update)
        if update % 2 == 0:
            expected.append(average)

    assert fitted(rising, steps=2, average=shares.__getitem__) == pytest.approx(expected, rel=1e-5)
    assert float(load_file("f.safetensors")["slope"]) == pytest.approx(expected[-1], rel=1e-5)
    assert fitted(rising, steps=2, average=lambda _: 0.0) == fitted(rising, steps=2)
    assert fitted(rising, average=lambda _: 1.0) == [1.0, 1.0, 1.0]


class Noisy(torch.nn.Module):  # type: ignore[misc,name-defined]
    """A map of samples with what a killed fit must not lose: random draws, and several parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Dropout(0.5), torch.nn.Linear(5, 1))

    def forward(self, x: Any) -> Any:
        return self.layers(x)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("steps", [None, 3])
def test_a_fit_that_was_killed_goes_on_to_the_same_bytes(steps: int | None, fused: bool) -> None:
    samples = torch.randn(9, 3, generator=torch.Generator().manual_seed(1))
    target = samples.sum(dim=1, keepdim=True)

    def fit(path: Path, killed_at: int = 0) -> int:
        updates = 0

        def losses(model: Any, batch: Any) -> Iterator[Any]:
            nonlocal updates
            updates += 1
            if updates == killed_at:
                raise KeyboardInterrupt
            yield (model(samples[batch]) - target[batch]).square().mean()

        def val_loss(model: Any) -> Any:
            return (model(samples) - target).square().mean()

        options: dict[str, Any] = {"epochs": 4, "batch_size": 2, "learning_rate": 0.05, "seed": 3, "resume": "it"}
        options |= {"steps": steps, "fused": fused, "factor": lambda epochs: 1 / (1 + epochs)}
        fit_head(Noisy, losses, val_loss, 9, path, average=lambda update: 0.5 if update % 2 else 1.0, **options)
        return updates

    whole, part, each = Path("whole"), Path("part"), steps or 5
    assert fit(whole) == 4 * each
    with pytest.raises(KeyboardInterrupt):
        fit(part, killed_at=2 * each + 2)
    assert fit(part) == 2 * each
    assert part.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in Path().iterdir()) == ["part", "whole"]


@pytest.mark.parametrize(
    ("change", "epochs"),
    [
        ({}, 1),
        ({"resume": "other"}, 3),
        ({"epochs": 4}, 4),
        ({"batch_size": 2}, 3),
        ({"learning_rate": 0.2}, 3),
        ({"seed": 1}, 3),
    ],
)
def test_a_state_of_another_fit_is_not_used(change: dict[str, Any], epochs: int) -> None:
    def killed(model: Any, _: Any) -> Iterator[Any]:
        if model.slope < 0.85:
            raise KeyboardInterrupt
        yield model.slope

    with pytest.raises(KeyboardInterrupt):
        fitted(killed, resume="it")
    assert len(fitted(rising, **{"resume": "it"} | change)) == epochs


def test_a_state_that_takes_long_to_write_is_not_written_after_each_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []

    def watched(path: Path, *rest: Any) -> None:
        written.append(path)
        write_tensors(path, *rest)

    monkeypatch.setattr(training, "write_tensors", watched)
    state, fit = Path("f.safetensors.state"), Path("f.safetensors")
    fitted(nothing, resume="a", epochs=4)
    assert written == [state, state, state, fit]
    written.clear()
    monkeypatch.setattr(training, "SHORT_S", 0.0)
    monkeypatch.setattr(training, "WAIT", 1e9)
    fitted(nothing, resume="b", epochs=4)
    assert written == [state, fit]


def test_a_fused_step_is_equal_but_for_rounding() -> None:
    assert fitted(rising, fused=True, weight_decay=0.1) == pytest.approx(fitted(rising, weight_decay=0.1), rel=1e-5)


def test_weight_decay_pulls_to_zero() -> None:
    assert fitted(nothing, weight_decay=0.1)[-1] < 1
    assert fitted(nothing) == [1.0, 1.0, 1.0]


def test_groups_say_what_decays() -> None:
    def still(model: Any) -> list[dict[str, Any]]:
        return [{"params": [model.slope], "weight_decay": 0.0}]

    assert fitted(nothing, weight_decay=0.1, groups=still) == [1.0, 1.0, 1.0]
    assert fitted(rising, groups=still) == fitted(rising)


def test_without_validation_the_last_epoch_is_kept_with_the_losses() -> None:
    settings: dict[str, Any] = {"epochs": 3, "batch_size": 1, "learning_rate": 0.1, "seed": 0}
    fit_head(Line, rising, None, 1, Path("f.safetensors"), **settings)
    found = load_file("f.safetensors")
    assert float(found["slope"]) == pytest.approx(0.7, rel=1e-4)
    assert found["loss"].tolist() == pytest.approx([1000, 900, 800], rel=1e-4)


def test_the_gradient_is_cut_to_its_largest_norm() -> None:
    original = torch.optim.Adam.step
    found = []

    def step(self: Any, *args: Any) -> Any:
        found.append(float(self.param_groups[0]["params"][0].grad))
        return original(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", step)
        fitted(rising, clip=2.0)
        fitted(rising)
    assert found == pytest.approx([2.0] * 3 + [1000.0] * 3, rel=1e-5)


def test_the_gradients_of_all_groups_are_cut_together() -> None:
    parts = [torch.nn.Parameter(torch.tensor(1.0)) for _ in range(2)]
    optimiser = torch.optim.SGD([{"params": [part]} for part in parts], lr=1.0)
    training._update(optimiser, [3 * parts[0] + 4 * parts[1]], 1.0, 1.0)
    assert [1 - part.item() for part in parts] == pytest.approx([0.6, 0.8], rel=1e-4)


def test_the_moments_are_those_asked_for() -> None:
    """With a flat start, a first moment that forgets at once steps by the full rate; the usual one does too, once."""

    def turning(model: Any, _: Any) -> Iterator[Any]:
        yield (model.slope - 0.95) ** 2

    assert fitted(turning, betas=(0.0, 0.999)) != fitted(turning)


@pytest.mark.parametrize("average", [None, lambda _: 0.5])
def test_a_model_is_judged_as_it_predicts_and_then_trained_on(average: Any) -> None:
    modes: list[bool] = []

    def losses(model: Any, batch: Any) -> Iterator[Any]:
        modes.append(model.training)
        return rising(model, batch)

    def val_loss(model: Any) -> float:
        modes.append(model.training)
        return 0.0

    options: dict[str, Any] = {"epochs": 2, "batch_size": 1, "learning_rate": 0.1, "seed": 0}
    fit_head(Line, losses, val_loss, 1, Path("f"), average=average, **options)
    assert modes == [True, False, True, False]


def test_the_best_epoch_is_kept() -> None:
    slopes = fitted(rising)
    assert float(load_file("f.safetensors")["slope"]) == pytest.approx(slopes[-1])


def test_of_equal_epochs_the_first_is_kept() -> None:
    fit_head(Line, rising, lambda _: 1.0, 1, Path("f"), epochs=3, batch_size=1, learning_rate=0.1, seed=0)
    assert float(load_file("f")["slope"]) == pytest.approx(0.9)


@contextmanager
def said(caplog: Any) -> Iterator[None]:
    """What the log of a verb gets; whether it propagates depends on the verbs that ran before."""
    handlers, training.log.handlers = training.log.handlers, [caplog.handler]
    propagates, training.log.propagate = training.log.propagate, False
    with caplog.at_level("INFO", logger="stepline"):
        yield
    training.log.handlers, training.log.propagate = handlers, propagates


def test_a_long_fit_says_what_it_takes_by_its_first_updates(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, caplog: Any
) -> None:
    """The first update takes 100 s, the others 2 s each."""
    times = iter([100.0, 100.0 + 2 * training.MEASURED])
    monkeypatch.setattr(training, "time", SimpleNamespace(perf_counter=lambda: next(times), monotonic=time.monotonic))
    with said(caplog):
        fitted(rising, epochs=3600, what="pdvc, seed 1")
    expected = "pdvc, seed 1: 3,600 updates take about 2.0 h (0.5 a second), besides validation after each epoch"
    assert caplog.messages == [expected]
    assert capsys.readouterr().err == f"{expected}\n"


def test_a_short_fit_says_it_in_the_log_alone(capsys: Any, caplog: Any) -> None:
    with said(caplog):
        fitted(rising, epochs=training.MEASURED)
        assert not caplog.messages
        fitted(rising, epochs=training.MEASURED + 1)
    assert caplog.messages[0].startswith("fit: 11 updates take about 0 min")
    assert not capsys.readouterr().err
