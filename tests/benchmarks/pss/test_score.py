from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.benchmark import Job
from stepline.benchmarks.pss import score as scoring
from stepline.benchmarks.pss.benchmark import Pss
from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.kinds import Segmentation
from stepline.datasets.pss import Procedure
from stepline.io import read_json
from stepline.metrics.captions import Scores, meteor_stem
from stepline.metrics.dense_captions import similarity
from stepline.metrics.segments import mean_iou, mean_jaccard
from stepline.metrics.soda import soda_c, soda_d
from stepline.runs.predictions import write_predictions
from stepline.runs.score import score
from tests.benchmarks.pss.conftest import plan
from tests.benchmarks.pss.synthetic import CONFIG
from tests.metrics.test_dense_captions import PREDICTED, TRUTH

pytestmark = pytest.mark.usefixtures("releases")


def inputs(entry: str, dataset: str = "youcook2", **changes: Any) -> PssInputs:
    made = plan(changes)
    return made.inputs(Job(release=dataset, entry=made.entries[entry]))


def scored(made: Sequence[Segmentation], entry: str = "frequent-given", **metrics: Any) -> dict[str, Any]:
    of = inputs(entry, metrics={**CONFIG["metrics"], **metrics})
    path = Path("p.parquet")
    write_predictions(path, Segmentation, made, spec=of.spec, needs=[], selection="chosen")
    score(of, path, Path("s.json"))
    found: dict[str, Any] = read_json(Path("s.json"))
    return found


def truth() -> list[Any]:
    return list(inputs("frequent-given").truth("test"))


def right(seed: int = 0) -> list[Segmentation]:
    return [
        Segmentation(seed=seed, split="test", video=t.video, segments=t.segments, sentences=t.sentences)
        for t in truth()
    ]


def test_what_is_right_has_everything() -> None:
    found = scored(right())["metrics"]
    assert found.keys() == {
        *("miou", "miou_1fps", "mjaccard", "mjaccard_1fps", "precision", "recall", "soda_d"),
        *("bleu4", "cider", "rouge_l", "meteor_stem", "soda_c_stem"),
    }
    for metric in ("miou", "mjaccard", "precision", "recall", "soda_d", "rouge_l"):
        assert found[metric]["value"] == pytest.approx(100, abs=1e-4)
        assert found[metric]["ci"] == pytest.approx([100, 100], abs=1e-4)
        assert len(found[metric]["per_video"]) == 4


def test_columns_are_means_over_videos_then_over_seeds() -> None:
    off = [
        Segmentation(
            seed=1, split="test", video=t.video, segments=((0.0, 30.0), (30.0, 60.0)), sentences=("cut", "fry")
        )
        for t in truth()
    ]
    found = scored([*right(), *off])
    by_hand = [soda_d(t.segments, p.segments) for t, p in zip(truth(), off, strict=True)]
    second = [100 * sum(values) / 4 for values in zip(*by_hand, strict=True)]
    for metric, value in zip(("precision", "recall", "soda_d"), second, strict=True):
        assert found["metrics"][metric]["per_seed"] == pytest.approx([100, value], abs=1e-4)
        assert found["metrics"][metric]["value"] == pytest.approx((100 + value) / 2, abs=1e-4)
        assert found["metrics"][metric]["sd"] == pytest.approx((100 - value) / 2**0.5, abs=1e-4)
    for name, metric in (("miou", mean_iou), ("mjaccard", mean_jaccard)):
        for suffix, grid in (("", "continuous"), ("_1fps", "label_1fps")):
            of_videos = [metric(t.segments, p.segments, grid=grid) for t, p in zip(truth(), off, strict=True)]  # type: ignore[arg-type]
            assert found["metrics"][name + suffix]["per_seed"][1] == pytest.approx(100 * sum(of_videos) / 4)
    assert (found["metrics"]["soda_d"]["n_videos"], found["metrics"]["soda_d"]["n_listed"]) == (4, 4)
    assert found["selection"] == "chosen"


def test_each_metric_of_unlike_segments_and_sentences() -> None:
    """By hand, and for captions by evaluate2018 with pycocoevalcap 1.2."""
    of = inputs("frequent-given")
    of._truth["test"] = [
        Procedure(
            video=video,
            duration_s=40,
            segments=tuple(map(tuple, each.segments.tolist())),
            sentences=tuple(each.sentences),
        )
        for video, each in (("salad", TRUTH["salad"]), ("soup", TRUTH["soup"]))
    ]
    said = PREDICTED["soup"]
    spans = tuple(map(tuple, said.segments.tolist()))
    made = Segmentation(seed=0, split="test", video="soup", segments=spans, sentences=tuple(said.sentences))
    found = of.benchmark.values(of, [made])
    overlaps = 9 / 10 + 8 / 11 + 10.5 / 11.5
    covered = 9 / 9 + 8 / 11 + 10.5 / 10.5
    expected = {"miou": overlaps / 3, "mjaccard": covered / 3, "precision": overlaps / 4, "recall": overlaps / 3}
    expected |= {"soda_d": 2 * overlaps / 7, "bleu4": 0.2906140165057039, "cider": 2.6225551860819563}
    expected |= {"rouge_l": 0.47779028537243173}
    for metric, value in expected.items():
        assert found[metric].values.tolist() == pytest.approx([100 * value], abs=1e-5), metric
        assert (found[metric].videos, found[metric].counts["n_listed"]) == (["soup"], 2)


