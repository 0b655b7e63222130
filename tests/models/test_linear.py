from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.numpy")

from stepline.errors import ConfigError, StoreError  # noqa: E402
from stepline.models.linear import Matching, apply_linear, fit_linear, step_loss, step_tensors  # noqa: E402

OPTIONS = {"epochs": 6, "batch_size": 16, "learning_rate": 0.05}


def made_up(seed: int, n: int = 60, steps: tuple[int, ...] = (3, 5)) -> Matching:
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, len(steps), n)
    label = np.array([rng.integers(1, steps[o] + 1) for o in owner])
    return Matching(
        features=rng.standard_normal((n, 4)).astype(np.float32),
        owner=owner,
        label=label,
        steps=[rng.standard_normal((k, 4)).astype(np.float32) for k in steps],
    )


def fitted(path: Path, *, seed: int = 0, **changes: float) -> dict[str, np.ndarray]:
    fit_linear(made_up(1), made_up(2), path, seed=seed, **(OPTIONS | changes))  # type: ignore[arg-type]
    state: dict[str, np.ndarray] = safetensors.load_file(path)
    return state


def test_the_loss_is_the_cross_entropy_over_the_steps_of_the_clips_own_recording() -> None:
    data = made_up(0)
    expected = []
    for row, owner, label in zip(data.features, data.owner, data.label, strict=True):
        logits = (data.steps[owner] @ row).astype(np.float64)
        expected.append(np.log(np.exp(logits).sum()) - logits[label - 1])
    loss = step_loss(torch.from_numpy(data.features), *step_tensors(data.owner, data.label, data.steps))
    assert float(loss) == pytest.approx(np.mean(expected), rel=1e-5)


def test_other_recordings_steps_give_no_gradient() -> None:
    data = made_up(0)
    only_first = data.owner == 0
    features = torch.from_numpy(data.features)
    owner, target, steps, step_owner = step_tensors(data.owner, data.label, data.steps)
    steps.requires_grad_()
    step_loss(features[only_first], owner[only_first], target[only_first], steps, step_owner).backward()
    assert torch.all(steps.grad[:3].abs().sum(dim=1) > 0)
    assert torch.all(steps.grad[3:] == 0)


def test_one_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        fitted(tmp_path / name, seed=seed)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


