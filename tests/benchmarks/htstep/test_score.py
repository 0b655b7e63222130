"""Scores of hand-made predictions on the small release."""

import io
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from zipfile import ZipFile

import numpy as np
import pytest

from stepline.benchmark import Values
from stepline.benchmark.plan import read_score
from stepline.benchmarks.htstep.kinds import Found
from stepline.benchmarks.htstep.metrics import METRICS, split_of
from stepline.benchmarks.htstep.score import counted, values
from stepline.datasets.htstep import RELEASES, Recording, Segment, Step
from stepline.metrics.step_recall import random_subsets
from stepline.runs.predictions import write_predictions
from stepline.runs.score import score
from tests.benchmarks.htstep.conftest import inputs
from tests.benchmarks.htstep.synthetic import videos, write_releases
from tests.datasets.fetched import write_release

pytestmark = pytest.mark.usefixtures("releases")
CUPS = tuple(
    Step(id=number, activity=activity, variation=variation, index=number + 1, headline=f"h{number}", paragraph="")
    for number, (activity, variation) in enumerate(
        (("Cup", ""), ("Cup", ""), ("Pan", ""), ("Pan", ""), ("Cup", "other"))
    )
)


def mean(of: Values) -> float:
    return float(np.nanmean(of.values)) if of.corpus is None else of.corpus


def recording(
    video: str, *segments: tuple[float, float, int, str], activity: str = "Cup", split: str = "val_seen"
) -> Recording:
    return Recording(
        video=video,
        split=split,
        activity=activity,
        steps=tuple(step.id for step in CUPS if (step.activity, step.variation) == (activity, "")),
        segments=tuple(Segment(start_s=a, end_s=b, step=step, match=match) for a, b, step, match in segments),
        labelled=bool(segments),
    )


def truly(each: Recording, seed: int = 0) -> Found:
    """Return a perfect prediction."""
    firsts = {segment.step: segment.start_s for segment in reversed(each.segments)}
    return Found(
        seed=seed,
        split=each.split,
        video=each.video,
        steps=tuple(segment.step for segment in each.segments),
        segments=tuple((segment.start_s, segment.end_s) for segment in each.segments),
        scores=tuple(1.0 - place / 100 for place, _ in enumerate(each.segments)),
        article=each.steps,
        times_s=tuple(float(int(firsts.get(step, 0))) for step in each.steps),
        ordered_s=(-1.0,) * len(each.steps),
    )


def read(
    listed: Sequence[Recording], labelled: Sequence[str] = ("val_seen",), release: str = "v1", **metrics: Any
) -> Any:
    """Return inputs with these videos."""
    options = {"crosstask_evaluated": "drawn", "crosstask_seed": 0, "crosstask_subsets": 4, "crosstask_videos": 9}
    pool: dict[str, list[str]] = {}
    for each in listed:
        pool.setdefault(each.activity, []).append(each.video)
    return SimpleNamespace(
        benchmark=SimpleNamespace(labelled=tuple(labelled)),
        release=release,
        options={"metrics": options | metrics},
        steps={step.id: step for step in CUPS},
        truth=lambda split: [each for each in listed if each.split == split],
        pool=pool,
    )


ONE = recording("a", (0, 10, 0, "full"), (20, 30, 1, "partial"))
OTHER = recording("b", (5, 9, 2, "full"), activity="Pan")


