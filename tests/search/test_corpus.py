"""The numeric part of a search, against straight-line references in double precision."""

from itertools import accumulate

import numpy as np
import pytest

pytest.importorskip("torch")

from stepline.search import corpus as module
from stepline.search.corpus import Corpus

RNG = np.random.default_rng(0)


def made(rows: list[np.ndarray], times_s: list[np.ndarray] | None = None, **more: object) -> Corpus:
    """Return the corpus of some videos' rows, in two parts, the first of one video."""
    starts = [np.arange(len(each), dtype=float) for each in rows] if times_s is None else times_s
    values = {
        "videos": [f"v{9 - number}" for number in range(len(rows))],
        "parts": [rows[0], np.concatenate(rows[1:])] if len(rows) > 1 else rows,
        "lengths": [len(each) for each in rows],
        "spans_s": np.concatenate(starts)[:, None] + np.array([0.0, 1.0]),
        "similarity": "cosine",
        "pooled_rows": 0,
    }
    return Corpus(**values | more)  # type: ignore[arg-type]


def cosine(row: np.ndarray, query: np.ndarray) -> float:
    exact = row.astype(np.float64)
    return round(float(exact @ query / (np.linalg.norm(exact) * np.linalg.norm(query))), 6)


def slow_matches(rows: list[np.ndarray], times_s: list[np.ndarray], score: object, window_s: float) -> list[tuple]:
    """Return all matches by comparing each row with each other one of its video."""
    found = []
    firsts = [0, *accumulate(map(len, rows))]
    for number, (each, times, first) in enumerate(zip(rows, times_s, firsts, strict=False)):
        scores = [score(row) for row in each]  # type: ignore[operator]
        for i in range(len(each)):
            near = [j for j in range(len(each)) if abs(times[j] - times[i]) < window_s]
            if all((-scores[i], times[i], i) <= (-scores[j], times[j], j) for j in near):
                found.append((-scores[i], times[i], f"v{9 - number}", first + i))
    return [(row, -negative) for negative, _, _, row in sorted(found)]


@pytest.mark.parametrize("window_s", [0, 0.5, 2, 7, 1000])
@pytest.mark.parametrize("kind", ["continuous", "with ties"])
def test_matches_are_those_of_a_slow_search(window_s: float, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", 0)
    monkeypatch.setattr(module, "FIRST_LOOK", 1)
    monkeypatch.setattr(module, "AT_ONCE", 7)
    values = RNG.integers(-1, 2, (90, 4)) if kind == "with ties" else RNG.normal(size=(90, 4))
    values[:, 3] = 1
    rows = np.split(values.astype(np.float16), [20, 50, 51])
    times_s = [np.sort(RNG.integers(0, 60, len(each)) / 2) for each in rows]
    query = np.array([1.0, -2, 0.5, 0.25])
    expected = slow_matches(rows, times_s, lambda row: cosine(row, query), window_s)
    corpus = made(rows, times_s)
    for top in (1, 3, 200):
        assert corpus.matches(query, corpus.whole(query), top, window_s) == expected[:top]


def test_rows_that_single_precision_cannot_tell_apart_are_in_their_exact_order() -> None:
    """The rows have the same values in different orders, but for one that differs by about what float32 sums do."""
    rows = RNG.permuted(np.tile(RNG.normal(size=64) * 1000, (10_000, 1)).astype(np.float32), axis=1)
    rows[:, 0] = 1 + RNG.integers(0, 1280, 10_000) * 2.0**-16
    rows[:, 1] -= rows[:, 1:].sum(axis=1, dtype=np.float64) - 5000
    query = np.ones(64)
    exact = (rows.astype(np.float64) @ query).round(6)
    assert len(np.unique(exact)) > 100
    order = np.lexsort((np.arange(10_000), -exact))[:5]
    corpus = made([rows], similarity="dot product")
    assert corpus.matches(query, corpus.whole(query), 5, 0) == [(int(row), float(exact[row])) for row in order]


def test_videos_rank_by_the_mean_of_evenly_spaced_rows() -> None:
    rows = [RNG.normal(size=(length, 8)).astype(np.float16) for length in (32, 5, 1, 40)]
    query = RNG.normal(size=8)
    for pooled_rows in (0, 4):
        corpus, scores = made(rows, pooled_rows=pooled_rows), {}
        for number, each in enumerate(rows):
            chosen = np.linspace(0, len(each) - 1, min(pooled_rows or len(each), len(each))).astype(int)
            scores[number] = cosine(np.mean([each[row].astype(np.float64) for row in chosen], axis=0), query)
        expected = sorted(scores.items(), key=lambda item: -item[1])
        assert corpus.ranking(query, 3) == expected[:3]
    dot = made(rows, similarity="dot product").ranking(query, 1)
    assert dot[0][1] == pytest.approx(max(each.astype(np.float64).mean(axis=0) @ query for each in rows), abs=1e-6)


def test_equal_videos_are_in_the_order_of_their_ids() -> None:
    rows = [np.eye(2, dtype=np.float32)] * 3
    assert [video for video, _ in made(rows).ranking(np.ones(2), 3)] == [2, 1, 0]


def test_a_row_of_zeros_has_the_cosine_zero() -> None:
    corpus, query = made([np.float32([(0, 0), (-1, 0)])]), np.array([1.0, 0])
    assert corpus.matches(query, corpus.whole(query), 2, 0) == [(0, 0.0), (1, -1.0)]
    assert made([np.zeros((1, 2), np.float16)]).ranking(np.ones(2), 1) == [(0, 0.0)]


def test_rows_are_found_by_video_in_every_part() -> None:
    rows = [np.full((length, 2), length, np.float16) for length in (3, 1, 4)]
    corpus = made(rows)
    assert [corpus.rows(video).tolist() for video in range(3)] == [each.tolist() for each in rows]
    assert [corpus.place(row) for row in (0, 2, 3, 4, 7)] == [("v9", 0), ("v9", 2), ("v8", 0), ("v7", 0), ("v7", 3)]
    assert corpus.numbers(2).tolist() == [4, 5, 6, 7]
    assert corpus.is_each_second(2)
    assert not made(rows, [np.arange(3.0), np.ones(1), np.arange(4.0)]).is_each_second(1)


def test_mapped_files_are_read_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    np.save("rows.npy", np.eye(3, dtype=np.float16))
    corpus, query = made([np.asarray(np.load("rows.npy", mmap_mode="r"))]), np.array([0, 1.0, 0])
    assert corpus.matches(query, corpus.whole(query), 1, 0) == [(1, 1.0)]
    assert not recwarn.list
