from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from stepline.errors import StoreError
from stepline.models.classifier import Examples, classify, fit_classifier
from stepline.models.training import loaded

OPTIONS = {"epochs": 60, "batch_size": 16, "learning_rate": 0.05, "seed": 0}
CENTRES = np.array([[0, 0, 1e-3], [0, 1e-3, 0], [1e-3, 0, 0], [1e-3, 1e-3, 1e-3]])


def examples(n: int, seed: int) -> Examples:
    """Return points near the centre of their class, far from the origin and at a small scale; classes alternate."""
    drawn = np.random.default_rng(seed)
    label = np.arange(n) % 4
    features = 7 + CENTRES[label] + drawn.normal(0, 1e-4, (n, 3))
    allowed = np.ones((n, 4), bool)
    return Examples(features=features, label=label, allowed=allowed)


def test_it_learns_classes_at_any_scale(tmp_path: Path) -> None:
    train, val, test = (examples(n, seed) for n, seed in ((80, 0), (20, 1), (40, 2)))
    fit_classifier(train, val, tmp_path / "fit", **OPTIONS)
    assert (classify(tmp_path / "fit", test.features, test.allowed) == test.label).mean() > 0.9


def test_the_epoch_is_chosen_on_val_standardised_as_train(tmp_path: Path) -> None:
    train, val = examples(80, 0), examples(3, 1)
    fit_classifier(train, val, tmp_path / "fit", **OPTIONS)
    with loaded(tmp_path / "fit") as state:
        for name, expected in (("mean", train.features.mean(axis=0)), ("scale", train.features.std(axis=0))):
            assert state[name] == pytest.approx(expected, rel=1e-5)
        logits = (val.features - state["mean"]) / state["scale"] @ state["weight"].T + state["bias"]
        losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(3), val.label]
        assert min(state["val_loss"]) == pytest.approx(losses.mean(), rel=1e-3)


def test_only_allowed_classes_are_chosen(tmp_path: Path) -> None:
    train, val, test = (examples(n, seed) for n, seed in ((80, 0), (20, 1), (40, 2)))
    fit_classifier(train, val, tmp_path / "fit", **OPTIONS)
    allowed = np.zeros_like(test.allowed)
    allowed[np.arange(40), (test.label + 1) % 4] = allowed[:, 3] = True
    chosen = classify(tmp_path / "fit", test.features, allowed)
    assert allowed[np.arange(40), chosen].all()


def test_the_loss_is_over_the_allowed_classes(tmp_path: Path) -> None:
    """There is nothing to learn if each sample has one choice."""
    made = examples(40, 0)
    single = Examples(features=made.features, label=made.label, allowed=np.eye(4, dtype=bool)[made.label])
    fit_classifier(single, single, tmp_path / "fit", **OPTIONS)
    with loaded(tmp_path / "fit") as state:
        assert not state["val_loss"].any()


def test_a_constant_feature_and_a_seed(tmp_path: Path) -> None:
    train = examples(40, 0)
    constant = Examples(
        features=np.concatenate([train.features, np.ones((40, 1))], axis=1), label=train.label, allowed=train.allowed
    )
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        fit_classifier(constant, constant, tmp_path / name, **OPTIONS | {"seed": seed})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()
    assert (classify(tmp_path / "a", constant.features, constant.allowed) == train.label).mean() > 0.9


def test_a_damaged_checkpoint_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "fit").write_bytes(b"no tensors")
    with pytest.raises(StoreError, match="is damaged"):
        classify(tmp_path / "fit", np.zeros((1, 3)), np.ones((1, 4), bool))