class TestGrounding:
    def test_a_perfect_prediction_gives_100_in_both_readings(self) -> None:
        of = inputs("place")
        scores = values(of, [truly(each) for each in of.truth("val_seen")])
        maps = [name for name in scores if "map" in name]
        assert {split_of(name) for name in scores} == {"val_seen"}
        assert {*maps} == {name for name in METRICS if name.startswith("val_seen_") and "map" in name}
        assert {mean(scores[name]) for name in maps} == {100}
        assert mean(scores["val_seen_dropped"]) == 0
        assert mean(scores["val_seen_r1"]) == 100
        assert mean(scores["val_seen_ordered_r1"]) == 0
        assert [*scores["val_seen_map"].videos] == ["Bake Bread", "Fry Eggs", "Make Tea"]
        units = {name: scores[f"val_seen_{name}"].units for name in ("map", "r1", "dropped")}
        assert units == {"map": "activities", "r1": "videos", "dropped": "splits"}

    def test_swapped_steps_are_found_officially_and_no_query_is(self) -> None:
        made = truly(ONE)
        scores = values(read([ONE]), [replace(made, steps=made.steps[::-1])])
        assert (mean(scores["val_seen_map"]), mean(scores["val_seen_query_map"])) == (100, 0)

    def test_each_threshold_has_its_column_and_the_mean_is_over_five(self) -> None:
        """Of ten segments, 2, 1, 2, 2 and 3 have an IoU of 0.35, 0.45, 0.55, 0.65 and 0.75."""
        each = recording("a", *((20.0 * k, 20.0 * k + 10, 0, "full") for k in range(10)))
        lengths = [7.5, 7.5, 7.5, 6.5, 6.5, 5.5, 5.5, 4.5, 3.5, 3.5]
        made = replace(truly(each), segments=tuple((20.0 * k, 20 * k + of) for k, of in enumerate(lengths)))
        scores = values(read([each]), [made])
        for reading in ("", "query_"):
            found = [mean(scores[f"val_seen_{reading}map{at}"]) for at in ("_03", "_05", "_07", "")]
            assert found == pytest.approx([100, 70, 30, 66])
        assert mean(scores["val_seen_full_map"]) == pytest.approx(66)

    def test_full_and_partial_matches_are_scored_apart_and_per_query(self) -> None:
        each = recording("a", (0, 10, 0, "full"), (20, 30, 1, "partial"))
        missed = replace(truly(each), segments=((0.0, 10.0), (40.0, 50.0)))
        scores = values(read([each]), [missed])
        assert (mean(scores["val_seen_full_map"]), mean(scores["val_seen_partial_map"])) == (100, 0)
        both = recording("a", (0, 10, 0, "full"), (20, 30, 1, "full"))
        swapped = replace(truly(both), steps=(1, 0))
        scores = values(read([both]), [swapped])
        assert (mean(scores["val_seen_map"]), mean(scores["val_seen_full_map"])) == (100, 0)
        both = recording("a", (0, 10, 0, "partial"), (20, 30, 1, "partial"))
        assert mean(values(read([both]), [swapped])["val_seen_partial_map"]) == 0

    def test_a_match_that_no_step_has_alone_has_no_number(self) -> None:
        both = recording("a", (0, 10, 0, "full"), (20, 30, 0, "partial"), (40, 50, 1, "partial"))
        scores = values(read([both]), [truly(both)])
        assert "val_seen_full_map" not in scores
        assert mean(scores["val_seen_partial_map"]) == 100
        apart = [recording(video, (0, 10, 0, match)) for video, match in (("a", "full"), ("b", "partial"))]
        scores = values(read(apart), [truly(each) for each in apart])
        assert mean(scores["val_seen_full_map"]) == mean(scores["val_seen_partial_map"]) == 100
        unsaid = recording("a", (0, 10, 0, "full"), (20, 30, 1, ""))
        assert not [name for name in values(read([unsaid]), [truly(unsaid)]) if "full" in name or "partial" in name]

    def test_the_share_of_predictions_of_other_articles_and_of_steps_that_no_video_shows_is_dropped(self) -> None:
        each, varied = recording("a", (0, 10, 0, "full")), replace(recording("b", (0, 10, 4, "full")), steps=(4,))
        made = truly(each)
        more = replace(made, steps=(0, 1, 2, 4, 99), segments=made.segments * 5, scores=made.scores * 5)
        scores = values(read([each, varied]), [more, truly(varied)])
        assert mean(scores["val_seen_dropped"]) == pytest.approx(100 * 4 / 6)
        assert not scores["val_seen_dropped"].interval
        made = truly(ONE)
        more = replace(made, steps=(*made.steps, 2, 99), segments=made.segments * 2, scores=made.scores * 2)
        scores = values(read([ONE]), [more])
        assert mean(scores["val_seen_dropped"]) == 50
        assert mean(scores["val_seen_map"]) == 100
        nothing = replace(made, steps=(), segments=(), scores=())
        scores = values(read([ONE]), [nothing])
        assert (mean(scores["val_seen_dropped"]), mean(scores["val_seen_map"])) == (0, 0)

    def test_activities_count_the_same(self) -> None:
        scores = values(read([ONE, OTHER]), [truly(ONE), replace(truly(OTHER), segments=((50.0, 60.0),))])
        assert [*scores["val_seen_map"].videos] == ["Cup", "Pan"]
        assert scores["val_seen_map"].values.tolist() == [100, 0]

    def test_absent_videos_are_left_out_and_counted(self) -> None:
        empty = recording("c")
        scores = values(read([ONE, OTHER, empty]), [truly(ONE), truly(empty)])
        assert scores["val_seen_map"].counts == {"n_videos": 1, "n_listed": 2}
        assert scores["val_seen_map"].values.tolist() == [100]
        assert scores["val_seen_r1"].counts == {"n_videos": 1, "n_listed": 2, "n_samples": 2}

    def test_all_videos_of_a_split_are_listed_also_where_a_subset_is_evaluated(self) -> None:
        of = inputs("place", subset={"fraction": 0.7})
        made = [truly(each) for each in of.chosen("val_seen")]
        assert values(of, made)["val_seen_map"].counts == {"n_videos": len(made), "n_listed": 9}
        assert 0 < len(made) < 9
        of = inputs("uniform", "crosstask", subset={"fraction": 0.7})
        made = [truly(each) for each in of.truth("crosstask")[1:]]
        assert values(of, made)["crosstask_map"].counts == {"n_videos": 3, "n_listed": 4}

    def test_splits_have_their_own_numbers(self) -> None:
        listed = [replace(ONE, split="val_seen"), replace(OTHER, split="test_seen")]
        wrong = replace(truly(listed[1]), segments=((50.0, 60.0),), times_s=(50.0, 50.0))
        scores = values(read(listed, ("val_seen", "test_seen")), [truly(listed[0]), wrong])
        assert [mean(scores[f"{split}_{name}"]) for split in ("val_seen", "test_seen") for name in ("map", "r1")] == [
            100,
            100,
            0,
            0,
        ]

    def test_splits_without_labels_or_predictions_have_no_number(self) -> None:
        test = recording("t", (0, 10, 0, "full"), split="test_seen")
        made = [truly(ONE), truly(test)]
        assert {split_of(name) for name in values(read([ONE, test]), made)} == {"val_seen"}
        both = values(read([ONE, test], ("val_seen", "test_seen")), made)
        assert [*dict.fromkeys(map(split_of, both))] == ["val_seen", "test_seen"]
        assert {split_of(name) for name in values(read([ONE, test], ("val_seen", "test_seen")), made[:1])} == {
            "val_seen"
        }


