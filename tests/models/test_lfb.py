from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.numpy")

from stepline.errors import ConfigError, StoreError  # noqa: E402
from stepline.models import lfb  # noqa: E402
from stepline.models.context import Block, Segments, average  # noqa: E402
from stepline.models.lfb import HEADS_OF, Clips, Windows, apply_lfb, fit_lfb, positions  # noqa: E402
from stepline.models.linear import Matching, apply_linear, fit_linear, step_loss, step_tensors  # noqa: E402

D, WINDOW_S = 16, 36
STEPS = [np.random.default_rng(9).standard_normal((k, D)).astype(np.float32) for k in (3, 4)]
OPTIONS: dict[str, Any] = {"context_s": WINDOW_S, "epochs": 3, "batch_size": 50, "learning_rate": 0.003, "seed": 0}
heads = pytest.mark.parametrize("head", ["nl", "tf"])


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is small is fast."""
    monkeypatch.setattr(lfb, "LATENT", 32)


def clips(seed: int, *, planted: bool = True, n: int = 240) -> Clips:
    """Windows side by side in noise; in the segment after the query's stands the step's feature, turned about."""
    rng = np.random.default_rng(seed)
    owner = np.arange(n) % 2
    label = np.array([rng.integers(1, len(STEPS[o]) + 1) for o in owner])
    times_s = 18.0 + 36 * (np.arange(n) // 2)
    banks = []
    for number in range(2):
        rows = 0.3 * rng.standard_normal((18 * n, D))
        shown = STEPS[number][label[owner == number] - 1][:, ::-1]
        rows[24::36] += shown if planted else rng.permutation(shown)
        banks.append(Segments((Block(rows[:, :12].astype(np.float16)), Block(rows[:, 12:], np.arange(18 * n)))))
    return Clips(banks=banks, owner=owner, times_s=times_s, label=label, steps=STEPS)


def fitted(path: Path, head: Any, **changes: Any) -> dict[str, np.ndarray]:
    fit_lfb(head, clips(1), clips(2, n=60), path, **(OPTIONS | changes))
    state: dict[str, np.ndarray] = safetensors.load_file(path)
    return state


def mapped(head: Any, path: Path, data: Clips, options: dict[str, Any]) -> np.ndarray:
    found = np.zeros((len(data.owner), D), np.float32)
    for number, bank in enumerate(data.banks):
        whose = data.owner == number
        found[whose] = apply_lfb(head, path, bank, data.times_s[whose], context_s=options["context_s"])
    return found


def pooled(pool: Any, data: Clips) -> Matching:
    parts = [pool(bank, data.times_s[data.owner == number], WINDOW_S) for number, bank in enumerate(data.banks)]
    features = np.zeros((len(data.owner), parts[0].shape[1]), np.float32)
    for number, part in enumerate(parts):
        features[data.owner == number] = part
    return Matching(features=features, owner=data.owner, label=data.label, steps=data.steps)


@pytest.mark.parametrize("planted", [True, False])
@pytest.mark.parametrize("head", [average, "tf"])
def test_it_learns_what_is_in_the_context_and_nothing_else(head: Any, planted: bool, tmp_path: Path) -> None:
    train, val, test = (clips(seed, planted=planted, n=n) for seed, n in ((1, 400), (2, 200), (3, 400)))
    options = OPTIONS | {"epochs": 8}
    if callable(head):
        options = {"epochs": 20, "batch_size": 50, "learning_rate": 0.02, "seed": 0}
        fit_linear(pooled(head, train), pooled(head, val), tmp_path / "fit", **options)
        found = apply_linear(tmp_path / "fit", pooled(head, test).features)
    else:
        fit_lfb(head, train, val, tmp_path / "fit", **options)
        found = mapped(head, tmp_path / "fit", test, options)
    best = np.array([(STEPS[o] @ row).argmax() + 1 for row, o in zip(found, test.owner, strict=True)])
    right = np.mean(best == test.label)
    assert right > 0.9 if planted else 0.15 < right < 0.45


def test_the_non_local_head_is_the_sum_over_other_segments_by_hand() -> None:
    """One window of five segments, of which the first is left out; the query's is the third."""
    torch.manual_seed(0)
    model = HEADS_OF["nl"](D, 5).eval()
    for block in model.blocks:
        torch.nn.init.normal_(block.output.weight, std=0.1)
    weights = {name: value.detach().double().numpy() for name, value in model.state_dict().items()}

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    segments = np.random.default_rng(0).standard_normal((5, D))
    latent = linear("project", segments + positions(torch.zeros(1, 5, D)).double().numpy())
    query = latent[2]
    for number in range(2):
        part = f"blocks.{number}"
        scores = np.exp(linear(f"{part}.key", latent[[1, 3, 4]]) @ linear(f"{part}.query", query) / lfb.LATENT**0.5)
        seen = (scores / scores.sum()) @ linear(f"{part}.value", latent[[1, 3, 4]])
        normed = (seen - seen.mean()) / np.sqrt(seen.var() + 1e-5)
        normed = normed * weights[f"{part}.norm.weight"] + weights[f"{part}.norm.bias"]
        query = query + linear(f"{part}.output", normed.clip(0))
    expected = linear("output", np.concatenate([segments[2], query]))
    there = torch.tensor([[False, True, True, True, True]])
    found = model(torch.tensor(segments[None], dtype=torch.float32), there).detach()[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_non_local_head_begins_without_context_and_needs_none() -> None:
    torch.manual_seed(0)
    model = HEADS_OF["nl"](D, 5).eval()
    one, other = torch.randn(2, 1, 3, D)
    other[:, 1] = one[:, 1]
    there, alone = torch.ones(1, 3, dtype=torch.bool), torch.tensor([[False, True, False]])
    assert torch.equal(model(one, there), model(other, there))
    torch.nn.init.normal_(model.blocks[0].output.weight)
    assert not torch.allclose(model(one, there), model(other, there))
    assert torch.equal(model(one, alone), model(other, alone))


@heads
def test_what_is_left_out_does_not_count_and_order_does(head: Any) -> None:
    torch.manual_seed(0)
    model = HEADS_OF[head](D, 5).eval()
    for name, value in model.named_parameters():
        if name.endswith("output.weight"):
            torch.nn.init.normal_(value, std=0.1)
    segments, there = torch.randn(2, 5, D), torch.tensor([[True] * 5, [False, True, True, True, False]])
    changed, turned = segments.clone(), segments[:, [0, 3, 2, 1, 4]]
    changed[1, [0, 4]] = 7
    found = model(segments, there)
    assert found.shape == (2, 5)
    torch.testing.assert_close(model(changed, there), found)
    assert not torch.allclose(model(turned, there), found, atol=1e-4)
    alone = model(segments[1:, 1:4], there[1:, 1:4])
    assert torch.isfinite(alone).all()


def test_positions_are_sinusoids_of_length_one() -> None:
    found = positions(torch.zeros(7, 3, 4))
    expected = [[0, 1, 0, 1], *([np.sin(i), np.cos(i), np.sin(i / 100), np.cos(i / 100)] for i in (1, 2))]
    np.testing.assert_allclose(found, np.array(expected) / 2**0.5, rtol=1e-6)


def test_windows_are_gathered_from_each_ones_own_recording() -> None:
    rng = np.random.default_rng(0)
    banks = [
        Segments((Block(rng.standard_normal((n, 3)).astype(np.float16)), Block(rng.standard_normal((4, 2)), index)), on)
        for n, index, on in ((100, np.arange(100) % 4, True), (60, np.arange(60) % 3, False))
    ]
    owner, times_s = np.array([0, 1, 0, 1]), np.array([50.0, 30.0, 2.0, 58.0])
    segments, there = Windows(banks, owner, times_s, 60, "cpu")(torch.tensor([3, 0, 2]))
    assert there.tolist() == [[True, True, True, False, False], [True] * 5, [False, False, True, True, True]]
    rows = [(1, [28, 40, 52]), (0, [20, 32, 44, 56, 68]), (0, [0, 8, 20])]
    for found, inside, (number, chosen) in zip(segments, there, rows, strict=True):
        np.testing.assert_allclose(found[inside], banks[number][np.array(chosen)], rtol=1e-5)
        assert not found[~inside].any()


def test_the_state_of_another_fit_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted(tmp_path / "whole", "nl", seed=1)
    with monkeypatch.context() as patch:
        patch.setattr("stepline.models.training.Path.unlink", lambda *_, **__: None)
        fitted(tmp_path / "fit", "nl")
    assert (tmp_path / "fit.state").exists()
    fitted(tmp_path / "fit", "nl", seed=1)
    assert (tmp_path / "fit").read_bytes() == (tmp_path / "whole").read_bytes()


def test_other_data_are_another_fit() -> None:
    data, val = clips(1), clips(2)
    same = lfb._digest(data, val, 36)
    assert lfb._digest(clips(1), val, 36) == same
    moved = replace(data, times_s=data.times_s + 1)
    others = [(val, data, 36), (data, val, 60), (moved, val, 36), (replace(data, banks=val.banks), val, 36)]
    assert same not in {lfb._digest(*other) for other in others}


def test_a_batch_is_the_sum_of_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lfb, "DROPOUT", 0.0)
    whole = fitted(tmp_path / "whole", "nl")
    monkeypatch.setattr(lfb, "PART", 7)
    np.testing.assert_allclose(fitted(tmp_path / "parts", "nl")["val_loss"], whole["val_loss"], rtol=1e-4)