def test_soda_c_weighs_overlap_by_sentences() -> None:
    mute = [
        Segmentation(seed=0, split="test", video=t.video, segments=t.segments, sentences=("z",) * len(t.segments))
        for t in truth()
    ]
    found = scored(mute)["metrics"]
    assert found["soda_d"]["value"] == pytest.approx(100, abs=1e-4)
    assert found["soda_c_stem"]["value"] == found["meteor_stem"]["value"] == 0
    assert soda_c([(0, 1)], [(0, 1)], [[0.5]]).f1 == pytest.approx(0.5)
    assert 0 < scored(right())["metrics"]["soda_c_stem"]["value"] <= 100


def test_a_video_without_prediction_is_zero_or_left_out() -> None:
    some = right()
    some[1] = Segmentation(seed=0, split="test", video=some[1].video, segments=())
    zero, drop = scored(some), scored(some, missing="drop")
    assert zero["metrics"]["soda_d"]["value"] == pytest.approx(75, abs=1e-4)
    assert drop["metrics"]["soda_d"]["value"] == pytest.approx(100, abs=1e-4)
    assert drop["metrics"]["rouge_l"]["value"] == pytest.approx(100, abs=1e-4)
    counted = [(each["metrics"]["soda_d"]["n_videos"], each["metrics"]["soda_d"]["n_listed"]) for each in (zero, drop)]
    assert counted == [(4, 4), (3, 4)]
    assert some[1].video not in drop["metrics"]["soda_d"]["per_video"]
    for metric in ("miou", "mjaccard", "soda_d", "rouge_l", "meteor_stem", "soda_c_stem"):
        per_video = zero["metrics"][metric]["per_video"]
        assert [video for video, value in per_video.items() if value == 0] == [some[1].video], metric
    assert zero["selection"] == "chosen; nothing predicted for 1 of 4 videos and seeds: zero"


def test_videos_that_were_not_evaluated_are_counted() -> None:
    found = scored(right()[:3])["metrics"]["soda_d"]
    assert (found["n_videos"], found["n_listed"]) == (3, 4)
    assert found["value"] == pytest.approx(100, abs=1e-4)


def test_the_order_of_segments_is_an_option() -> None:
    """By start alone, two segments that start together stay in an order in which one true segment finds none."""
    (first, *_) = truth()
    (start_s, end_s), (_, next_s), *_ = first.segments
    both, said = ((start_s, next_s), (start_s, end_s)), (first.sentences[1], first.sentences[0])
    p = [Segmentation(seed=0, split="test", video=first.video, segments=both, sentences=said)]
    scores = similarity(first.sentences, said, meteor_stem)
    values = []
    for order in ("start", "start_end"):
        found = scored(p, order=order)["metrics"]
        values.append((found["soda_d"]["value"], found["soda_c_stem"]["value"]))
        expected = soda_d(first.segments, both, order=order), soda_c(first.segments, both, scores, order=order)
        assert values[-1] == pytest.approx([100 * each.f1 for each in expected])
    assert all(start < start_end - 1 for start, start_end in zip(*values, strict=True))


def test_segments_alone_have_no_scores_of_sentences() -> None:
    found = scored(
        [Segmentation(seed=0, split="test", video=truth()[0].video, segments=((0.0, 5.0),))],
        "uniform-count",
        missing="drop",
    )
    assert "bleu4" not in found["metrics"]
    assert found["metrics"]["soda_d"]["seeds"] == []
    assert found["metrics"]["soda_d"]["ci"] is None
    assert found["metrics"]["soda_d"]["n_videos"] == 1


def test_the_real_meteor_is_asked_with_roles_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    class Meteor:
        """1 where the reference begins with "z": only predictions do."""

        def __enter__(self) -> "Meteor":
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def score(self, references: Any, candidates: Any) -> Scores:
            right = np.array([float(group[0][:1] == ["z"]) for group in references])
            return Scores(float(right.mean()), right)

    monkeypatch.setattr(scoring, "Meteor", Meteor)
    monkeypatch.setattr(scoring, "_scorers", cache(scoring._scorers.__wrapped__))
    monkeypatch.setattr(Pss, "missing_of", lambda self, metric: ())
    said = [
        Segmentation(seed=0, split="test", video=t.video, segments=t.segments, sentences=("z",) * len(t.segments))
        for t in truth()
    ]
    found = scored(said)["metrics"]
    assert found["soda_c"]["value"] == pytest.approx(100, abs=1e-4)
    assert found["meteor"]["value"] == 0
    assert scored(right())["metrics"]["soda_c"]["value"] == 0


def test_lines_of_two_splits_count_both() -> None:
    of = inputs("uniform-count-pooled", "tasty")
    found = of.benchmark.values(of, list(of.benchmark.method(of.entry.kind)().predict(of, [])))["soda_d"]
    assert len({*found.videos}) == found.counts["n_listed"] == 8


def test_videos_outside_of_the_subset_are_listed() -> None:
    of = inputs("uniform-count", subset={"fraction": 0.5, "seed": 0})
    made = [Segmentation(seed=0, split="test", video=each.video, segments=each.segments) for each in of.chosen("test")]
    found = scoring.values(of, made)["miou"]
    assert (len(found.videos), found.counts["n_listed"]) == (2, 4)
