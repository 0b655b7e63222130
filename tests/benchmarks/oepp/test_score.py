from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.benchmarks.oepp import score as scoring
from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.kinds import Plan
from stepline.io import read_json
from stepline.metrics.bootstrap import bootstrap_interval
from stepline.metrics.plans import GUESS, NO_ACTION, plan_scores, window_scores
from stepline.runs.predictions import write_predictions
from stepline.runs.score import score
from tests.benchmarks.oepp.conftest import inputs
from tests.benchmarks.oepp.synthetic import CONFIG

EVALUATED = ("val", "base", "novel")

pytestmark = pytest.mark.usefixtures("banks")
METRICS = ("sr", "acc", "miou")


def scored(predictions: Sequence[Plan], of: OeppInputs) -> dict[str, Any]:
    write_predictions(Path("p.parquet"), Plan, predictions, spec=of.spec, needs=[], selection="chosen")
    score(of, Path("p.parquet"), Path("s.json"))
    found: dict[str, Any] = read_json(Path("s.json"))
    assert (found["status"], found["needs"], found["selection"]) == ("present", [], "chosen")
    return found["metrics"]  # type: ignore[no-any-return]


def planned(of: OeppInputs, seed: int = 0, wrong: float = 0.0) -> list[Plan]:
    """Return the true plans of all windows, a share of whose steps is another action, or none."""
    random, made = np.random.default_rng(seed), []
    for part in EVALUATED:
        listed, pool = of.truth(part), len(of.pool(part))
        for window, true in zip(listed, of.labels(part, listed), strict=True):
            plan = [int(random.integers(NO_ACTION, pool)) if random.random() < wrong else each for each in true]
            made.append(Plan(seed=seed, split=part, video=window.video, index=window.index, plan=tuple(plan)))
    return made


def of_part(predictions: Sequence[Plan], part: str, seed: int = 0) -> list[tuple[int, ...]]:
    return [each.plan for each in predictions if (each.split, each.seed) == (part, seed)]


def test_what_is_right_has_everything() -> None:
    of = inputs("matching-t3")
    found = scored(planned(of), of)
    assert found.keys() == {f"{part}_{metric}" for part in EVALUATED for metric in METRICS}
    for name, each in found.items():
        assert each["value"] == pytest.approx(100)
        assert each["ci"] == pytest.approx([100, 100])
        assert each["sd"] is None
        assert each["seeds"] == []
        listed = {window.video for window in of.truth(name.partition("_")[0])}
        assert each["per_video"].keys() == listed
        assert (each["n_videos"], each["n_listed"]) == (len(listed), len(listed))
    assert found["novel_sr"]["n_samples"] == len(of.truth("novel"))
    some = [plan for plan in planned(of) if plan.index == 0]
    few = scored(some, of)["novel_sr"]
    assert few["n_samples"] == len(of_part(some, "novel")) < len(of.truth("novel"))
    assert few["n_listed"] == found["novel_sr"]["n_listed"]


def test_columns_are_means_over_windows_then_over_seeds() -> None:
    of = inputs("mlp-t3")
    made = [*planned(of, 0, 0.3), *planned(of, 1, 0.6)]
    found = scored(made, of)
    for part in EVALUATED:
        true = of.labels(part, of.truth(part))
        by_seed = [plan_scores(of_part(made, part, seed), true) for seed in (0, 1)]
        for metric, values in zip(METRICS, zip(*by_seed, strict=True), strict=True):
            mine, percent = found[f"{part}_{metric}"], 100 * np.array(values)
            assert mine["per_seed"] == pytest.approx(percent.tolist())
            assert mine["value"] == pytest.approx(percent.mean())
            assert mine["sd"] == pytest.approx(percent.std(ddof=1))
            assert mine["seeds"] == [0, 1]