class TestTimes:
    @pytest.mark.parametrize(("time_s", "hit"), [(4, 0), (5, 100), (9, 100), (10, 100), (11, 0)])
    def test_a_hit_is_a_second_of_a_segment_with_its_last(self, time_s: float, hit: float) -> None:
        each = recording("a", (5.5, 9.5, 1, "full"))
        scores = values(read([each]), [replace(truly(each), times_s=(0.0, float(time_s)))])
        assert scores["val_seen_r1"].values.tolist() == [hit]

    def test_any_of_a_step_s_segments_counts_and_steps_that_are_not_shown_do_not(self) -> None:
        each = recording("a", (0, 5, 0, "full"), (10, 15, 0, "full"))
        made = replace(truly(each), times_s=(12.0, 2.0), ordered_s=(7.0, 12.0))
        scores = values(read([each]), [made])
        assert [scores[f"val_seen_{name}"].values.tolist() for name in ("r1", "ordered_r1")] == [[100], [0]]

    def test_each_shown_step_is_a_value_of_its_video(self) -> None:
        a, b = recording("a", (0, 5, 0, "full"), (10, 15, 1, "full")), recording("b", (0, 5, 1, "full"))
        made = [replace(truly(a), times_s=(2.0, 2.0), ordered_s=(7.0, 12.0)), replace(truly(b), times_s=(2.0, 9.0))]
        scores = values(read([a, b]), made[::-1])
        assert [*scores["val_seen_r1"].videos] == ["a", "a", "b"]
        assert scores["val_seen_r1"].values.tolist() == [100, 0, 0]
        assert scores["val_seen_ordered_r1"].values.tolist() == [0, 100, 0]

    def test_a_method_that_says_times_of_some_videos_has_no_recall(self) -> None:
        other = recording("b", (0, 5, 1, "full"))
        made = [truly(ONE), replace(truly(other), article=(), times_s=(), ordered_s=())]
        assert not [name for name in values(read([ONE, other]), made) if name.endswith("r1")]

    def test_a_method_that_says_no_times_has_no_recall(self) -> None:
        made = replace(truly(ONE), article=(), times_s=(), ordered_s=())
        assert not [name for name in values(read([ONE]), [made]) if name.endswith("r1")]


