"""What is kept of a damaged video: rows of its stretches, its gaps, and what it is known by."""

import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline import aside, paths
from stepline.availability import Record
from stepline.backbones.histogram import HistogramSpec
from stepline.cli import main
from stepline.errors import StoreError
from stepline.features.bank import AbsentError, Bank
from stepline.features.cache import CHUNK, FeatureCache
from stepline.features.filled import filled
from stepline.features.frames import Begun
from stepline.features.store import Block, read
from stepline.features.verify import _drop
from stepline.io import write_json
from stepline.spec import ClipSpec

SPEC = HistogramSpec(fps=1)
CLIP = ClipSpec(
    name="clip", label="clips", revision=1, architecture="a", weights=(), licence="MIT", placement="middles",
    num_frames=4, tail="repeat", steps=(("exact", 8, 8, "bilinear"),), mean=(0, 0, 0), std=(1, 1, 1), output="o",
    dimension=4,
)  # fmt: skip
RECORD = Record(video="a", status="present", path="a.mp4", sha256="a" * 64, duration_s=10.0)
OTHER = Record(video="b", status="present", path="b.mp4", sha256="b" * 64, duration_s=3.0)
GAPS = [(2.0, 5.5, "damaged"), (9.0, 12.0, "truncated")]
REASON = "2.000 to 5.500 s: damaged; 9.000 to 12.000 s: truncated"
K = [0, 1, 6, 7, 8]
DIMENSION = 4


def begun(k: Sequence[int] = K, gaps: Sequence[tuple[float, float, str]] = GAPS) -> Begun:
    numbers = np.array(k, np.int64)
    spans = [[0.0, 2.0], [5.5, 9.0]] if gaps else []
    span = (numbers > 5).astype(np.int64) if gaps else np.zeros_like(numbers)
    return Begun(0, np.arange(len(k)), numbers, span, spans, list(gaps))


def rows(k: Sequence[int] = K) -> np.ndarray:
    return np.repeat(np.array(k, np.float32)[:, None], DIMENSION, axis=1)


def cache(folder: Path, damaged: str = "partial", listed: dict[str, Any] | None = None) -> FeatureCache:
    return FeatureCache(SPEC, folder / "000", listed or {}, damaged)


def fill(made: FeatureCache, record: Record, of: Begun, values: np.ndarray) -> None:
    made.begin(record, of)
    made.add(record, values)
    made.finish(record)


def both(made: FeatureCache) -> dict[str, Any]:
    """Store the damaged video and the whole one; return what is said of them."""
    fill(made, RECORD, begun(), rows())
    fill(made, OTHER, begun([0, 1, 2], []), rows([0, 1, 2]))
    return made.commit([RECORD, OTHER])


def test_rows_of_a_damaged_video_stand_at_their_times_and_its_gaps_are_said(tmp_path: Path) -> None:
    said = both(cache(tmp_path))
    assert said["a"] == {
        "status": "present", "reason": REASON, "n_rows": 5, "source_sha256": RECORD.sha256, "gaps": GAPS
    }  # fmt: skip
    assert said["b"] == {"status": "present", "reason": "", "n_rows": 3, "source_sha256": OTHER.sha256}
    bank = Bank.open([tmp_path / "000"], SPEC)
    assert [(block.t0_s, block.length, block.start_s, block.end_s) for block in bank.blocks["a"]] == [
        (0.0, 2, 0.0, 2.0), (6.0, 3, 5.5, 9.0)
    ]  # fmt: skip
    assert [(block.start_s, block.end_s) for block in bank.blocks["b"]] == [(0.0, inf)]
    assert bank.damaged["a"].gaps == GAPS
    assert bank.window("a", 6, 8)[:, 0].tolist() == [6, 7]
    middles_s = (1.6, 2.0, 2.1, 4.9, 5.0)
    assert [bank.shows("a", each - 0.3, each + 0.3) for each in middles_s] == [True, True, False, False, True]


def test_a_turned_video_is_known_by_its_file_and_its_rotation(tmp_path: Path) -> None:
    turned = replace(OTHER, rotation=90)
    made = cache(tmp_path)
    fill(made, turned, begun([0], []), rows([0]))
    known = turned.identity(SPEC.orientation)
    assert known != turned.sha256
    assert made.commit([turned])["b"]["source_sha256"] == known
    assert read(tmp_path / "000").blocks["b"][0].source_sha256 == known
    assert cache(tmp_path).has(turned)


