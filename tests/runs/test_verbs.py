import csv
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline import paths
from stepline.errors import ConfigError, MissingError, StoreError
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.store import Damaged, Part
from stepline.io import read_json
from stepline.runs.predictions import read_predictions
from stepline.runs.report import write_report
from stepline.runs.verbs import Verbs
from tests.benchmark.tiny import (
    NUMBERS,
    Drawn,
    Fitted,
    Guess,
    TinyInputs,
    declared,
    tiny,
    write_banks,
    write_releases,
)

PLACE = "tiny", "first", "fitted", "all"
ENTRIES = "three", "drawn", "fitted", "four"


@pytest.fixture
def verbs(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Verbs:
    write_releases()
    write_banks(tmp_path_factory.mktemp("banks"))
    return Verbs(tiny(tmp_path, releases=["first"]))


def read(verbs: Verbs, entry: str) -> tuple[list[Guess], Any]:
    path = paths.predictions("tiny", "first", entry, "all")
    return read_predictions(path, Guess, verbs.benchmark.spec(verbs.benchmark.job("first", entry, "all")))


def guess(**changes: Any) -> Guess:
    return Guess(**{"seed": 1, "split": "test", "video": "e", "place": 0, "value": 1.0} | changes)


def test_each_verb_writes_its_file(verbs: Verbs) -> None:
    for seed in (0, 5):
        verbs.fit(*PLACE[1:], seed)
    for entry in ENTRIES:
        verbs.predict("first", entry, "all")
        verbs.score("first", entry, "all")
    for table in ("table1", "table2"):
        verbs.table(table)
    verbs.picture("table1")
    write_report(verbs.benchmark, Path("results/tiny/report.html"))
    verbs.results()
    found = {path.relative_to("results/tiny").as_posix() for path in Path("results/tiny").rglob("*") if path.is_file()}
    assert found == {
        *(f"fits/first/fitted/all/{seed}.safetensors" for seed in (0, 5)),
        *(f"predictions/first/{entry}/all.{form}" for entry in ENTRIES for form in ("json", "parquet")),
        *(f"scores/first/{entry}/all.json" for entry in ENTRIES),
        *(f"table{number}.{form}" for number in (1, 2) for form in ("csv", "md")),
        *("table1.svg", "report.html", "all"),
    }
    assert len(Path("results/tiny/all").read_text().splitlines()) == 5


def test_a_damaged_video_is_read_with_the_nearest_rows_and_counted(verbs: Verbs) -> None:
    (location,) = verbs.benchmark.footage["first"].stores("net")
    held = store.read(location)
    rows = {video: np.array(held.rows_of(block)) for video, (block,) in held.blocks.items()}
    parts: dict[str, Any] = rows | {"e": [Part(rows["e"][:20], 0, 0, 20), Part(rows["e"][30:], 30, 30, inf)]}
    damaged = {video: Damaged("key", [], [(20.0, 29.5, "damaged")]) for video in "e"}
    store.write(location, held.spec, parts, 1, damaged=damaged)
    of = verbs.benchmark.inputs(verbs.benchmark.job("first", "fitted", "all"))
    assert (len(of.banks[0]["e"]), of.in_part) == (60, {"e": 9.5})
    for seed in (0, 5):
        verbs.fit(*PLACE[1:], seed)
    verbs.predict("first", "fitted", "all")
    verbs.score("first", "fitted", "all")
    verbs.table("table1")
    with open("results/tiny/table1.csv", newline="", encoding="utf-8") as file:
        line = next(row for row in csv.DictReader(file) if row["entry"] == "fitted")
    assert (line["n_videos"], line["n_listed"], line["n_in_part"]) == ("2", "2", "1")
    assert "videos: 1 partly read, 9.5 s missing" in line["note"]
    assert "2 / 2, 1 in part" in Path("results/tiny/table1.md").read_text()


class TestFit:
    def test_each_seed_has_its_checkpoint(self, verbs: Verbs) -> None:
        for seed in (0, 5):
            verbs.fit(*PLACE[1:], seed)
        assert [float(paths.fit(*PLACE, seed).read_text()) for seed in (0, 5)] == [2.75, 7.75]
        verbs.predict("first", "fitted", "all")
        made, about = read(verbs, "fitted")
        assert [(each.seed, each.video, each.value) for each in made[::4]] == [(0, "e", 2.75), (5, "e", 7.75)]
        assert about["selection"] == "guessed"

    @pytest.mark.parametrize(("lost", "fitted"), [("d", b""), ("ef", b"2.75")])
    def test_it_is_empty_where_something_is_missing(
        self, verbs: Verbs, monkeypatch: pytest.MonkeyPatch, lost: str, fitted: bytes
    ) -> None:
        original = TinyInputs.open_bank

        def without(self: TinyInputs, name: str) -> Bank:
            bank = original(self, name)
            for video in lost:
                del bank.blocks[video]
            return bank

        monkeypatch.setattr(TinyInputs, "open_bank", without)
        for seed in (0, 5):
            verbs.fit(*PLACE[1:], seed)
        assert paths.fit(*PLACE, 0).read_bytes() == fitted
        verbs.predict("first", "fitted", "all")
        assert read(verbs, "fitted")[0] == []
        assert read(verbs, "fitted")[1]["needs"] == ["features:net/first"]
        verbs.score("first", "fitted", "all")
        assert read_json(paths.scores(*PLACE))["status"] == "needs"

    def test_it_reads_no_evaluated_split(self, verbs: Verbs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Fitted, "fit", lambda self, inputs, seed, path: inputs.truth("test"))
        with pytest.raises(ConfigError, match="^the method of fitted .* reads the split test: add "):
            verbs.fit(*PLACE[1:], 0)

    def test_what_cannot_be_fitted_is_one_line(self, verbs: Verbs) -> None:
        with pytest.raises(ConfigError, match="^entry 'three' is not trained$"):
            verbs.fit("first", "three", "all", 0)
        with pytest.raises(ConfigError, match=r"^config: tiny.head.seeds: 7 is not in the list; add it, or use"):
            verbs.fit(*PLACE[1:], 7)
        with pytest.raises(
            ConfigError, match="^tiny has no entry 'five' on 'first' at 'all': choose from fitted on first"
        ):
            verbs.fit("first", "five", "all", 0)


class TestPredict:
    def test_every_unit_by_every_seed(self, verbs: Verbs) -> None:
        verbs.predict("first", "drawn", "all")
        made, about = read(verbs, "drawn")
        assert [(each.seed, each.video, each.place) for each in made] == [
            (seed, video, place) for seed in (1, 2) for video in "ef" for place in range(len(NUMBERS[video]))
        ]
        assert {key: about[key] for key in ("needs", "selection")} == {"needs": [], "selection": "guessed"}

    @pytest.mark.parametrize(
        ("made", "problem"),
        [
            (
                [guess(seed=1)],
                r"^the method of drawn returned predictions for the seeds \[1\] and the splits \['test'\], but its",
            ),
            (
                [guess(seed=1), guess(seed=2, split="tset")],
                r"the splits \['test', 'tset'\], but its entry has \[1, 2\] and",
            ),
            ([], "^the method of drawn must yield at least one prediction, all of the class Guess$"),
            (None, "must yield at least one prediction"),
            ([{"seed": 1}], "must yield at least one prediction"),
        ],
    )
    def test_predictions_that_are_not_the_entrys_are_one_line(
        self, verbs: Verbs, monkeypatch: pytest.MonkeyPatch, made: Any, problem: str
    ) -> None:
        monkeypatch.setattr(Drawn, "predict", lambda self, inputs, fits: made)
        with pytest.raises(ConfigError, match=problem):
            verbs.predict("first", "drawn", "all")

    def test_the_truth_of_evaluated_units_is_hidden(self, verbs: Verbs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            Drawn, "predict", lambda self, inputs, fits: [guess(value=each.value) for each in inputs.truth("test")]
        )
        with pytest.raises(ConfigError, match="^the method of drawn .* reads `value` of an evaluated unit: add "):
            verbs.predict("first", "drawn", "all")

    def test_a_value_of_another_type_is_one_line(self, verbs: Verbs, monkeypatch: pytest.MonkeyPatch) -> None:
        made = [guess(seed=seed, value="many") for seed in (1, 2)]
        monkeypatch.setattr(Drawn, "predict", lambda self, inputs, fits: made)
        with pytest.raises(ConfigError, match=r"^Guess\.value: a method yielded a value of another type: .*many"):
            verbs.predict("first", "drawn", "all")

    def test_what_turns_out_to_be_missing_is_no_error(self, tmp_path: Path) -> None:
        write_releases()
        asking = {"kind": "asking", "table": "table1", "method": "A"}
        verbs = Verbs(tiny(tmp_path, declared(entries={"asking": asking})))
        verbs.predict("first", "asking", "all")
        made, about = read(verbs, "asking")
        assert (made, about["needs"], about["selection"]) == ([], ["key:TINY_KEY"], "")

    def test_what_is_missing_before_is_one_line(self, tmp_path: Path) -> None:
        write_releases()
        with pytest.raises(MissingError, match="^entry 'fitted' on 'first' needs features:net/first$"):
            Verbs(tiny(tmp_path)).predict("first", "fitted", "all")


class TestScore:
    def test_predictions_must_be_there_and_of_this_configuration(self, verbs: Verbs, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="all.parquet does not exist: run `stepline predict`"):
            verbs.score("first", "drawn", "all")
        verbs.predict("first", "drawn", "all")
        other = Verbs(tiny(tmp_path, entries={"drawn": {"seeds": [3]}}))
        with pytest.raises(StoreError, match="all.parquet was written with another configuration"):
            other.score("first", "drawn", "all")


def test_a_table_that_is_not_configured_is_one_line(tmp_path: Path) -> None:
    verbs = Verbs(tiny(tmp_path, tables=["table2"]))
    for verb in (verbs.table, verbs.picture):
        with pytest.raises(ConfigError, match=r"^config: tiny.tables: 'table1' is not one of table2; add it there$"):
            verb("table1")