class TestCrosstask:
    VIDEOS = tuple(
        recording(video, *segments, activity=activity, split="crosstask")
        for video, activity, segments in (
            ("x", "Cup", [(0, 10, 0, ""), (20, 30, 1, "")]),
            ("x", "Pan", [(40, 50, 2, "")]),
            ("y", "Cup", [(0, 10, 0, "")]),
        )
    )

    def scores(self, made: Sequence[Found], **metrics: Any) -> Any:
        return values(read(self.VIDEOS, release="crosstask", **metrics), made)

    def test_a_video_of_two_tasks_is_scored_for_each(self) -> None:
        made = [truly(each) for each in self.VIDEOS]
        scores = self.scores(made)
        assert {name: mean(each) for name, each in scores.items() if not name.endswith("_sd")} == {
            "crosstask_r1": 100,
            "crosstask_ordered_r1": 0,
            "crosstask_map": 100,
        }
        wrong = replace(made[1], times_s=(0.0, 0.0), segments=((40.0, 44.5),))
        scores = self.scores([made[0], wrong, made[2]])
        assert scores["crosstask_r1"].values.tolist() == [100, 0]
        assert scores["crosstask_map"].values == pytest.approx([100, 40])  # its IoU of 0.45 is enough for two of five
        assert mean(scores["crosstask_r1"]) == 50
        assert scores["crosstask_r1"].counts == scores["crosstask_r1_sd"].counts == {"n_videos": 3, "n_listed": 3}
        assert [*scores["crosstask_map"].videos] == ["Cup", "Pan"]
        swapped = self.scores([replace(made[0], steps=made[0].steps[::-1]), *made[1:]])
        assert mean(swapped["crosstask_map"]) == 100, "by the official reading"
        units = {name: each.units for name, each in scores.items() if "ordered" not in name}
        assert units == {"crosstask_r1": "tasks", "crosstask_r1_sd": "subsets", "crosstask_map": "tasks"}

    def test_the_steps_of_a_task_s_videos_count_together(self) -> None:
        made = [truly(each) for each in self.VIDEOS]
        made[2] = replace(made[2], times_s=(10.0, 0.0))  # the second after the last
        scores = self.scores(made)
        assert scores["crosstask_r1"].values == pytest.approx([100 * 2 / 3, 100])
        assert mean(scores["crosstask_r1"]) == pytest.approx(100 * (2 / 3 + 1) / 2)

    def test_it_is_the_mean_over_subsets_with_their_deviation(self) -> None:
        made = [truly(each) for each in self.VIDEOS]
        made[0] = replace(made[0], times_s=(15.0, 15.0))
        scores = self.scores(made, crosstask_subsets=40, crosstask_videos=1)
        value, sd = scores["crosstask_r1"].corpus, scores["crosstask_r1_sd"].corpus
        assert 50 < value < 100  # each subset has x, so 50, or y, so 100
        share = (value - 50) / 50
        assert sd == pytest.approx(50 * np.sqrt(share * (1 - share) * 40 / 39))
        assert [*scores["crosstask_r1_sd"].videos] == [f"subset {number}" for number in range(40)]
        subsets = random_subsets({"Cup": ["x", "y"], "Pan": ["x"]}, evaluated="drawn", seed=0, n=40, per_task=1)
        expected = [50 if ("Cup", "x") in subset else 100 for subset in subsets]
        assert scores["crosstask_r1_sd"].values.tolist() == expected != expected[::-1]
        other = self.scores(made, crosstask_subsets=40, crosstask_videos=1, crosstask_seed=1)
        assert other["crosstask_r1"].corpus != value
        assert self.scores(made, crosstask_subsets=40)["crosstask_r1"].corpus == pytest.approx(200 / 3)
        rest = self.scores(made, crosstask_subsets=40, crosstask_videos=1, crosstask_evaluated="rest")
        assert rest["crosstask_r1"].corpus == pytest.approx(100 * (1 - share))

    def test_subsets_are_drawn_from_all_videos_whether_they_are_available_or_not(self) -> None:
        made = [truly(each) for each in self.VIDEOS]
        made[0] = replace(made[0], times_s=(15.0, 15.0))
        options = {"crosstask_subsets": 40, "crosstask_videos": 1}
        every, without = self.scores(made, **options), self.scores(made[:2], **options)
        assert without["crosstask_r1_sd"].values.tolist() == every["crosstask_r1_sd"].values.tolist()
        assert {*without["crosstask_r1_sd"].values.tolist()} == {50, 100}
        assert without["crosstask_r1"].counts == {"n_videos": 2, "n_listed": 3}

    def test_ordered_times_are_scored_apart(self) -> None:
        made = [replace(truly(each), times_s=(0.0,) * 2, ordered_s=truly(each).times_s) for each in self.VIDEOS]
        made[0] = replace(made[0], ordered_s=(10.0, 20.0))  # the second after the last
        scores = self.scores(made)
        found = [scores[f"crosstask_{name}"].values.tolist() for name in ("r1", "ordered_r1")]
        assert found == [pytest.approx([200 / 3, 0]), pytest.approx([200 / 3, 100])]
        assert [scores[f"crosstask_{name}_sd"].corpus for name in ("r1", "ordered_r1")] == [0, 0]

    def test_subsets_without_a_video_are_left_out(self) -> None:
        made = [truly(self.VIDEOS[2])]
        scores = self.scores(made, crosstask_subsets=20, crosstask_videos=1)
        assert mean(scores["crosstask_r1"]) == 100
        assert scores["crosstask_r1"].counts == {"n_videos": 1, "n_listed": 3}
        listed = [self.VIDEOS[2], recording("z", split="crosstask")]
        options = {"crosstask_subsets": 20, "crosstask_videos": 1}
        of_shown = values(read(listed, release="crosstask", **options), [truly(each) for each in listed])
        assert mean(of_shown["crosstask_r1"]) == 100
        assert 2 <= len(of_shown["crosstask_r1_sd"].videos) < 20, "z shows no step"
        assert {*self.scores(made, crosstask_evaluated="rest")} == {"crosstask_map"}
        drawn = [self.scores(made, crosstask_subsets=2, crosstask_videos=1, crosstask_seed=seed) for seed in range(20)]
        assert {len(each["crosstask_r1_sd"].videos) if len(each) > 1 else 0 for each in drawn} == {0, 2}
        assert self.scores([]) == {}


