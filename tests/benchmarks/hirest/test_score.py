"""Scores of hand-made predictions on the small release."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stepline.benchmark import Values
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.benchmarks.hirest.methods.found import found, ranking
from stepline.benchmarks.hirest.metrics import METRICS, SEGMENTS
from stepline.benchmarks.hirest.score import values
from stepline.datasets.hirest import Pair, Step
from tests.benchmarks.hirest.conftest import inputs, predicted
from tests.benchmarks.hirest.synthetic import QUERIES, write_labels

pytestmark = pytest.mark.usefixtures("releases")


def mean(of: Values) -> float:
    return float(np.nanmean(of.values))


def said(of: HirestInputs, **how: Any) -> list[Found]:
    """Return predictions of all pairs; how: from a pair to what is said of it."""
    pairs = [pair for pair in of.evaluated if "moment" in how or pair.steps]
    return [found(pair, **{key: each(pair) for key, each in how.items()}) for pair in pairs]


def pair(video: str, start_s: float, end_s: float, *steps: tuple[float, float], split: str = "val") -> Pair:
    """Return a pair with a moment and its steps."""
    captioned = tuple(Step(start_s=start, end_s=end, caption="x") for start, end in steps)
    about = {"query": "q", "duration_s": 100.0, "clippable": True, "split": split}
    return Pair(video=video, bounds_s=(start_s, end_s), steps=captioned, **about)  # type: ignore[arg-type]


def by_hand(val: list[Pair], test: list[Pair], *, preprocess: bool = True) -> Any:
    """Return inputs of these pairs."""
    return SimpleNamespace(
        entry=SimpleNamespace(splits=("val", "test")),
        truth={"val": val, "test_507": test}.__getitem__,
        options={"metrics": {"preprocess_moment_bounds": preprocess}},
    )


class TestRetrieval:
    QUERIES = QUERIES["test"]

    def test_any_of_a_query_s_videos_counts_from_its_place_on(self) -> None:
        of = inputs("random")
        places = dict(zip(self.QUERIES, (11, 1, 6, 5, 50, 10), strict=True))
        others = [f"x{number}" for number in range(50)]
        made = [
            ranking(query, [*others[: place - 1], of.queries[query][place % 2]], 60) for query, place in places.items()
        ]
        of.__dict__["queries"] = dict(reversed(of.queries.items()))
        scores = values(of, made)
        for k in (1, 5, 10, 50):
            for name in (f"r{k}", f"r{k}_all"):
                listed = list(scores[name].videos)
                assert listed == [*self.QUERIES[::-1]], name
                assert scores[name].values.tolist() == [100 * (places[query] <= k) for query in listed], name

    def test_a_query_that_is_absent_is_left_out_and_a_miss_beside(self) -> None:
        of = inputs("random")
        made = [ranking(query, [of.queries[query][0]], 17) for query in self.QUERIES[:4]]
        scores = values(of, made)
        assert (mean(scores["r1"]), mean(scores["r1_all"])) == (100, pytest.approx(100 * 4 / 6))
        assert scores["r1"].counts == {
            "n_videos": None,
            "n_queries": 4,
            "queries_listed": 6,
            "pool_used": 17,
            "pool_listed": 23,
        }
        assert (list(scores["r1"].videos), scores["r1"].units) == (list(self.QUERIES), "queries")

    def test_the_smallest_pool_that_was_ranked_is_told(self) -> None:
        of = inputs("random")
        made = [ranking(query, [of.queries[query][0]], 10 + n) for n, query in enumerate(self.QUERIES)]
        assert values(of, made)["r1"].counts["pool_used"] == 10
        some = inputs("random", subset={"fraction": 0.3, "seed": 1})
        counts = values(some, predicted(some))["r1"].counts
        assert (counts["pool_used"], counts["pool_listed"]) == (len(some.used("pool")), 23)
        assert len(some.used("pool")) < 23


class TestMoments:
    def test_a_hit_is_an_iou_of_at_least_the_threshold(self) -> None:
        of = inputs("whole")

        def most(pair: Pair) -> tuple[float, float]:
            start_s, end_s = pair.bounds_s or (0.0, 1.0)
            return start_s, start_s + 0.6 * (end_s - start_s)

        scores = values(of, said(of, moment=most))
        assert {name: mean(scores[f"val_{name}"]) for name in ("r_05", "r_07")} == {"r_05": 100, "r_07": 0}
        assert mean(scores["val_miou"]) == pytest.approx(60)
        assert scores["val_r_05"].counts == {"n_listed": 10, "n_samples": 10}
        assert scores["test_507_r_05"].counts == {"n_listed": 6, "n_samples": 6}
        assert "test_r_05" not in scores

    def test_test_is_scored_where_the_authors_labels_are(self) -> None:
        write_labels()
        of = inputs("whole")
        scores = values(of, said(of, moment=lambda pair: pair.bounds_s))
        assert scores["test_r_05"].counts == {"n_listed": 15, "n_samples": 15}
        assert scores["test_507_r_05"].counts == {"n_listed": 6, "n_samples": 6}
        assert mean(scores["test_r_07"]) == 100

    def test_each_video_has_its_own_value_and_one_without_a_prediction_is_counted(self) -> None:
        true = {"a": (10.0, 30.0), "b": (0.0, 10.0), "c": (5.0, 9.0), "d": (0.0, 1.0)}
        of = by_hand([pair(video, *bounds_s) for video, bounds_s in true.items()], [pair("e", 2.0, 4.0, split="test")])
        guesses = {"c": (0.0, 5.0), "e": (1.0, 4.5), "a": (20.0, 40.0), "b": (1.0, 9.0)}
        scores = values(of, [found(pair(video, 0, 1), moment=said) for video, said in guesses.items()])
        assert scores["val_miou"].videos == ["c", "a", "b"]
        assert scores["val_miou"].values == pytest.approx([0, 100 / 3, 80])
        assert scores["val_r_07"].values.tolist() == [0, 0, 100]
        assert scores["test_507_miou"].values == pytest.approx([100 * 2 / 3.5])
        assert [scores[f"test_507_r_{name}"].values.tolist() for name in ("05", "07")] == [[100], [0]]
        assert scores["val_r_05"].counts == {"n_listed": 4, "n_samples": 3}


class TestSegments:
    def test_true_steps_lose_by_the_released_preprocessing_alone(self) -> None:
        scores = self.scores()
        assert mean(scores["val_raw_recall_05"]) == mean(scores["val_f1_07"]) == 100
        assert mean(scores["val_segment_miou"]) == pytest.approx(100)
        assert mean(scores["val_recall_05"]) < 100

    def test_the_option_leaves_it_out(self) -> None:
        scores, before = self.scores(metrics={"preprocess_moment_bounds": False}), self.scores()
        assert mean(scores["val_recall_05"]) == 100
        changed = {name for name, each in scores.items() if not np.array_equal(each.values, before[name].values)}
        beside = {name for name in scores if "preprocess_moment_bounds" in METRICS[name].options}
        assert changed <= beside, "numbers that it changes have the option beside them"
        assert {name[:-3] for name in changed} == {name[:-3] for name in beside}, "at any threshold"

    @pytest.mark.parametrize("preprocess", [True, False])
    def test_all_values_by_hand(self, preprocess: bool) -> None:
        """The best IoUs of a's steps are 0.95, 0.6 and 0.225, or 0.525 where gaps are filled; of b's, 0.6 and 0.77."""
        a = pair("a", 0, 100, (0, 40), (40, 60), (60, 100))
        b = pair("b", 10, 30, (10, 20), (20, 30))
        e = pair("e", 0, 20, (0, 6), (6, 20), split="test")
        of = by_hand([a, b, pair("c", 0, 9, (0, 9)), pair("d", 0, 9)], [e], preprocess=preprocess)
        guesses = {
            "e": [(5.0, 20.0)],
            "b": [(11.0, 17.0)],
            "a": [(0.0, 24.0), (1.0, 39.0), (45.0, 57.0), (70.0, 79.0)],
        }
        scores = values(of, [found(pair(video, 0, 1), segments=said) for video, said in guesses.items()])
        raw = {
            "recall_05": [1 / 2, 2 / 3],
            "recall_07": [0, 1 / 3],
            "precision_05": [1, 3 / 4],
            "precision_07": [0, 1 / 4],
        }
        gaps = {
            "recall_05": [1, 1],
            "recall_07": [1 / 2, 1 / 3],
            "precision_05": [2 / 3, 3 / 7],
            "precision_07": [1 / 3, 1 / 7],
        }
        own = {"f1_05": [2 / 3, 4 / 7], "f1_07": [0, 2 / 7], "segment_miou": [0.3, (0.95 + 0.6 + 0.225) / 3]}
        expected = (gaps if preprocess else raw) | {f"raw_{name}": each for name, each in raw.items()} | own
        for name, each in expected.items():
            assert scores[f"val_{name}"].values == pytest.approx([100 * value for value in each]), name
            assert scores[f"val_{name}"].videos == ["b", "a"]
            assert scores[f"val_{name}"].counts == {"n_listed": 3}
        assert scores["test_507_f1_07"].values == pytest.approx([100 * 2 / 3])
        assert scores["test_507_segment_miou"].values == pytest.approx([100 * (1 / 20 + 14 / 15) / 2])

    def test_steps_of_test_are_scored_as_the_507_alone(self) -> None:
        write_labels()
        of = inputs("truth")
        assert {name for name in values(of, predicted(of)) if name.startswith("test_")} == {
            name for name in SEGMENTS if name.startswith("test_507_")
        }

    def test_nothing_predicted_is_0_but_for_the_whole_moment_that_preprocessing_makes(self) -> None:
        of = inputs("uniform-1")
        scores = values(of, said(of, segments=lambda pair: ()))
        names = ("raw_recall_05", "raw_precision_05", "f1_05", "segment_miou")
        assert {mean(scores[f"val_{name}"]) for name in names} == {0}
        whole = values(of, said(of, segments=lambda pair: (pair.bounds_s,)))
        assert (scores["val_recall_05"].values == whole["val_recall_05"].values).all()

    @staticmethod
    def scores(**changes: Any) -> Mapping[str, Values]:
        of = inputs("truth", **changes)
        return values(of, predicted(of))
