"""Rankings and moments of features, beside a straight-line account and cases that are computed by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stepline.backbones.registry import presets
from stepline.benchmarks.hirest import texts
from stepline.benchmarks.hirest.kinds import Found
from stepline.benchmarks.hirest.methods.zero_shot import MomentRetrieval, VideoRetrieval
from stepline.datasets import hirest
from stepline.datasets.hirest import Pair
from stepline.errors import ConfigError
from stepline.features.importing import Folder, import_folder
from tests.benchmarks.hirest.conftest import inputs, predicted
from tests.benchmarks.hirest.synthetic import DIMENSION, QUERIES, recordings, vector

Rows = Mapping[str, NDArray[np.floating]]
QUERY = "Make Candles"


def bank(tmp_path: Path, rows: Rows) -> None:
    """Import rows as the bank ``planted``."""
    for video, each in rows.items():
        (tmp_path / "rows").mkdir(exist_ok=True)
        np.save(tmp_path / "rows" / f"{video}.npy", each.astype(np.float32))
    import_folder(Folder(tmp_path / "rows"), "planted", "hirest", 1.0)


def answers(query: str) -> list[str]:
    return [each.video for each in recordings() if each.query == query]


class TestVideoRetrieval:
    @pytest.fixture
    def rows(self, releases: None, tmp_path: Path) -> Rows:
        """Rows of any length and direction, of more and of fewer than 32 seconds."""
        random = np.random.default_rng(5)
        found = {
            video: random.normal(size=(length, DIMENSION)) * random.exponential(3, (length, 1))
            for video, length in zip(hirest.pool(), random.integers(20, 90, 23), strict=True)
        }
        bank(tmp_path, found)
        return found

    @pytest.mark.parametrize("frames", [1, 4, 10, 20, 32])
    def test_a_video_is_the_mean_of_some_of_32_rows(self, rows: Rows, frames: int) -> None:
        def mean(video: str) -> NDArray[np.floating]:
            stored = [rows[video][int(at)] for at in np.linspace(0, len(rows[video]) - 1, 32)]
            total = sum((stored[int(at)] for at in np.linspace(0, 31, frames)), np.zeros(DIMENSION))
            return total / np.linalg.norm(total)

        made = predicted(inputs(f"eva-clip-{frames}"))
        assert [each.query for each in made] == list(QUERIES["test"])
        for each in made:
            ranked = sorted(((float(mean(video) @ vector(each.query)), video) for video in rows), reverse=True)
            assert each.ranked == tuple(video for _, video in ranked)
            assert (each.seed, each.split, each.video, each.pool) == (0, "pool", "", 23)

    def test_equal_videos_stand_by_their_ids_the_last_first(self, releases: None, tmp_path: Path) -> None:
        rows = np.random.default_rng(1).normal(size=(40, DIMENSION))
        bank(tmp_path, dict.fromkeys(hirest.pool(), rows))
        for made in predicted(inputs("eva-clip-20")):
            assert made.ranked == tuple(sorted(hirest.pool(), reverse=True))

    def test_what_is_not_there_is_not_ranked_and_a_query_without_a_video_is_left_out(
        self, releases: None, tmp_path: Path
    ) -> None:
        absent = {*answers(QUERY), answers("Knit a Scarf")[0], "other-3"}
        there = [video for video in hirest.pool() if video not in absent]
        bank(tmp_path, {video: np.tile(vector(video), (40, 1)) for video in there})
        made = predicted(inputs("eva-clip-4"))
        assert [each.query for each in made] == [query for query in QUERIES["test"] if query != QUERY]
        for each in made:
            assert each.pool == len(there) == 18
            assert sorted(each.ranked or ()) == sorted(there)

    def test_the_subset_is_the_pool(self, banks: None) -> None:
        of = inputs("eva-clip-4", subset={"fraction": 0.3, "seed": 1})
        some = of.benchmark.chosen(hirest.DATASETS["hirest"]) & {*hirest.pool()}
        made = predicted(of)
        assert [each.query for each in made] == [query for query in QUERIES["test"] if some & {*answers(query)}]
        assert all((each.pool, {*(each.ranked or ())}) == (len(some), some) for each in made)
        assert 0 < len(some) < 23

    def test_more_frames_than_a_video_has_are_refused(self, banks: None) -> None:
        of = inputs("clip-4", entries={"clip-4": {"settings": {"frames": 33}}})
        with pytest.raises(
            ConfigError, match=r"^config: hirest.entries.clip-4.settings.frames: 33 is greater than the m"
        ):
            predicted(of)

    def test_a_tower_of_another_size_is_refused(self, releases: None, tmp_path: Path) -> None:
        bank(tmp_path, dict.fromkeys(hirest.pool(), np.ones((40, 8))))
        with pytest.raises(ConfigError, match=r"features.clip.text: tower-text has vectors of 32 numbers, but the f"):
            predicted(inputs("clip-32"))

    @pytest.mark.parametrize(
        ("backbone", "best"), [("s3d-dropdtw", "long"), ("eva_clip-hirest-unnormalised", "like"), ("imported", "like")]
    )
    def test_networks_that_compare_by_the_dot_product_do(
        self, backbone: str, best: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = {"like": np.array([[1.0, 0.0]]), "long": np.array([[3.0, 3.0]])}
        of = faked(monkeypatch, {"q": np.array([1.0, 0.0])}, rows, frames=32)
        of.queries, of.used = {"q": ["like"]}, lambda split: [SimpleNamespace(video=video) for video in rows]
        of.benchmark.features = lambda entry: [backbone]
        of.footage.is_backbone = presets().__contains__
        of.footage.pipeline = SimpleNamespace(features=SimpleNamespace(spec_of=presets().__getitem__))
        (made,) = VideoRetrieval().predict(of, [])
        assert made.ranked is not None
        assert made.ranked[0] == best


def faked(monkeypatch: pytest.MonkeyPatch, vectors: Mapping[str, Any], rows: Rows, **settings: Any) -> Any:
    """Return inputs with one bank of these rows and a tower that has these vectors."""
    towers = {"mil_nce": SimpleNamespace(spec=None)}
    monkeypatch.setattr(texts, "query_encoder", lambda benchmark, features: towers[features])
    monkeypatch.setattr(texts, "encoded", lambda encoder, what, listed: np.stack([vectors[each] for each in listed]))
    return SimpleNamespace(
        banks=[rows],
        entry=SimpleNamespace(settings=settings, features="mil_nce", id="e"),
        benchmark=SimpleNamespace(),
        footage=SimpleNamespace(),
        dimension=2,
    )


class Bank(dict[str, NDArray[np.floating]]):
    """Rows of one video each ``hop_s`` seconds, from ``t0_s`` on."""

    def __init__(self, rows: NDArray[np.floating], hop_s: float, t0_s: float) -> None:
        super().__init__(a=rows)
        self.blocks = {"a": [SimpleNamespace(hop_s=hop_s, t0_s=t0_s, length=len(rows))]}


class TestMomentRetrieval:
    """Rows of 63 s, of which every second one is compared: of row 21 nothing is seen, nor of those from 63 on."""

    SIMILAR: Mapping[int, float] = {
        14: 0.795,
        16: 0.845,
        18: 0.86,
        20: 0.9,
        21: 1,
        22: 0.86,
        24: 0.81,
        26: 0.7,
        28: 0.89,
        64: 1,
    }

    def moment(
        self,
        monkeypatch: pytest.MonkeyPatch,
        rule: str,
        *,
        similar: Mapping[int, float] = SIMILAR,
        rows: int = 70,
        duration_s: float = 63.0,
        hop_s: float = 1.0,
        t0_s: float = 0.0,
    ) -> tuple[float, ...] | None:
        cosines = np.array([similar.get(row, 0.2) for row in range(rows)])
        lengths = np.random.default_rng(2).uniform(0.5, 2, (rows, 1))  # the cosine does not see them
        shown = np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1) * lengths
        of = faked(monkeypatch, {"q": np.array([3.0, 0.0])}, Bank(shown, hop_s, t0_s), rule=rule)
        pair = Pair(query="q", video="a", duration_s=duration_s, clippable=True, bounds_s=None, steps=(), split="test")
        of.evaluated = [pair]
        (made,) = MomentRetrieval().predict(of, [])
        assert (made.split, made.video, made.query, made.seed) == ("test", "a", "q", 0)
        return made.moment

    @pytest.mark.parametrize(
        ("rule", "moment"), [("drop_0.05", (18, 22)), ("drop_0.10", (16, 24)), ("around_8", (4, 36))]
    )
    def test_a_moment_reaches_from_its_first_to_its_last_frame(
        self, monkeypatch: pytest.MonkeyPatch, rule: str, moment: tuple[float, float]
    ) -> None:
        assert self.moment(monkeypatch, rule) == moment

    def test_a_moment_ends_with_the_video(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.moment(monkeypatch, "around_8", similar={60: 0.9}) == (44, 62)
        assert self.moment(monkeypatch, "around_8", similar={2: 0.9}) == (0, 18)

    def test_a_single_frame_has_no_length(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.moment(monkeypatch, "drop_0.05", similar={20: 0.9}) == (20, 20)

    @pytest.mark.parametrize("duration_s", [62.6, 63.4])
    def test_the_duration_is_rounded(self, monkeypatch: pytest.MonkeyPatch, duration_s: float) -> None:
        assert self.moment(monkeypatch, "around_8", duration_s=duration_s) == (4, 36)

    def test_a_video_with_fewer_rows_ends_where_they_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.moment(monkeypatch, "around_8", similar={20: 0.9}, rows=32) == (12, 28)
        assert self.moment(monkeypatch, "around_8", similar={31: 0.9}, rows=32, duration_s=0.3) == (0, 0)

    def test_rows_stand_at_their_times(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.moment(monkeypatch, "around_8", duration_s=31.5, hop_s=0.5, t0_s=0.25) == (2.25, 18.25)

    def test_of_equally_good_frames_it_is_the_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.moment(monkeypatch, "around_8", similar={26: 0.9, 28: 0.9, 50: 0.9}) == (10, 42)

    def test_a_row_of_zeros_is_at_a_right_angle_to_every_query(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shown = np.full((63, 2), -1.0)
        shown[30] = 0
        of = faked(monkeypatch, {"q": np.array([1.0, 0.0])}, Bank(shown, 1.0, 0.0), rule="drop_0.05")
        of.evaluated = [Pair(query="q", video="a", duration_s=63, clippable=True, bounds_s=None, steps=(), split="val")]
        (made,) = MomentRetrieval().predict(of, [])
        assert made.moment == (30, 30)

    def test_planted_moments_are_found_in_every_video_that_has_one(self, banks: None) -> None:
        made = predicted(inputs("eva-clip-drop"))
        listed = [each for each in recordings() if each.split != "train" and each.clip]
        assert [(each.split, each.video, each.query) for each in made] == [
            (each.split, each.video, each.query) for each in listed
        ]
        for each, recording in zip(made, listed, strict=True):
            assert overlap(each, recording.bounds) > 0.7


def overlap(made: Found, bounds: Sequence[float]) -> float:
    assert made.moment is not None
    (start_s, end_s), (first_s, last_s) = made.moment, bounds
    return (min(end_s, last_s) - max(start_s, first_s)) / (max(end_s, last_s) - min(start_s, first_s))