@heads
def test_the_epoch_is_chosen_on_val(head: Any, tmp_path: Path) -> None:
    state, val = fitted(tmp_path / "fit", head), clips(2, n=60)
    found = torch.from_numpy(mapped(head, tmp_path / "fit", val, OPTIONS))
    loss = step_loss(found, *step_tensors(val.owner, val.label, val.steps))
    assert state["val_loss"].min() == pytest.approx(float(loss), rel=1e-4)


@heads
def test_a_damaged_checkpoint_or_one_of_the_other_head_is_one_line(head: Any, tmp_path: Path) -> None:
    fitted(tmp_path / "fit", head, epochs=1)
    data, other = clips(3), "tf" if head == "nl" else "nl"
    with pytest.raises(StoreError, match="is damaged"):
        mapped(other, tmp_path / "fit", data, OPTIONS)
    thin = Segments(data.banks[0].blocks[:1] + data.banks[0].blocks[:1])
    with pytest.raises(StoreError, match="is damaged"):
        apply_lfb(head, tmp_path / "fit", thin, data.times_s, context_s=36)
    (tmp_path / "fit").write_bytes((tmp_path / "fit").read_bytes()[:-8])
    with pytest.raises(StoreError, match="is damaged"):
        mapped(head, tmp_path / "fit", data, OPTIONS)


def test_a_window_of_no_whole_segments_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a window of 30 s"):
        fitted(tmp_path / "fit", "nl", context_s=30)
