"""SODA-D and SODA-C, by hand and by trying all matchings."""

import math
import subprocess
import sys
import tracemalloc
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stepline.metrics import soda
from stepline.metrics.segments import iou, uniform
from stepline.metrics.soda import SodaScore, matched, soda_c, soda_d, soda_d_dataset, soda_d_videos

# Whole tenths of a second: unequal segments differ enough to be told apart.
TENTHS = st.tuples(st.integers(0, 300), st.integers(1, 80)).map(lambda x: [x[0] / 10, (x[0] + x[1]) / 10])
VIDEO = st.lists(TENTHS, min_size=1, max_size=5)
MAYBE_EMPTY = st.lists(TENTHS, max_size=5)
ORDERS = st.sampled_from(["start_end", "start"])


def ranks(segments: list[list[float]], order: str) -> list[int]:
    """Return the indices of the segments in temporal order."""
    return sorted(range(len(segments)), key=lambda i: segments[i][:1] if order == "start" else segments[i])


def best_of_all(worth: np.ndarray) -> float:
    """Return the largest sum over all order-preserving one-to-one matchings of rows with columns."""
    n, m = worth.shape
    return max(
        worth[list(rows), list(columns)].sum()
        for k in range(min(n, m) + 1)
        for rows in combinations(range(n), k)
        for columns in combinations(range(m), k)
    )


@pytest.mark.parametrize(
    ("pred", "order", "f1"),
    [
        ([[1, 9], [1, 4], [4, 8]], "start", 0.28),
        ([[1, 4], [1, 9], [4, 8]], "start", 0.30),
        ([[1, 9], [1, 4], [4, 8]], "start_end", 0.30),
        ([[1, 4], [1, 9], [4, 8]], "start_end", 0.30),
    ],
)
def test_figure_4(pred, order, f1) -> None:
    """Batra et al. (2022), Fig. 4: its two examples are one set of segments, two of which start together."""
    found = soda_d([[2, 5], [7, 9]], pred, order=order)
    assert found.f1 == pytest.approx(f1, abs=1e-8)
    assert found.recall == pytest.approx(found.precision * 3 / 2)
    assert soda_c([[2, 5], [7, 9]], pred, np.ones((2, 3)), order=order) == pytest.approx(found)


@pytest.mark.parametrize(("gt", "pred"), [([], [[0, 1]]), ([[0, 1]], []), ([], [])])
def test_without_segments_on_one_side_all_is_0(gt, pred) -> None:
    assert soda_d(gt, pred) == soda_c(gt, pred, []) == SodaScore(0.0, 0.0, 0.0)
    assert matched(gt, pred) == []


def test_what_cannot_be_scored_is_one_line() -> None:
    good = [[0.0, 1.0]]
    for bad, line in (([[2.0, 1.0]], "ends before its start: 2 to 1 s"), ([1.0, 2.0], "pairs"), ([[1.0]], "pairs")):
        for call in (
            lambda bad=bad: soda_d(good, bad),
            lambda bad=bad: soda_d_videos([good, bad], [good, good]),
            lambda bad=bad: soda_d_videos([np.array(good), np.array(bad)], [good, good]),
            lambda bad=bad: soda_c(bad, good, [[1.0]]),
            lambda bad=bad: matched(good, bad),
        ):
            with pytest.raises(ValueError, match=line):
                call()
    for bad in ([[[1.0], [2.0]]], [["a", "b"]], [[1.0, None]], [[1.0, math.nan]], 3.0):
        with pytest.raises(ValueError, match="segments"):
            soda_d_videos([good, bad], [good, good])
    for call in (
        lambda: soda_d(good, good, order="end"),
        lambda: soda_c(good, good, [[1]], order="end"),
        lambda: matched(good, good, order="end"),
    ):
        with pytest.raises(ValueError, match="order must be start_end or start, not 'end'"):
            call()
    for similarity in ([[1.0, 2.0]], [1.0], [[math.nan]]):
        with pytest.raises(ValueError, match="similarity must be 1 x 1 finite numbers"):
            soda_c(good, good, similarity)
    with pytest.raises(ValueError, match="true segments of 1 videos, predicted ones of 2"):
        soda_d_videos([good], [good, good])


