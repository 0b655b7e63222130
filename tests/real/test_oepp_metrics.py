"""Guesses on OEPP's released windows."""

import json
from pathlib import Path

import numpy as np
import pytest

from stepline.metrics.plans import GUESS, window_scores


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