def test_a_failure_counts_until_the_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_RUN", "first")
    made = cache(tmp_path)
    made.begin(RECORD, begun(range(CHUNK + 1), []))
    made.add(RECORD, rows(range(CHUNK)))
    assert made.done(RECORD) == CHUNK
    made.fail(RECORD, "no video")
    made.fail(OTHER, "too long")
    assert made.done(RECORD) == 0
    other = cache(tmp_path)
    assert (other.has(RECORD), other.has(OTHER)) == (True, True)
    assert other.commit([RECORD, OTHER]) == {
        "a": {"status": "failed", "reason": "no video"}, "b": {"status": "failed", "reason": "too long"}
    }  # fmt: skip
    monkeypatch.setenv("STEPLINE_RUN", "second")
    assert not cache(tmp_path).has(RECORD)


def test_a_store_that_a_kill_left_aside_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both(cache(tmp_path))
    left = tmp_path / "-".join([f"{aside.PREFIX}{aside._HOST[0]}", aside._HOST[1], "x"]) / aside.OLD
    left.mkdir(parents=True)
    (tmp_path / "000").rename(left / "000")
    monkeypatch.setattr(aside, "_swept", set())
    assert cache(tmp_path).has(RECORD)


def test_rows_that_are_computed_again_are_staged_once_all_are_there(tmp_path: Path) -> None:
    made, k = cache(tmp_path), range(CHUNK + 3)
    made.begin(RECORD, begun(k, []))
    made.add(RECORD, rows(range(3)))
    assert made.keep() == [f"3 of {CHUNK + 3} rows of a"]
    made.begin(RECORD, begun(k, []))
    assert made.done(RECORD) == 0
    made.add(RECORD, rows(range(CHUNK)))
    assert made.keep() == []
    assert made.done(RECORD) == 0
    made.add(RECORD, rows(range(CHUNK, CHUNK + 3)))
    made.finish(RECORD)
    made.commit([RECORD])
    assert Bank.open([tmp_path / "000"], SPEC)["a"][:, 0].tolist() == [*k]


def test_a_span_without_a_row_stands_at_its_first_possible_row(tmp_path: Path) -> None:
    made, k = cache(tmp_path), [0, 1, 6]
    of = replace(begun(k, []), span=np.array([0, 0, 2]), spans=[[0.0, 2.0], [2.3, 2.7], [5.5, 9.0]])
    fill(made, RECORD, of, rows(k))
    made.commit([RECORD])
    assert [(each.t0_s, each.length) for each in read(tmp_path / "000").blocks["a"]] == [(0, 2), (3, 0), (6, 1)]


def test_rows_stand_at_their_places_in_whatever_order_they_come(tmp_path: Path) -> None:
    made, order = cache(tmp_path), np.array([2, 0, 3, 1])
    fill(made, RECORD, replace(begun([0, 1, 2, 3], []), order=order), rows(order.tolist()))
    made.commit([RECORD])
    assert Bank.open([tmp_path / "000"], SPEC)["a"][:, 0].tolist() == [0, 1, 2, 3]


def test_what_is_stored_of_a_damaged_video_is_not_computed_again(tmp_path: Path) -> None:
    first = cache(tmp_path)
    fill(first, RECORD, begun(), rows())
    made, kept = first.commit([RECORD]), (tmp_path / "000/features/c/0/0").stat().st_ino
    again = cache(tmp_path)
    assert again.has(RECORD)
    assert again.commit([RECORD]) == made
    assert (tmp_path / "000/features/c/0/0").stat().st_ino == kept
    assert not again.has(replace(RECORD, spans=[[0.0, 2.0], [5.5, 9.0]]))  # these were not asked for
    assert not again.has(replace(RECORD, rotation=90))
    assert not again.has(replace(RECORD, begin_s=2.0))
    assert not FeatureCache(replace(SPEC, orientation="stored"), tmp_path / "000", {}).has(RECORD)


def test_a_gap_outlives_a_kill_before_the_commit_and_a_commit_of_others(tmp_path: Path) -> None:
    fill(cache(tmp_path), RECORD, begun(), rows())
    later = cache(tmp_path)
    assert later.has(RECORD)
    made = later.commit([RECORD])
    assert made["a"]["gaps"] == GAPS
    more = cache(tmp_path)
    fill(more, OTHER, begun([0, 1, 2], []), rows([0, 1, 2]))
    assert more.commit([RECORD, OTHER])["a"] == made["a"]
    assert cache(tmp_path).commit([RECORD])["a"] == made["a"]
    assert read(tmp_path / "000").damaged["a"].gaps == GAPS