@settings(max_examples=40)
@given(VIDEO, VIDEO, ORDERS, st.data())
def test_no_ordered_matching_is_better(gt, pred, order, data) -> None:
    in_order = np.ix_(ranks(gt, order), ranks(pred, order))
    worth = iou(gt, pred)
    best = best_of_all(worth[in_order])
    found = soda_d(gt, pred, order=order)
    assert found.precision == pytest.approx(best / len(pred))
    assert found.recall == pytest.approx(best / len(gt))
    assert found.f1 == pytest.approx(2 * best / (len(gt) + len(pred)))
    similarity = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=worth.size, max_size=worth.size)))
    similarity = similarity.reshape(worth.shape)
    best = best_of_all((worth * similarity)[in_order])
    assert soda_c(gt, pred, similarity, order=order).recall == pytest.approx(best / len(gt), abs=1e-12)


@settings(max_examples=40)
@given(VIDEO, VIDEO, ORDERS)
def test_pairs_are_ordered_one_to_one_and_sum_to_the_score(gt, pred, order) -> None:
    pairs = matched(gt, pred, order=order)
    worth = iou(gt, pred)
    places = [
        [ranks(gt, order).index(i) for i, _ in pairs],
        [ranks(pred, order).index(j) for _, j in pairs],
    ]
    assert all(a < b for side in places for a, b in pairwise(side))
    assert all(worth[pair] > 0 for pair in pairs)
    assert sum(worth[pair] for pair in pairs) == pytest.approx(soda_d(gt, pred, order=order).recall * len(gt))


def test_of_equal_matchings_the_earliest_segments_are_matched() -> None:
    assert matched([[0, 10]], [[0, 10], [0, 10]]) == [(0, 0)]
    assert matched([[0, 10], [0, 10]], [[0, 10]]) == [(0, 0)]
    # The two pairs of equal segments cross: the first true segment's is taken. So long, both have an IoU of 1.
    short, long = [0, 2.0**30], [0, 2.0**31]
    assert matched([long, short], [short, long], order="start") == [(0, 1)]


@settings(max_examples=40)
@given(VIDEO, VIDEO, st.randoms())
def test_the_order_of_the_input_has_no_influence(gt, pred, random) -> None:
    similarity = np.array([[random.random() for _ in pred] for _ in gt])
    rows, columns = random.sample(range(len(gt)), len(gt)), random.sample(range(len(pred)), len(pred))
    assume(len({tuple(x) for x in gt}) == len(gt) and len({tuple(x) for x in pred}) == len(pred))
    shuffled = [gt[i] for i in rows], [pred[j] for j in columns]
    assert soda_d(*shuffled) == soda_d(gt, pred)
    assert soda_c(*shuffled, similarity[np.ix_(rows, columns)]) == soda_c(gt, pred, similarity)


@settings(max_examples=40)
@given(VIDEO, VIDEO, st.randoms())
def test_f1_is_1_only_for_the_same_segments(gt, pred, random) -> None:
    assert (soda_d(gt, pred).f1 > 1 - 1e-6) == (sorted(gt) == sorted(pred))
    assert soda_d(gt, random.sample(gt, len(gt))).f1 == pytest.approx(1, abs=1e-6)
    assert max(soda_d(gt, pred)) <= 1


