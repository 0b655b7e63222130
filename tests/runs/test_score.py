from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.benchmark import Values
from stepline.errors import ConfigError, StoreError
from stepline.io import read_json
from stepline.metrics.bootstrap import bootstrap_interval
from stepline.needs import Need
from stepline.runs.predictions import write_predictions
from stepline.runs.score import _summary, score
from tests.benchmark.tiny import Guess, Tiny, TinyInputs, job, tiny, write_releases

OPTIONS = {"bootstrap_samples": 100, "bootstrap_seed": 0}
NAN = float("nan")
VALUE = st.one_of(st.floats(-100, 100), st.just(NAN))


def values(numbers: Sequence[float], videos: Sequence[str], **fields: Any) -> Values:
    return Values(videos=videos, values=np.array(numbers, dtype=np.float64), **fields)


def straight(
    by_seed: Mapping[int, Sequence[float]], videos: Sequence[str], weights: Sequence[float]
) -> tuple[list[float], dict[str, float], dict[str, float]]:
    """Return values by seed, by video, and what videos weigh, one number after the other."""
    per_seed = []
    for row in by_seed.values():
        pairs = [(value, weight) for value, weight in zip(row, weights, strict=True) if value == value]
        total = sum(weight for _, weight in pairs)
        per_seed.append(sum(value * weight for value, weight in pairs) / total if pairs else 0.0)
    units = []
    for column in zip(*by_seed.values(), strict=True):
        there = [value for value in column if value == value]
        units.append(sum(there) / len(there) if there else NAN)
    per_video, of_video = {}, {}
    for video in dict.fromkeys(videos):
        mine = [(u, w) for u, w, v in zip(units, weights, videos, strict=True) if v == video and u == u]
        if mine:
            of_video[video] = sum(w for _, w in mine)
            per_video[video] = sum(u * w for u, w in mine) / of_video[video]
    return per_seed, per_video, of_video


@st.composite
def scored(draw: st.DrawFn) -> tuple[dict[int, list[float]], list[str], list[float] | None]:
    n = draw(st.integers(1, 6))
    videos = draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    seeds = draw(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True))
    weights = draw(st.none() | st.lists(st.integers(1, 4).map(float), min_size=n, max_size=n))
    return {seed: draw(st.lists(VALUE, min_size=n, max_size=n)) for seed in seeds}, videos, weights


class TestSummary:
    @given(scored())
    def test_it_is_what_one_number_after_the_other_gives(
        self, drawn: tuple[dict[int, list[float]], list[str], list[float] | None]
    ) -> None:
        rows, videos, weights = drawn
        given = {"weights": None if weights is None else np.array(weights), "counts": {"n_listed": 9}}
        found = _summary({s: values(row, videos, **given) for s, row in rows.items()}, OPTIONS, drawn=True)
        per_seed, per_video, of_video = straight(rows, videos, weights or [1.0] * len(videos))
        assert found["per_seed"] == pytest.approx(per_seed)
        assert found["value"] == pytest.approx(np.mean(per_seed))
        assert found["per_video"] == pytest.approx(per_video)
        assert found["weights"] == of_video
        assert (found["n_videos"], found["n_listed"], found["seeds"]) == (len(per_video), 9, list(rows))
        if len(rows) == 1:
            assert found["sd"] is None
        else:
            assert found["sd"] == pytest.approx(np.std(per_seed, ddof=1))
        if len(per_video) < 2:
            assert found["ci"] is None
        else:
            interval = bootstrap_interval([*per_video.values()], samples=100, seed=0, weights=[*of_video.values()])
            assert found["ci"] == pytest.approx(interval)

    def test_what_no_seed_decides_is_counted_once_and_entries_that_draw_nothing_have_no_seeds(self) -> None:
        by_seed = {seed: values([1, 3], "ab", drawn=False) for seed in (1, 2)}
        found = _summary(by_seed, OPTIONS, drawn=True)
        assert (found["per_seed"], found["seeds"], found["sd"]) == ([2], [], None)
        assert _summary({0: values([1], "a")}, OPTIONS, drawn=False)["seeds"] == []

    def test_units_that_depend_on_other_videos_have_no_interval(self) -> None:
        assert _summary({0: values([1, 2], "ab")}, OPTIONS, drawn=False)["ci"] is not None
        assert _summary({0: values([1, 2], "ab", interval=False)}, OPTIONS, drawn=False)["ci"] is None

    def test_the_deviation_of_draws_is_that_of_the_first_seed(self) -> None:
        by_seed = {seed: values([1, 2], "ab", draw_sd=0.5 + seed) for seed in (0, 1)}
        assert _summary(by_seed, OPTIONS, drawn=True)["draw_sd"] == 0.5
        assert _summary({0: values([1, 2], "ab")}, OPTIONS, drawn=True)["draw_sd"] is None

    def test_a_corpus_value_is_no_mean_and_has_no_interval(self) -> None:
        by_seed = {seed: values([1, 2], "ab", corpus=corpus) for seed, corpus in ((0, 0.0), (1, 7.0))}
        found = _summary(by_seed, OPTIONS, drawn=True)
        assert (found["value"], found["per_seed"], found["ci"]) == (3.5, [0.0, 7.0], None)
        assert found["per_video"] == {"a": 1.0, "b": 2.0}

    def test_the_interval_is_drawn_as_configured(self) -> None:
        by_seed = {0: values(range(9), "abcdefghi")}
        first, other = (_summary(by_seed, OPTIONS | {"bootstrap_seed": seed}, drawn=False)["ci"] for seed in (0, 1))
        assert first != other

    def test_in_the_interval_a_video_weighs_its_units(self) -> None:
        means, units = [2, 5, 6, 7, 8], [5, 1, 1, 1, 1]
        weighted, alike = (bootstrap_interval(means, samples=100, seed=0, weights=each) for each in (units, None))
        assert _summary({0: values(range(9), "aaaaabcde")}, OPTIONS, drawn=False)["ci"] == pytest.approx(weighted)
        assert weighted != pytest.approx(alike)