def test_rows_that_were_staged_before_a_kill_are_gone_on_with(tmp_path: Path) -> None:
    k = [*range(CHUNK), *range(CHUNK + 100, CHUNK + 110)]
    gaps = [(float(CHUNK), CHUNK + 99.5, "damaged")]
    numbers = np.array(k, np.int64)
    spans = [[0.0, float(CHUNK)], [CHUNK + 99.5, inf]]
    of = Begun(0, np.arange(len(k)), numbers, (numbers >= CHUNK).astype(np.int64), spans, gaps)
    killed = cache(tmp_path)
    killed.begin(RECORD, of)
    killed.add(RECORD, rows(range(CHUNK)))
    made = cache(tmp_path)
    assert made.done(RECORD) == CHUNK
    fill(made, RECORD, of, rows(k[CHUNK:]))
    assert made.commit([RECORD])["a"]["gaps"] == gaps
    more = cache(tmp_path)
    fill(more, OTHER, begun([0, 1, 2], []), rows([0, 1, 2]))
    more.commit([RECORD, OTHER])
    bank = Bank.open([tmp_path / "000"], SPEC)
    assert bank.window("a", CHUNK + 100, inf)[:, 0].tolist() == k[CHUNK:]
    assert [[each.start_s, each.end_s] for each in bank.blocks["a"]] == spans


def test_damage_that_is_found_on_the_way_replaces_what_came(tmp_path: Path) -> None:
    made = cache(tmp_path)
    made.begin(RECORD, begun(range(10), []))
    made.add(RECORD, rows(range(3)))
    fill(made, RECORD, begun(), rows())
    assert made.commit([RECORD])["a"]["reason"] == REASON
    assert Bank.open([tmp_path / "000"], SPEC).rows["a"][:, 0].tolist() == K


def test_a_damaged_video_fails_where_it_is_to_be_skipped_and_comes_back(tmp_path: Path) -> None:
    made = both(cache(tmp_path))
    skipping = cache(tmp_path, "skip")
    assert skipping.has(RECORD)
    assert skipping.commit([RECORD, OTHER]) == {"a": {"status": "failed", "reason": REASON}, "b": made["b"]}
    bank = Bank.open([tmp_path / "000"], SPEC)
    assert (bank.videos, bank.damaged) == ({"b"}, {})
    back = cache(tmp_path)
    assert not back.has(RECORD)
    fill(back, RECORD, begun(), rows())
    assert back.commit([RECORD, OTHER]) == made


def test_of_listed_clips_those_that_can_be_had_are_kept_by_what_they_are(tmp_path: Path) -> None:
    clips = {"a": [(0.0, 2.0), (2.0, 4.0), (6.0, 8.0)]}

    def opened(listed: dict[str, Any] = clips) -> FeatureCache:
        return FeatureCache(CLIP, tmp_path / "000", listed)

    made = opened()
    fill(made, RECORD, Begun(0, np.arange(2), np.array([0, 2]), np.zeros(2, np.int64), [], GAPS), rows([0, 2]))
    first = made.commit([RECORD])
    assert (first["a"]["n_rows"], first["a"]["gaps"]) == (2, GAPS)
    assert opened().has(OTHER)
    unlisted = {"status": "present", "reason": "no clip of it is listed", "n_rows": 0}
    assert opened().commit([RECORD, OTHER]) == first | {"b": unlisted}
    bank = Bank.open([tmp_path / "000"], CLIP)
    assert bank.clip("a", 6.0, 8.0).tolist() == [2] * DIMENSION
    with pytest.raises(StoreError, match="from 2 s to 4 s"):
        bank.clip("a", 2.0, 4.0)
    assert bank.fill().videos == frozenset()
    assert opened().commit([RECORD]) == first
    other = opened({"a": clips["a"][:2]})
    assert not other.has(RECORD)
    more = opened(clips | {"b": [(0.0, 1.0)]})
    fill(more, OTHER, Begun(0, np.arange(1), np.arange(1), np.zeros(1, np.int64)), rows([5]))
    assert more.commit([RECORD, OTHER])["a"] == first["a"]
    assert Bank.open([tmp_path / "000"], CLIP).clip("a", 6.0, 8.0).tolist() == [2] * DIMENSION