@settings(max_examples=40)
@given(st.lists(st.integers(0, 1000), min_size=2, max_size=12, unique=True), st.data())
def test_over_segmentation_is_penalised(edges, data) -> None:
    gt = [[a / 10, b / 10] for a, b in pairwise(sorted(edges))]
    split = data.draw(st.sets(st.sampled_from(range(len(gt))), min_size=1))
    pred = [[a, b] for i, (a, b) in enumerate(gt) if i not in split]
    for i in split:
        a, b = gt[i]
        pred += [[a, (a + b) / 2], [(a + b) / 2, b]]
    assert soda_d(gt, pred).f1 < soda_d(gt, gt).f1 - 1e-3
    spurious = [[200.0 + i, 201.0 + i] for i in range(data.draw(st.integers(1, 5)))]
    more = soda_d(gt, pred + spurious)
    assert more.precision < soda_d(gt, pred).precision
    assert more.recall == soda_d(gt, pred).recall


@settings(max_examples=40)
@given(st.lists(st.tuples(MAYBE_EMPTY, MAYBE_EMPTY), max_size=8), ORDERS, st.sampled_from([1, 40, 1 << 20]))
def test_videos_at_once_are_as_one_by_one(videos, order, cells) -> None:
    gt, pred = [first for first, _ in videos], [second for _, second in videos]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(soda, "_CELLS", cells)
        found = soda_d_videos(gt, pred, order=order)
        of_arrays = soda_d_videos([np.array(x).reshape(-1, 2) for x in gt], [tuple(x) for x in pred], order=order)
    assert list(zip(*found, strict=True)) == [tuple(soda_d(*video, order=order)) for video in videos]
    assert all((a == b).all() for a, b in zip(found, of_arrays, strict=True))


def test_one_long_video_does_not_make_all_of_them_large() -> None:
    """Padded to the long one, the arrays would have 400 MB each."""
    long, short = uniform(500, 500), [[0.0, 1.0]]
    tracemalloc.start()
    found = soda_d_videos([short] * 200 + [long], [long] + [short] * 200)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6
    assert found.recall == pytest.approx(np.array([1] * 200 + [1 / 500]))
    assert found.precision == pytest.approx(np.array([1 / 500] + [1] * 200))


def test_a_dataset_is_the_mean_of_each_column() -> None:
    gt = {"a": [[0, 10]], "b": [[0, 10], [10, 20]], "c": [[0, 10]]}
    pred = {"a": [[0, 10], [20, 30]], "b": [[0, 10]]}
    found = soda_d_dataset(gt, pred)
    assert found[:3] == pytest.approx(((0.5 + 1 + 0) / 3, (1 + 0.5 + 0) / 3, (2 / 3 + 2 / 3 + 0) / 3))
    assert found[3:] == (3, 2)
    dropped = soda_d_dataset(gt, pred, missing="drop")
    assert dropped[:3] == pytest.approx((0.75, 0.75, 2 / 3))
    assert dropped[3:] == (3, 2)
    assert soda_d_dataset(gt, pred | {"c": []}, missing="drop") == dropped
    assert soda_d_dataset(gt, pred | {"c": []}) == found
    assert soda_d_dataset({"a": [[2, 5], [7, 9]]}, {"a": [[1, 9], [1, 4], [4, 8]]}, order="start").f1 == pytest.approx(
        0.28
    )


def test_a_dataset_that_cannot_be_scored_is_one_line() -> None:
    with pytest.raises(ValueError, match="predictions of y, a video without true segments"):
        soda_d_dataset({"a": [[0, 1]]}, {"a": [], "y": [], "z": []})
    with pytest.raises(ValueError, match="missing must be zero or drop, not 'skip'"):
        soda_d_dataset({"a": [[0, 1]]}, {}, missing="skip")  # type: ignore[arg-type]
    for gt, missing in (({}, "zero"), ({"a": [[0, 1]]}, "drop")):
        with pytest.raises(ValueError, match="there is no video to score"):
            soda_d_dataset(gt, {}, missing=missing)


def test_the_metrics_load_nothing_but_numpy() -> None:
    code = (
        "import sys; from stepline.metrics import soda_d;"
        "print([m for m in ('torch', 'pandas', 'sklearn', 'scipy', 'pyarrow', 'yaml', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
