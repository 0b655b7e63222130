from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.numpy")

from stepline.errors import StoreError  # noqa: E402
from stepline.models.linear import Pairs, _pair_loss, apply_pairs, fit_pairs  # noqa: E402

ROTATION = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))[0].astype(np.float32)


def pairs(seed: int, *, planted: bool = True, n: int = 400) -> Pairs:
    """Candidates of noise; where it is planted, a query is the rotation of its right candidate."""
    rng = np.random.default_rng(seed)
    candidates = rng.standard_normal((n, 2, 6)).astype(np.float32)
    answer = rng.integers(0, 2, n)
    query = candidates[np.arange(n), answer] @ ROTATION
    return Pairs(query=query if planted else rng.permutation(query), candidates=candidates, answer=answer)


def fitted(path: Path, *, seed: int = 0, epochs: int = 20, planted: bool = True) -> dict[str, np.ndarray]:
    fit_pairs(
        pairs(1, planted=planted),
        pairs(2, planted=planted),
        path,
        epochs=epochs,
        batch_size=64,
        learning_rate=0.02,
        seed=seed,
    )
    state: dict[str, np.ndarray] = safetensors.load_file(path)
    return state


def test_the_loss_is_the_cross_entropy_of_two_dot_products() -> None:
    """G^q doubles, G^c turns by a quarter and adds (1, 0): by hand, logits (2, 0) and (-2, 10)."""
    model = torch.nn.ModuleDict({name: torch.nn.Linear(2, 2) for name in ("query", "candidate")})
    with torch.no_grad():
        model["query"].weight.copy_(torch.tensor([[2.0, 0.0], [0.0, 2.0]]))
        model["query"].bias.zero_()
        model["candidate"].weight.copy_(torch.tensor([[0.0, -1.0], [1.0, 0.0]]))
        model["candidate"].bias.copy_(torch.tensor([1.0, 0.0]))
    query = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    candidates = torch.tensor([[[3.0, 0.0], [0.0, 1.0]], [[-2.0, 0.0], [3.0, -1.0]]])
    expected = (np.log(np.exp(2) + 1) - 2 + np.log(np.exp(-2) + np.exp(10)) - -2) / 2
    loss = _pair_loss(model, query, candidates, torch.tensor([0, 0]))
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("planted", "least", "most"), [(True, 0.9, 1), (False, 0.4, 0.6)])
def test_it_learns_what_is_there_and_nothing_else(planted: bool, least: float, most: float, tmp_path: Path) -> None:
    fitted(tmp_path / "fit", planted=planted)
    test = pairs(3, planted=planted, n=2000)
    scores = apply_pairs(tmp_path / "fit", test.query, test.candidates)
    assert scores.shape == (2000, 2)
    assert scores.dtype == np.float32
    assert least <= np.mean(scores.argmax(axis=1) == test.answer) <= most


def test_the_epoch_of_the_least_validation_loss_is_kept(tmp_path: Path) -> None:
    """Without a signal it is an early one: what is kept has the loss that stands for it."""
    state = fitted(tmp_path / "fit", planted=False)
    val = pairs(2, planted=False)
    scores = torch.from_numpy(apply_pairs(tmp_path / "fit", val.query, val.candidates))
    assert state["val_loss"].argmin() < len(state["val_loss"]) - 1
    loss = float(torch.nn.functional.cross_entropy(scores, torch.from_numpy(val.answer)))
    assert loss == pytest.approx(state["val_loss"].min(), rel=1e-5)


def test_one_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        fitted(tmp_path / name, seed=seed, epochs=2)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


def test_the_two_maps_are_not_one(tmp_path: Path) -> None:
    state = fitted(tmp_path / "fit", epochs=1)
    assert sorted(state) == ["candidate.bias", "candidate.weight", "query.bias", "query.weight", "val_loss"]
    assert not np.array_equal(state["query.weight"], state["candidate.weight"])


def test_a_checkpoint_of_another_head_is_one_line(tmp_path: Path) -> None:
    safetensors.save_file({"weight": np.zeros((6, 6), np.float32)}, tmp_path / "fit")
    test = pairs(3)
    with pytest.raises(StoreError, match="is damaged"):
        apply_pairs(tmp_path / "fit", test.query, test.candidates)
