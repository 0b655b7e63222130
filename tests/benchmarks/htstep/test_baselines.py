"""Places, durations and equal parts, by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.benchmarks.htstep.kinds import Found
from stepline.io import read_json
from tests.benchmarks.htstep.conftest import inputs, predicted
from tests.benchmarks.htstep.synthetic import Shown, articles, videos

pytestmark = pytest.mark.usefixtures("banks")
VIDEOS = {each.video: each for each in videos()}


def fitted(entry: str, **changes: Any) -> tuple[dict[str, Any], list[Found]]:
    """Return what is fitted, and predicted by it."""
    of, path = inputs(entry, **changes), Path("fit")
    of.benchmark.method(of.entry.kind)().fit(of.staged("fit"), 0, path)
    return read_json(path), predicted(of, path)


def of_train(activity: str = "") -> list[Shown]:
    return [each for each in videos() if each.split == "train" and activity in ("", each.activity)]


def test_uniform_cuts_are_equal_parts_in_order() -> None:
    for release in ("v1", "crosstask"):
        of = inputs("uniform", release)
        made = predicted(of)
        assert len(made) == len(of.evaluated)
        for each, recording in zip(made, of.evaluated, strict=True):
            n, duration = len(recording.steps), len(of.bank(recording.split)[recording.video])
            assert (each.video, each.split, each.steps) == (recording.video, recording.split, recording.steps)
            assert each.segments == tuple((duration * (k / n), duration * ((k + 1) / n)) for k in range(n))
            assert each.scores == (1.0,) * n
            assert each.article == each.steps
            assert (
                each.times_s
                == each.ordered_s
                == tuple(float(int(round(duration * (k + 0.5) / n, 9))) for k in range(n))
            )


def test_a_step_is_at_its_mean_place_and_as_certain_as_it_is_frequent() -> None:
    known, made = fitted("place")
    assert articles()["Make Tea", ""] == (0, 1, 2, 3)
    for step in (0, 3):
        shown = [(each, segment) for each in of_train() for segment in each.segments if segment[2] == step]
        start, end = (np.mean([segment[edge] / each.duration for each, segment in shown]) for edge in (0, 1))
        share = np.mean([any(step == segment[2] for segment in each.segments) for each in of_train("Make Tea")])
        assert known[str(step)] == pytest.approx([start, end, share])
    assert any(each.times_s != each.ordered_s for each in made)
    for each in made:
        assert each.ordered_s == tuple(sorted(each.times_s))
        assert {*each.steps} == {*VIDEOS[each.video].steps}
        assert list(each.scores) == sorted(each.scores, reverse=True)
    tea = next(each for each in made if each.video == "val_seen-0-1")
    at, duration = tea.steps.index(3), VIDEOS["val_seen-0-1"].duration
    assert tea.segments[at] == pytest.approx([duration * edge for edge in known["3"][:2]])
    assert tea.scores[at] == pytest.approx(known["3"][2])
    assert tea.times_s[3] == int(duration * sum(known["3"][:2]) / 2)


def test_a_step_that_train_does_not_show_is_where_others_are_at_its_place() -> None:
    known, made = fitted("place", baselines={"bins": 3})
    rice = next(each for each in made if each.video == "test_unseen-0-0")
    assert not {str(step) for step in rice.steps} & known.keys()
    duration = VIDEOS[rice.video].duration
    for place, step in enumerate(VIDEOS[rice.video].steps):
        start, end, share = known[f"place {place}"]
        at = rice.steps.index(step)
        assert rice.segments[at] == pytest.approx((duration * start, duration * end))
        assert rice.scores[at] == pytest.approx(share)


def test_equally_certain_steps_are_in_the_order_of_the_article() -> None:
    of = inputs("place")
    Path("fit").write_text('{"1": [0.5, 0.6, 0.5], "2": [0.1, 0.2, 0.5], "3": [0.7, 0.8, 0.51]}')
    tea = next(each for each in predicted(of, Path("fit")) if each.video == "val_seen-0-1")
    assert tea.steps == (3, 1, 2, 0)
    assert tea.scores == (0.51, 0.5, 0.5, 0)


def test_a_segment_lasts_as_long_as_those_of_the_activity() -> None:
    known, made = fitted("duration")
    for activity in ("", "Make Tea", "Fry Eggs"):
        lasted = [end_s - start_s for each in of_train(activity) for start_s, end_s, *_ in each.segments]
        assert known[activity] == pytest.approx(np.mean(lasted))
    assert "Boil Rice" not in known
    for video, key in (("val_seen-0-1", "Make Tea"), ("test_unseen-0-0", "")):
        each, duration = next(each for each in made if each.video == video), VIDEOS[video].duration
        n = len(each.steps)
        assert (each.steps, each.scores) == (VIDEOS[video].steps, (1.0,) * n)
        for k, (start_s, end_s) in enumerate(each.segments):
            assert (start_s + end_s) / 2 == pytest.approx(duration * (k + 0.5) / n)
            assert end_s - start_s == pytest.approx(known[key])


def test_what_is_fitted_is_of_the_chosen_videos() -> None:
    for entry in ("place", "duration"):
        of, path = inputs(entry, subset={"fraction": 0.5}), Path("fit")
        of.benchmark.method(of.entry.kind)().fit(of.staged("fit"), 0, path)
        chosen = {each.video for each in of.chosen("train")}
        shown = [(each, segment) for each in of_train() if each.video in chosen for segment in each.segments]
        assert 0 < len(chosen) < len(of_train())
        if entry == "duration":
            assert read_json(path)[""] == pytest.approx(np.mean([segment[1] - segment[0] for _, segment in shown]))
        else:
            starts = [segment[0] / each.duration for each, segment in shown if segment[2] == 0]
            assert read_json(path)["0"][0] == pytest.approx(np.mean(starts))


def test_a_segment_is_cut_to_the_video() -> None:
    of = inputs("duration")
    Path("fit").write_text('{"": 1000.0}')
    assert {
        segment for each in predicted(of, Path("fit")) if each.video == "val_seen-0-1" for segment in each.segments
    } == {(0, VIDEOS["val_seen-0-1"].duration)}


@pytest.mark.parametrize("entry", ["place", "duration"])
def test_each_seed_predicts_by_its_fit(entry: str) -> None:
    of = inputs(entry, baselines={"seeds": [3, 1]})
    Path("a").write_text('{"": 10.0, "place 0": [0.1, 0.2, 0.5]}')
    Path("b").write_text('{"": 20.0, "place 0": [0.6, 0.8, 0.5]}')
    made, other = predicted(of, Path("a"), Path("b")), predicted(of, Path("b"), Path("a"))
    n = len(of.evaluated)
    assert [each.seed for each in made] == [3] * n + [1] * n
    assert [replace(each, seed=3) for each in made[n:]] == other[:n] != made[:n]
