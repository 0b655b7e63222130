"""The metrics and losses of plans against what OEPP's released functions give, and guesses on its released windows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.metrics.plans import GUESS, plan_scores, window_scores


@pytest.fixture(scope="module")
def golden(real_data: Path) -> dict[str, Any]:
    cases: dict[str, Any] = json.loads((real_data / "oepp/golden_metrics.json").read_text(encoding="utf-8"))
    return cases


def test_plans_score_as_the_released_function_has_it(golden: dict[str, Any]) -> None:
    cases = golden["metric_cases"]
    assert len(cases) == 15
    for case in cases:
        pred, true, expected = case["pred"], case["target"], case["expected_percent"]
        found = 100 * np.array(plan_scores(pred, true))
        names = ("sr", "acc", "miou_sample_level(MIoU2)")
        assert found == pytest.approx([expected[name] for name in names], abs=1e-5)
        batch = plan_scores(pred, true, batch_size=case["batch_size"]).miou
        assert 100 * batch == pytest.approx(expected["miou_batch_level(MIoU1)"], abs=1e-5)


def test_losses_and_the_read_out_are_the_released_ones(golden: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    from stepline.models.plan_loss import plan_loss, read_out

    cases = golden["loss_and_readout_cases"]
    assert len(cases) == 3
    for case in cases:
        x, text = (torch.tensor(case[name], dtype=torch.float64) for name in ("x[B,T,D]", "text[N,D]"))
        labels, expected = torch.tensor(case["labels[B,T]"]), case["expected"]
        assert read_out(x, text).tolist() == expected["pred_argmax[B][T]"]
        assert read_out(x.float(), text.float()).tolist() == expected["pred_argmax[B][T]"]
        given = {
            "ce_released_code(softmax(cos/0.1) fed to cross-entropy, summed over T, mean over B)": {"loss": "ce"},
            "ce_single_softmax_temp0.1": {"loss": "ce", "ce_mode": "plain"},
            "ce_single_softmax_temp1": {"loss": "ce", "ce_mode": "plain", "temperature": 1},
            "mse_mean_over_B_and_D_summed_over_T": {"loss": "mse", "mse_weight": 1},
            "mse_sum_over_D_mean_over_B_summed_over_T(PDPP*)": {"loss": "mse", "mse_weight": x.shape[-1]},
            "total_1.0*ce_released+0.2*mse": {"loss": "both"},
        }
        found = {name: float(plan_loss(x, text, labels, **options)) for name, options in given.items()}
        assert found == pytest.approx({name: expected[name] for name in found}, abs=1e-6)


@pytest.mark.parametrize(
    ("part", "name", "horizon", "count", "miou", "spread"),
    [
        ("base", "test_base_dataset_1", 3, 1138, 1.37, 0.15),
        ("base", "test_base_dataset_1", 4, 888, 1.63, 0.17),
        ("novel", "novel_dataset_1", 3, 1691, 3.07, 0.19),
        ("novel", "novel_dataset_1", 4, 1297, 3.56, 0.20),
    ],
)
def test_guesses_on_the_released_windows_have_the_means_of_simulations(
    real_data: Path, part: str, name: str, horizon: int, count: int, miou: float, spread: float
) -> None:
    """Means and standard deviations of 200 simulations each; a mean strays by a fourteenth of the deviation."""
    pool, videos = (
        json.loads((real_data / "oepp" / f"{each}.json").read_text(encoding="utf-8"))
        for each in (f"{part}_action_pool_1", name)
    )
    windows = []
    for video in videos:
        ids = [pool.index(step["action"]) for step in video["anno"]]
        ids = ids[:1] * (horizon - len(ids)) + ids
        windows += [ids[at : at + horizon] for at in range(len(ids) - horizon + 1)]
    assert len(windows) == count
    found = window_scores(np.full((count, horizon), GUESS), windows, n_actions=len(pool))
    assert found.acc == pytest.approx(1 / len(pool))
    assert found.sr == pytest.approx(len(pool) ** -horizon)
    assert 100 * found.iou.mean() == pytest.approx(miou, abs=4 * spread / 200**0.5 + 0.005)
