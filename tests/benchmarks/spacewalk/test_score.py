"""Scores of recordings that differ in steps and in samples, by hand."""

from typing import Any

import numpy as np
import pytest

from stepline.benchmarks.spacewalk.kinds import Choice
from stepline.benchmarks.spacewalk.score import apply_thresholds, values
from stepline.datasets.schema import Recording, Step
from stepline.datasets.studies import RETRIEVAL
from tests.benchmarks.spacewalk.conftest import TinyInputs, segments_of, study_of

STEPS = {"a": ("train", 2), "c": ("val", 2), "d": ("test", 1), "e": ("test", 3), "f": ("test", 2)}
SAMPLES = {"d": 10, "e": 7, "f": 4}
"""Of the recordings of test; the others have 10."""


def recording(video: str) -> Recording:
    """Return a recording of which each label has 10 s, in order."""
    split, n_steps = STEPS[video]
    segments = segments_of(*((label, 100) for label in range(n_steps + 1)))
    steps = tuple(Step(caption="", transcript="", animation_s=(0, 1) if k else None) for k in range(n_steps + 1))
    return Recording(video=video, split=split, duration_s=segments[-1].end_s, segments=segments, steps=steps)  # type: ignore[arg-type]


def made(table: str = "2a") -> TinyInputs:
    """Return the inputs of an entry of a table."""
    inputs = study_of([recording(video) for video in STEPS], {}, {}, samples=10).inputs(
        {"kind": "random", "table": table}
    )
    items = inputs.items("test")
    items |= {video: items[video][: SAMPLES[video]] for video in items}
    return inputs


def choice(video: str, chosen: Any, scores: Any = None, split: str = "test", seed: int = 0) -> Choice:
    ids = np.arange(len(chosen))
    scores = None if scores is None else np.array(scores, np.float32)
    return Choice(seed=seed, split=split, video=video, ids=ids, chosen=np.array(chosen), scores=scores)


def labels(inputs: TinyInputs, video: str) -> list[int]:
    return [item.label for item in inputs.items("test")[video]]


def test_a_recording_counts_as_much_as_another_and_a_guess_as_often_as_it_is_right() -> None:
    """Of e, Irrelevant is right twice, a step twice, and a guess in a quarter; of f all are guesses."""
    inputs = made()
    assert labels(inputs, "e") == [0, 0, 0, 1, 1, 1, 2]
    assert labels(inputs, "f") == [0, 0, 0, 0]
    found = values(inputs, [choice("f", [-1] * 4), choice("e", [0, 0, 1, 1, 2, 1, -1]), choice("a", [0], split="val")])
    assert found.keys() == {"accuracy"}
    assert found["accuracy"].videos == ["f", "e"]
    np.testing.assert_allclose(found["accuracy"].values, [100 / 3, 100 * (4 + 1 / 4) / 7])
    assert found["accuracy"].counts == {"n_listed": 3, "n_samples": 11}
    assert (found["accuracy"].drawn, found["accuracy"].draw_sd) == (True, None)


def test_guesses_alone_have_the_deviation_of_what_is_drawn() -> None:
    """Of a half with 10 samples and a quarter with 7."""
    inputs = made()
    found = values(inputs, [choice("d", [-1] * 10), choice("e", [-1] * 7)])["accuracy"]
    assert found.values.tolist() == [50, 25]
    assert (found.drawn, found.draw_sd) == (False, pytest.approx(100 * (0.25 / 10 + 0.1875 / 7) ** 0.5 / 2))


def test_a_query_is_a_choice_of_two_whatever_the_steps() -> None:
    inputs = made("2b")
    assert inputs.entry.task == RETRIEVAL
    right = labels(inputs, "e")
    found = values(inputs, [choice("e", [*right[:2], 1 - right[2], *([-1] * 4)]), choice("f", labels(inputs, "f"))])
    assert found.keys() == {"accuracy"}
    np.testing.assert_allclose(found["accuracy"].values, [100 * (2 + 4 / 2) / 7, 100])
    assert found["accuracy"].counts == {"n_listed": 3, "n_queries": 11, "pool_used": 22, "pool_listed": 42}


def test_precision_is_a_mean_over_the_steps_that_have_samples() -> None:
    """Of e, samples of step 1 are first, third and sixth, that of step 2 is second, and step 3 has none."""
    inputs, scores = made(), np.zeros((7, 4))
    scores[:, 0] = np.nan
    scores[:, 1] = [1, 7, 2, 9, 4, 0.5, 0]
    scores[:, 2] = [0, 0, 9, 0, 0, 0, 5]
    found = values(inputs, [choice("e", [1] * 7, scores)])["map"]
    assert found.values.tolist() == [pytest.approx(100 * ((1 + 2 / 3 + 3 / 6) / 3 + 1 / 2) / 2)]
    inputs.options["metrics"]["average_precision"] = "uninterpolated"
    scores[:, 1] = [9, 1, 2, 8, 7, 6, 0]  # each precision is lower than the next
    found = values(inputs, [choice("e", [1] * 7, scores)])["map"]
    assert found.values.tolist() == [pytest.approx(100 * ((1 / 2 + 2 / 3 + 3 / 4) / 3 + 1 / 2) / 2)]


@pytest.mark.parametrize(("f1", "kept"), [("binary", 0.2), ("macro", 0.3)])
def test_each_seed_has_the_threshold_of_its_own_scores_on_val(f1: str, kept: float) -> None:
    """0.1 alone is of Irrelevant; the mean over labels and recordings is higher without the wrong step at 0.2.

    The second seed has twice these scores.
    """
    said, answers, best = {"v": [1, 0, 1], "w": [1, 2]}, {"v": [1, 2, 2], "w": [1, 2]}, {"v": [3, 1, 2], "w": [4, 5]}
    predictions = []
    for video in ("w", "v"):
        for seed in (4, 2):
            rows = [[9, *((each if k == label else 0) * (2 if seed == 4 else 1) / 10 for k in (1, 2))]
                    for each, label in zip(best[video], answers[video], strict=True)]  # fmt: skip
            predictions.append(choice(video, answers[video], rows, "val", seed))
    tested = [[9, each / 10, 0] for each in (1, 2, 3, 4, 5, 6)]
    predictions += [choice("t", [1] * 6, tested, seed=seed) for seed in (2, 4)]
    applied, thresholds = apply_thresholds(predictions, {video: np.array(each) for video, each in said.items()}, f1=f1)
    np.testing.assert_allclose(thresholds, [kept, 2 * kept], rtol=1e-6)
    assert [(each.seed, each.split, each.video) for each in applied] == [
        (each.seed, each.split, each.video) for each in predictions
    ]
    for each, least in zip(applied[-2:], (kept, 2 * kept), strict=True):
        assert each.chosen.tolist() == [int(score / 10 >= least - 1e-9) for score in (1, 2, 3, 4, 5, 6)]
    assert applied[0].chosen.tolist() == [1, 2]
