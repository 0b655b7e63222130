"""Overlap of segments, metrics without order and uniform baselines, by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepline.metrics.segments import as_segments, detection, iou, mean_iou, mean_jaccard, uniform, whole_seconds


@pytest.mark.parametrize("values", [[], np.empty((0, 2)), np.empty(0)])
def test_no_segments_are_an_array_of_none(values: object) -> None:
    assert as_segments(values).shape == (0, 2)


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([1.0, 2.0], r"not an array of shape \(2,\)$"),
        ([[1.0, 2.0, 3.0]], r"not an array of shape \(1, 3\)$"),
        ([[1.0, 2.0], [3.0]], "must be pairs of numbers"),
        ([["a", "b"]], "must be pairs of numbers"),
        ({"start": 1}, "must be pairs of numbers"),
        ([[0.0, math.nan]], "must be finite"),
        ([[None, 1.0]], "must be finite"),
        ([[0.0, math.inf]], "must be finite"),
        ([[0, 1], [3, 2.5]], "ends before its start: 3 to 2.5 s$"),
    ],
)
def test_what_is_no_segment_is_one_line(values: object, line: str) -> None:
    with pytest.raises(ValueError, match=line):
        as_segments(values)


def test_iou_by_hand() -> None:
    """The true and predicted segments of Fig. 4, example 1, of Batra et al. (2022)."""
    found = iou([[2, 5], [7, 9]], [[1, 9], [1, 4], [4, 8]])
    assert found == pytest.approx(np.array([[3 / 8, 1 / 2, 1 / 6], [1 / 4, 0, 1 / 5]]), abs=1e-8)
    assert iou([[2, 5]], []).shape == (1, 0)


def test_the_union_is_a_little_more_so_that_segments_of_no_length_overlap_nothing() -> None:
    with np.errstate(all="raise"):
        assert iou([[1, 1]], [[1, 1], [0, 2]]).tolist() == [[0, 0]]
    assert iou([[0, 1e-8]], [[0, 1e-8]])[0, 0] == pytest.approx(0.5)


def test_the_best_prediction_may_serve_many_true_segments() -> None:
    gt, pred = [[0, 10], [10, 20]], [[0, 20], [90, 99]]
    assert mean_iou(gt, pred) == pytest.approx(0.5)
    assert mean_jaccard(gt, pred) == pytest.approx(0.5)
    assert mean_jaccard(gt, [*pred, [1, 2]]) == pytest.approx(0.75)
    assert mean_iou(gt, [*pred, [1, 2]]) == pytest.approx(0.5)


@pytest.mark.parametrize("metric", [mean_iou, mean_jaccard])
@pytest.mark.parametrize("grid", ["continuous", "label_1fps"])
def test_without_segments_on_one_side_they_are_0(metric, grid) -> None:
    assert metric([], [[0, 5]], grid=grid) == metric([[0, 5]], [], grid=grid) == metric([], [], grid=grid) == 0


def test_jaccard_of_a_prediction_of_no_length_is_0() -> None:
    with np.errstate(all="raise"):
        assert mean_jaccard([[0, 5]], [[2, 2]]) == 0


def test_on_the_grid_of_labels_each_segment_is_a_second_short() -> None:
    assert mean_iou([[0, 10]], [[5.9, 10.2]], grid="label_1fps") == pytest.approx(4 / 9)
    assert mean_jaccard([[0, 10]], [[5.9, 10.2]], grid="label_1fps") == 1
    assert mean_jaccard([[5, 10]], [[0, 10]], grid="label_1fps") == pytest.approx(4 / 9)
    assert mean_iou([[100, 110]], [[105, 110]], grid="label_1fps") == pytest.approx(4 / 9)
    with np.errstate(all="raise"):
        assert mean_iou([[3, 4]], [[3, 4]], grid="label_1fps") == 0  # from second 3 to second 3
        assert mean_iou([[3.1, 3.9]], [[3, 6]], grid="label_1fps") == 0
        assert mean_jaccard([[3, 9]], [[3, 4]], grid="label_1fps") == 0


def test_on_the_grid_of_labels_the_later_segment_overwrites() -> None:
    """0 to 10 with 4 to 7 in it are the runs 0-3, 4-6 and 7-9; the first has its 3 s of the 9 of 0 to 10."""
    assert mean_iou([[0, 10], [4, 7]], [[0, 10]], grid="label_1fps") == pytest.approx((3 + 2 + 2) / 9 / 3)
    assert mean_iou([[4, 7], [0, 10]], [[0, 10]], grid="label_1fps") == pytest.approx(1)


def test_an_unknown_grid_is_refused() -> None:
    with pytest.raises(ValueError, match="grid must be continuous or label_1fps, not '1fps'"):
        mean_iou([[0, 1]], [[0, 1]], grid="1fps")  # type: ignore[arg-type]


def test_detection_counts_what_is_above_the_threshold_on_either_side() -> None:
    gt, pred = [[0, 10], [20, 30]], [[0, 9], [0, 11], [20, 24], [50, 60]]
    assert detection(gt, pred, threshold=0.5) == (0.5, 0.5)
    assert detection(gt, pred, threshold=0.3) == (0.75, 1.0)
    assert detection(gt, pred, threshold=float(iou(gt, pred)[0, 0])) == (0.25, 0.5)  # 0.9 itself is not above 0.9
    assert detection(gt, [], threshold=0.3) == detection([], pred, threshold=0.3) == (0.0, 0.0)


def test_uniform_parts() -> None:
    assert uniform(9, 3).tolist() == [[0, 3], [3, 6], [6, 9]]
    assert (whole_seconds(10.2), whole_seconds(10.0)) == (11.0, 11.0)
    for total_s, parts in ((10, 0), (0, 3), (math.nan, 3), (math.inf, 3)):
        with pytest.raises(ValueError, match=f"{total_s} s cannot be divided into {parts} parts"):
            uniform(total_s, parts)


@settings(max_examples=40)
@given(st.floats(0.1, 1e5), st.integers(1, 200))
def test_uniform_parts_fill_the_time_without_a_gap(total_s: float, parts: int) -> None:
    found = uniform(total_s, parts)
    assert found.shape == (parts, 2)
    assert (found[0, 0], found[-1, 1]) == (0, total_s)
    assert (found[1:, 0] == found[:-1, 1]).all()
    assert found[:, 1] - found[:, 0] == pytest.approx(total_s / parts)


SEGMENTS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)).map(sorted), min_size=1, max_size=6)


@settings(max_examples=40)
@given(SEGMENTS, SEGMENTS, st.sampled_from(["continuous", "label_1fps"]))
def test_more_predictions_never_lower_a_metric_without_order(gt, pred, grid) -> None:
    before = [metric(gt, pred, grid="continuous") for metric in (mean_iou, mean_jaccard)]
    after = [metric(gt, pred + gt, grid="continuous") for metric in (mean_iou, mean_jaccard)]
    assert all(new >= old for old, new in zip(before, after, strict=True))
    assert 0 <= mean_iou(gt, pred, grid=grid) <= mean_jaccard(gt, pred, grid=grid) + 1e-9 <= 1 + 2e-9