def test_of_whole_videos_steps_weigh_in_acc_and_windows_in_the_others() -> None:
    of = inputs("frequent-whole")
    made = planned(of, 0, 0.4)
    found = scored(made, of)
    windows = of.truth("base")
    assert len({len(each.actions) for each in windows}) > 2
    by_window = [
        plan_scores([plan], [true])
        for plan, true in zip(of_part(made, "base"), of.labels("base", windows), strict=True)
    ]
    steps = [len(each.actions) for each in windows]
    assert found["base_acc"]["value"] == pytest.approx(
        100 * np.average([each.acc for each in by_window], weights=steps)
    )
    assert found["base_acc"]["value"] != pytest.approx(100 * np.mean([each.acc for each in by_window]))
    assert found["base_sr"]["value"] == pytest.approx(100 * np.mean([each.sr for each in by_window]))
    assert found["base_miou"]["value"] == pytest.approx(100 * np.mean([each.miou for each in by_window]))
    shares = [100 * each.acc for each in by_window]
    interval = bootstrap_interval(shares, samples=100, seed=0, weights=steps)
    assert found["base_acc"]["ci"] == pytest.approx(interval)


def test_guesses_are_scored_by_their_expectation() -> None:
    of = inputs("random-t3")
    made = [replace(each, plan=(GUESS,) * 3) for each in planned(of)]
    found = scored(made, of)
    for part in EVALUATED:
        pool = len(of.pool(part))
        assert found[f"{part}_acc"]["value"] == pytest.approx(100 / pool)
        assert found[f"{part}_sr"]["value"] == pytest.approx(100 / pool**3)
    assert len(of.pool("base")) != len(of.pool("novel"))


def test_videos_that_were_not_evaluated_are_counted() -> None:
    of = inputs("matching-t3")
    gone = of.truth("base")[0].video
    found = scored([each for each in planned(of) if each.video != gone], of)
    listed = len({window.video for window in of.truth("base")})
    assert (found["base_sr"]["n_videos"], found["base_sr"]["n_listed"]) == (listed - 1, listed)
    assert (found["novel_sr"]["n_videos"], found["novel_sr"]["n_listed"]) == (12, 12)
    assert gone not in found["base_sr"]["per_video"]
    assert found["base_sr"]["value"] == pytest.approx(100)


class TestBatches:
    """mIoU of several windows at once; of 5 here, so that parts have several, the last of them smaller."""

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert scoring.BATCH == 32
        monkeypatch.setattr(scoring, "BATCH", 5)

    def of(self, entry: str) -> OeppInputs:
        return inputs(entry, metrics={**CONFIG["metrics"], "miou": "batch"})

    def test_actions_of_a_batch_are_one_set(self) -> None:
        of = self.of("mlp-t3")
        made = [*planned(of, 0, 0.3), *planned(of, 1, 0.6)]
        found = scored(made, of)
        for part in EVALUATED:
            true = of.labels(part, of.truth(part))
            expected = [100 * plan_scores(of_part(made, part, s), true, batch_size=5).miou for s in (0, 1)]
            assert found[f"{part}_miou"]["per_seed"] == pytest.approx(expected)
            assert found[f"{part}_miou"]["ci"] is None
            assert found[f"{part}_sr"]["ci"] is not None
        by_window = scored(made, inputs("mlp-t3"))
        assert by_window["base_miou"]["value"] != pytest.approx(found["base_miou"]["value"])
        assert by_window["base_sr"] == found["base_sr"]

    def test_guesses_count_by_their_expectation(self) -> None:
        of = self.of("random-t3")
        made = [replace(each, plan=(GUESS, GUESS, GUESS)) for each in planned(of)]
        found, pool, true = scored(made, of), len(of.pool("base")), of.labels("base", of.truth("base"))
        batches = [true[start : start + 5] for start in range(0, len(true), 5)]
        guessed = [window_scores([[GUESS] * 3 * len(b)], [sum(b, ())], n_actions=pool).iou[0] for b in batches]
        expected = 100 * np.average(guessed, weights=[*map(len, batches)])
        assert found["base_miou"]["value"] == pytest.approx(expected)

    def test_plans_of_several_lengths_are_one_set_too(self) -> None:
        of = self.of("frequent-whole")
        made = planned(of)
        wrong = [replace(each, plan=(NO_ACTION,) * len(each.plan)) for each in made]
        assert [scored(each, of)["novel_miou"]["value"] for each in (made, wrong)] == pytest.approx([100, 0])


def test_a_window_is_found_by_its_video_and_place() -> None:
    of = inputs("matching-t3")
    made = planned(of, 0, 0.5)
    assert scored(made[::-1], of)["novel_acc"]["value"] == pytest.approx(scored(made, of)["novel_acc"]["value"])
    windows = of.truth("novel")
    assert len({(each.video, each.index) for each in windows}) == len(windows)