class TestCrosstaskSplits:
    """Random splits of a made-up release in CrossTask's form, against all splits that its rule allows.

    The rule, as numbers: of the videos that a task has in videos.csv and not in videos_val.csv, N_TRAIN are taken for
    training if there are more, and the others are tested; otherwise none is tested. A tested video counts if it is
    annotated. The recall of a task is hits over shown steps of its tested videos; the result is the mean over tasks.
    """

    N_TRAIN = 2
    TASKS: ClassVar = {"1": "Tea", "2": "Tyre", "3": "Cake"}
    TRAINABLE: ClassVar = {"1": "abcdef", "2": "ghij", "3": "kl"}
    VALIDATION = (("1", "v"), ("1", "w"), ("2", "a"))
    SHOWN: ClassVar = {  # by task and video: the numbers of shown steps and of found ones; 1, f has no annotation
        "1": {"a": (3, 3), "b": (3, 0), "c": (2, 1), "d": (1, 0), "e": (3, 1), "v": (3, 2), "w": (2, 2)},
        "2": {"g": (1, 1), "h": (3, 1), "i": (2, 0), "j": (3, 2), "a": (3, 0)},
        "3": {"k": (2, 2), "l": (1, 0)},
    }

    def possible(self) -> set[float]:
        """Return the result of each split."""
        by_task = []
        for task, trainable in self.TRAINABLE.items():
            found = set()
            for tested in combinations(trainable, max(0, len(trainable) - self.N_TRAIN)):
                counts = [self.SHOWN[task].get(video, (0, 0)) for video in tested]
                if n_shown := sum(shown for shown, _ in counts):
                    found.add(sum(hits for _, hits in counts) / n_shown)
            by_task += [found] if found else []
        return {round(100 * float(np.mean(recalls)), 6) for recalls in product(*by_task)}

    def write(self) -> None:
        def lines(*pairs: tuple[str, str]) -> str:
            return "".join(f"{task},{video},https://example.org\n" for task, video in pairs)

        trainable = [(task, video) for task, videos in self.TRAINABLE.items() for video in videos]
        files = {
            "tasks_primary.txt": "".join(f"{task}\n{title}\nu\n3\nx,y,z\n\n" for task, title in self.TASKS.items()),
            "videos.csv": lines(*trainable, *self.VALIDATION, ("9", "related")),
            "videos_val.csv": lines(*self.VALIDATION),
        } | {
            f"annotations/{task}_{video}.csv": "".join(f"{k + 1},{10 * k},{10 * k + 5}\n" for k in range(shown))
            for task, videos in self.SHOWN.items()
            for video, (shown, _) in videos.items()
        }
        made = io.BytesIO()
        with ZipFile(made, "w") as archive:
            for name, content in files.items():
                archive.writestr(f"crosstask_release/{name}", content)
        write_release(RELEASES, "crosstask", {"crosstask_release.zip": made.getvalue()})

    def scores(self, **metrics: Any) -> Any:
        self.write()
        of = inputs("uniform", "crosstask", metrics={"crosstask_videos": self.N_TRAIN, **metrics})
        number = {title: task for task, title in self.TASKS.items()}
        made = []
        for each in of.truth("crosstask"):
            shown, found = self.SHOWN[number[each.activity]][each.video]
            times_s = tuple(10.0 * k + (2 if k < found else 7) for k in range(3))
            made.append(replace(truly(each), times_s=times_s, scores=(0.5,) * shown))
        return values(of, made)

    def test_the_results_are_those_of_the_splits_that_the_release_may_draw(self) -> None:
        scores = self.scores(crosstask_subsets=1500)
        possible = self.possible()
        assert len(possible) > 50
        assert {round(value, 6) for value in scores["crosstask_r1_sd"].values.tolist()} == possible
        assert scores["crosstask_r1"].corpus == pytest.approx(scores["crosstask_r1_sd"].values.mean())
        assert [*scores["crosstask_r1"].videos] == ["Tea", "Tyre"]
        assert scores["crosstask_r1"].values == pytest.approx([100 * 5 / 12, 100 * 4 / 9])
        assert scores["crosstask_r1"].counts == {"n_videos": 11, "n_listed": 11}
        assert [*scores["crosstask_map"].videos] == ["Cake", "Tea", "Tyre"]

    def test_the_validation_videos_are_evaluated_on_request(self) -> None:
        scores = self.scores(crosstask_subsets=2, crosstask_validation=True)
        assert scores["crosstask_r1"].counts == {"n_videos": 14, "n_listed": 14}