def test_a_bank_is_filled_with_the_nearest_rows(tmp_path: Path) -> None:
    both(cache(tmp_path))
    bank = Bank.open([tmp_path / "000"], SPEC)
    with pytest.raises(StoreError, match="a has features of only parts of it"):
        bank.check_whole()
    whole = bank.fill()
    whole.check_whole()
    assert whole["a"][:, 0].tolist() == [0, 1, 1, 1, 6, 6, 6, 7, 8]
    assert whole["b"][:, 0].tolist() == [0, 1, 2]
    assert whole.window("a", 3, 4)[:, 0].tolist() == [1]
    assert whole.window("a", 20, 21)[:, 0].tolist() == [8]
    assert whole.means(["a"], [2.0], [5.0])[:, 0].tolist() == [8 / 3]
    assert whole.damaged["a"].gaps == GAPS
    sent = pickle.loads(pickle.dumps(whole))
    assert (sent["a"][:, 0].tolist(), sent.fill()) == (whole["a"][:, 0].tolist(), sent)
    assert bank.window("a", 0, 9)[:, 0].tolist() == K


def test_damaged_videos_are_exported_with_the_times_of_rows_alone(capsys: pytest.CaptureFixture[str]) -> None:
    both(FeatureCache(SPEC, paths.features("mine", "000", SPEC), {}))
    write_json(paths.spec_record(SPEC), SPEC.record())
    assert main(["bank", "export", "histogram", "mine", "out", "--form", "dict"]) == 0
    assert capsys.readouterr().out == f"a is damaged and omitted: {REASON}\nout: 1 videos\n"
    assert sorted(path.name for path in Path("out").iterdir()) == ["b.npy"]
    assert main(["bank", "export", "histogram", "mine", "timed", "--form", "npy"]) == 0
    said = f"a is damaged, only its readable rows are exported: {REASON}\ntimed: 2 videos\n"
    assert capsys.readouterr().out == said


def test_spans_are_filled_one_by_one() -> None:
    block = partial(Block, video="a", hop_s=0.5, sha256="x", source_sha256="y")
    blocks = [
        block(offset=4, length=2, t0_s=2.5, start_s=2.5, end_s=3.5),
        block(offset=6, length=1, t0_s=4.5, start_s=4.5, end_s=5.0),
        block(offset=7, length=1, t0_s=9.0, start_s=9.0, end_s=9.5),
    ]
    made, values = filled(blocks, rows([5, 6, 9, 18]), [[2.0, 5.0], [6.0, 7.0], [8.0, 12.0]])
    assert values[:, 0].tolist() == [5, 5, 6, 6, 9, 9, 18, 18, 18]
    assert [(b.offset, b.length, b.t0_s, b.start_s, b.end_s) for b in made] == [
        (0, 6, 2.0, 2.0, 5.0), (6, 3, 8.0, 8.0, 12.0)
    ]  # fmt: skip
    blocks[1] = replace(blocks[1], t0_s=5.0)
    for spans, wanted in (([], [5] * 6 + [6] * 3 + [10] * 6 + [18] * 4), ([[2.0, 5.0]], [5, 5, 6])):
        assert filled(blocks, rows([5, 6, 10, 18]), spans)[1][:, 0].tolist() == wanted


def test_a_window_in_a_gap_has_no_row(tmp_path: Path) -> None:
    both(cache(tmp_path))
    bank = Bank.open([tmp_path / "000"], SPEC)
    assert [bank.shows("a", start_s, start_s + 0.5) for start_s in (0, 1.5, 3, 4.2, 4.8, 7.2, 11)] == [
        *(True, True, False, False, True, True, False)
    ]
    assert bank.shows("a", 1, 7)
    assert bank.shows("b", 90, 91)
    for asked in (bank.window, lambda *window: bank.means(*([each] for each in window))):
        with pytest.raises(AbsentError, match="a has no features from 3 to 4 s: it is damaged .2.000 to 5.500 s: dam"):
            asked("a", 3.0, 4.0)  # type: ignore[operator]
    assert bank.means(["a", "a"], [1.0, 3.0], [7.0, 7.0])[:, 0].tolist() == [3.5, 6.0]
    there = bank.windows(["a"], [0.0], [10.0], length=10)[1]
    assert np.flatnonzero(there[0]).tolist() == K


def test_a_store_that_is_written_without_some_videos_keeps_the_gaps_of_the_others(tmp_path: Path) -> None:
    both(cache(tmp_path))
    _drop(tmp_path / "000", ["b"])
    assert cache(tmp_path).has(RECORD)
    _drop(tmp_path / "000", ["a"])
    assert read(tmp_path / "000").damaged == {}