def test_batches_are_drawn_anew_each_epoch_from_the_seeds_generator(tmp_path: Path) -> None:
    """On clips sorted by label, equal to a plain loop over ``randperm``."""
    data = made_up(1)
    order = np.lexsort((data.label, data.owner))
    data = replace(data, features=data.features[order], owner=data.owner[order], label=data.label[order])
    fit_linear(data, made_up(2), tmp_path / "fit", seed=5, epochs=3, batch_size=8, learning_rate=0.05)

    generator = torch.Generator().manual_seed(5)
    torch.manual_seed(5)
    model = torch.nn.Linear(4, 4)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    val_loss, states = [], []
    for _ in range(3):
        shuffled = torch.randperm(60, generator=generator).numpy()
        for start in range(0, 60, 8):
            batch = shuffled[start : start + 8]
            mapped = model(torch.from_numpy(data.features[batch]))
            losses = [
                torch.nn.functional.cross_entropy(torch.from_numpy(data.steps[o]) @ row, torch.tensor(k - 1))
                for row, o, k in zip(mapped, data.owner[batch], data.label[batch], strict=True)
            ]
            optimiser.zero_grad()
            torch.stack(losses).mean().backward()
            optimiser.step()
        val = made_up(2)
        truth = step_tensors(val.owner, val.label, val.steps)
        val_loss.append(step_loss(model(torch.from_numpy(val.features)), *truth).item())
        states.append(model.weight.detach().numpy().copy())
    state = safetensors.load_file(tmp_path / "fit")
    np.testing.assert_allclose(state["val_loss"], val_loss, rtol=1e-4)
    np.testing.assert_allclose(state["weight"], states[int(np.argmin(val_loss))], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("learning_rate", [0.05, 0.5])
def test_the_epoch_of_the_least_validation_loss_is_kept(tmp_path: Path, learning_rate: float) -> None:
    state = fitted(tmp_path / "all", learning_rate=learning_rate, epochs=12)
    best = int(state["val_loss"].argmin())
    until = fitted(tmp_path / "until", learning_rate=learning_rate, epochs=best + 1)
    np.testing.assert_array_equal(until["val_loss"], state["val_loss"][: best + 1])
    np.testing.assert_array_equal(until["weight"], state["weight"])
    val = made_up(2)
    mapped = torch.from_numpy(apply_linear(tmp_path / "all", val.features))
    loss = step_loss(mapped, *step_tensors(val.owner, val.label, val.steps))
    assert float(loss) == pytest.approx(state["val_loss"].min(), rel=1e-5)


def test_of_equal_validation_losses_the_first_epoch_is_kept(tmp_path: Path) -> None:
    """With one step per recording every loss is 0, and so is every gradient."""
    one = made_up(0, steps=(1, 1))
    fit_linear(one, one, tmp_path / "many", seed=0, epochs=5, batch_size=8, learning_rate=0.1)
    fit_linear(one, one, tmp_path / "first", seed=0, epochs=1, batch_size=8, learning_rate=0.1)
    many, first = (safetensors.load_file(tmp_path / name) for name in ("many", "first"))
    assert many["val_loss"].tolist() == [0] * 5
    np.testing.assert_array_equal(many["weight"], first["weight"])


def test_a_fit_that_diverges_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="learning_rate"):
        fitted(tmp_path / "nan", learning_rate=1e37)
    assert not (tmp_path / "nan").exists()


@pytest.mark.parametrize("keep", [0, 40, -8])
def test_a_damaged_checkpoint_is_one_line(keep: int, tmp_path: Path) -> None:
    fitted(tmp_path / "fit", epochs=1)
    content = (tmp_path / "fit").read_bytes()
    (tmp_path / "fit").write_bytes(content[:keep])
    with pytest.raises(StoreError, match=f"^{tmp_path}/fit is damaged .*: remove it and run `stepline fit` again$"):
        apply_linear(tmp_path / "fit", made_up(2).features)


def test_a_checkpoint_of_other_features_is_one_line(tmp_path: Path) -> None:
    fitted(tmp_path / "fit", epochs=1)
    with pytest.raises(StoreError, match="is damaged"):
        apply_linear(tmp_path / "fit", np.zeros((3, 7), np.float32))


def test_it_learns_a_map_that_is_there(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((4, 4)))[0].astype(np.float32)

    def clips(seed: int) -> Matching:
        data = made_up(seed, n=400)
        steps = made_up(99).steps
        chosen = np.stack([steps[o][k - 1] for o, k in zip(data.owner, data.label, strict=True)])
        return Matching(features=chosen @ rotation, owner=data.owner, label=data.label, steps=steps)

    fit_linear(clips(1), clips(2), tmp_path / "fit", seed=0, epochs=40, batch_size=64, learning_rate=0.05)
    test = clips(3)
    mapped = apply_linear(tmp_path / "fit", test.features)
    right = [(test.steps[o] @ row).argmax() + 1 == k for row, o, k in zip(mapped, test.owner, test.label, strict=True)]
    assert np.mean(right) > 0.95


def test_the_map_may_lead_to_another_dimension(tmp_path: Path) -> None:
    data = made_up(1)
    wide = replace(data, features=np.hstack([data.features, data.features**2]))
    fit_linear(wide, wide, tmp_path / "fit", seed=0, epochs=1, batch_size=8, learning_rate=0.05)
    assert safetensors.load_file(tmp_path / "fit")["weight"].shape == (4, 8)
    assert apply_linear(tmp_path / "fit", wide.features).shape == (60, 4)