@pytest.mark.usefixtures("banks")
def test_seeds_have_the_same_units_and_their_mean_is_the_score() -> None:
    of = inputs("aft", actionformer={"seeds": [0, 1]})
    listed = of.truth("val_seen")
    none = [replace(truly(each, 1), segments=((500.0, 501.0),) * len(each.segments)) for each in listed]
    made, path = [*(truly(each) for each in listed), *none], Path("predictions.parquet")
    write_predictions(path, Found, made, spec=of.spec, needs=[], selection="")
    score(of, path, Path("score.json"))
    metrics = read_score(Path("score.json"))["metrics"]
    assert metrics["val_seen_map"]["per_seed"] == [100, 0]
    assert metrics["val_seen_map"]["value"] == 50
    assert (metrics["val_seen_map"]["n_videos"], metrics["val_seen_map"]["n_listed"]) == (9, 9)
    assert metrics["val_seen_map"]["per_video"] == {"Bake Bread": 50, "Fry Eggs": 50, "Make Tea": 50}


def test_counts_are_the_release_s() -> None:
    train = [each for each in videos() if each.split == "train"]
    assert counted("train") == {"videos": 24, "segments": sum(len(each.segments) for each in train), "activities": 3}
    assert counted("test_unseen") == {"videos": 2}
    write_releases("val_unseen")
    assert counted("test_unseen")["activities"] == 1