class TestScore:
    @pytest.fixture(autouse=True)
    def _releases(self) -> None:
        write_releases()

    def inputs(self, folder: Path, entry: str = "drawn", **options: Any) -> TinyInputs:
        made = tiny(folder, metrics=OPTIONS | options)
        return made.inputs(job(made, entry))

    def scored(self, of: TinyInputs, made: Sequence[Guess], needs: Sequence[Need] = (), **about: Any) -> dict[str, Any]:
        write_predictions(Path("p"), Guess, made, spec=of.spec, needs=needs, selection="chosen", **about)
        score(of, Path("p"), Path("s.json"))
        found: dict[str, Any] = read_json(Path("s.json"))
        return found

    def guesses(self, *seeds: int) -> list[Guess]:
        """Return each seed as the guess at all test numbers, the seeds mixed."""
        places = (("e", 0), ("e", 1), ("e", 2), ("f", 0))
        return [
            Guess(seed=seed, split="test", video=video, place=place, value=seed)
            for video, place in places
            for seed in seeds
        ]

    def test_each_metric_of_the_kind_has_its_summary(self, tmp_path: Path) -> None:
        found = self.scored(self.inputs(tmp_path), self.guesses(4, 2))
        error = found["metrics"]["error"]
        assert (error["per_seed"], error["seeds"], error["n_listed"]) == ([3, 2], [2, 4], 2)
        assert error["per_video"] == pytest.approx({"e": (2 + 4 / 3) / 2, "f": 5})
        assert found["metrics"].keys() == {"error", "near"}
        assert (found["status"], found["needs"], found["selection"]) == ("present", [], "chosen")
        near = found["metrics"]["near"]
        assert (near["title"], near["options"], near["split"]) == ("Near", {"within": 1}, "test")
        assert near["definition"] == Tiny.metrics["near"].definition

    def test_damaged_videos_are_counted_with_what_is_absent_of_them(self, tmp_path: Path) -> None:
        of = self.inputs(tmp_path)
        assert "n_in_part" not in self.scored(of, self.guesses(4))["metrics"]["error"]
        error = self.scored(of, self.guesses(4), in_part={"e": 1.5, "a": 30.0})["metrics"]["error"]
        assert (error["n_videos"], error["n_in_part"], error["absent_s"]) == (2, 1, 1.5)

    def test_a_kind_is_scored_by_its_metrics_alone(self, tmp_path: Path) -> None:
        assert self.scored(self.inputs(tmp_path, "three"), self.guesses(0))["metrics"].keys() == {"error"}

    def test_options_of_metrics_are_the_configured_ones(self, tmp_path: Path) -> None:
        for within, value in ((1, 25), (2, 75)):
            near = self.scored(self.inputs(tmp_path, within=within), self.guesses(4))["metrics"]["near"]
            assert (near["value"], near["options"]) == (value, {"within": within})

    def test_the_benchmark_says_on_what_and_by_which_options_a_metric_is_measured(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Tiny, "split", lambda self, entry, metric: f"{metric} of {entry.id}")
        monkeypatch.setattr(Tiny, "options_of", lambda self, entry, metric: ["within"] if metric == "error" else [])
        found = self.scored(self.inputs(tmp_path), self.guesses(4))["metrics"]
        assert {metric: (each["split"], each["options"]) for metric, each in found.items()} == {
            "error": ("error of drawn", {"within": 1}),
            "near": ("near of drawn", {}),
        }

    def test_what_is_chosen_on_val_comes_first_and_is_said(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def select(self: Tiny, inputs: TinyInputs, made: Sequence[Guess]) -> tuple[Sequence[Guess], str]:
            return [each for each in made if each.video == "f"], "f alone"

        monkeypatch.setattr(Tiny, "select", select)
        found = self.scored(self.inputs(tmp_path), self.guesses(4))
        assert found["selection"] == "chosen; f alone"
        assert (found["metrics"]["error"]["value"], found["metrics"]["error"]["n_videos"]) == (4, 1)

    def test_nothing_predicted_has_no_numbers_and_says_why(self, tmp_path: Path) -> None:
        of = self.inputs(tmp_path)
        found = self.scored(of, [], [Need("videos", "first")])
        assert found.pop("source") == of.benchmark.scoring_source()
        about = {"selection": "chosen", "bootstrap": {"samples": 100, "seed": 0}, "shown_in": ""}
        assert found == {"status": "needs", "needs": ["videos:first"], "metrics": {}} | about

    def test_seeds_of_other_units_are_one_line(self, tmp_path: Path) -> None:
        made = [each for each in self.guesses(2, 4) if (each.seed, each.video) != (4, "f")]
        with pytest.raises(ConfigError, match="the units of 'error' for drawn differ between seeds: return a value"):
            self.scored(self.inputs(tmp_path), made)

    @pytest.mark.parametrize(
        ("metric", "unit", "left_out", "error"),
        [
            ("error", "%", (4,), "no unit of 'error' for drawn has a value"),
            ("error", "count", (2, 4), "no unit of 'error' for drawn has a value"),
            ("near", "", (2,), "no unit of 'near' for drawn has a value"),
            ("near", "%", (2,), None),
            ("n", "count", (4,), None),
            ("error", "", (), None),
        ],
    )
    def test_without_any_value_a_percentage_or_a_count_is_0_and_other_metrics_are_an_error(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        metric: str,
        unit: Any,
        left_out: Sequence[int],
        error: str | None,
    ) -> None:
        def of(self: Tiny, inputs: TinyInputs, made: Sequence[Guess]) -> dict[str, Values]:
            return {metric: values([NAN, NAN if made[0].seed in left_out else 6.0], "ef")}

        monkeypatch.setattr(Tiny, "values", of)
        monkeypatch.setattr(Tiny, "metrics", Tiny.metrics | {metric: replace(Tiny.metrics[metric], unit=unit)})
        if error:
            with pytest.raises(ConfigError, match=error):
                self.scored(self.inputs(tmp_path), self.guesses(2, 4))
        else:
            found = self.scored(self.inputs(tmp_path), self.guesses(2, 4))["metrics"][metric]
            assert found["per_seed"] == [0 if seed in left_out else 6 for seed in (2, 4)]

    def test_seeds_are_those_of_fits_or_draws(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, features={"net": ["histogram"]})
        seeds = {}
        for entry in ("three", "drawn", "fitted"):
            found = self.scored(made.inputs(job(made, entry)), self.guesses(5, 0))
            seeds[entry] = found["metrics"]["error"]["seeds"]
        assert seeds == {"three": [], "drawn": [0, 5], "fitted": [0, 5]}

    def test_the_pool_of_a_ranking_has_all_damaged_videos(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ranked = values([1, 2], "xy", units="queries", counts={"n_videos": None})
        monkeypatch.setattr(Tiny, "values", lambda self, inputs, made: {"n": ranked})
        found = self.scored(self.inputs(tmp_path), self.guesses(4), in_part={"e": 1.5, "a": 30.0})["metrics"]["n"]
        assert (found["n_videos"], found["n_in_part"], found["absent_s"], found["units"]) == (None, 2, 31.5, "queries")

    def test_the_data_set_whose_timelines_show_it_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Tiny, "in_time", lambda self, inputs, video, made: None)
        assert self.scored(self.inputs(tmp_path), self.guesses(4))["shown_in"] == "first"

    def test_a_metric_that_is_not_declared_is_one_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Tiny, "values", lambda self, inputs, made: {"eror": values([1], "a")})
        with pytest.raises(ConfigError, match="values: 'eror' is not a metric; choose from error, near, n"):
            self.scored(self.inputs(tmp_path), self.guesses(2))

    def test_predictions_of_another_configuration_are_not_scored(self, tmp_path: Path) -> None:
        self.scored(self.inputs(tmp_path), self.guesses(1))
        other = tiny(tmp_path, entries={"drawn": {"seeds": [9]}})
        with pytest.raises(
            StoreError, match="^p was written with another configuration: run `stepline predict` again$"
        ):
            score(other.inputs(job(other, "drawn")), Path("p"), Path("s.json"))
