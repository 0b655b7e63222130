import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.benchmark import Benchmark, Entry, Line, UnavailableError
from stepline.errors import StoreError
from stepline.io import write_json, write_text
from stepline.needs import Need
from stepline.runs.table import table_rows, write_table
from stepline.runs.verbs import Verbs
from stepline.tables import Row
from tests.benchmark.tiny import Tiny, declared, tiny, write_banks, write_releases

FIRST = {"releases": ["first"]}
PAPER = (
    "table,method,modality,setting,context_s,metric,split,release,"
    "paper,rerun,decimals,tolerance,tolerance_source,evidence,note\n"
)


@pytest.fixture(autouse=True)
def _releases() -> None:
    write_releases()


def compute(made: Benchmark[Any], file: str) -> None:
    """Predict and score what is missing nothing and is not trained."""
    for each in made.jobs(file):
        if not each.entry.trained:
            Verbs(made).predict(each.release, each.entry.id, each.context)
            Verbs(made).score(each.release, each.entry.id, each.context)


def by_line(rows: list[Row]) -> dict[tuple[str, str], Row]:
    return {(row.entry, row.metric): row for row in rows}


def one_table(**content: Any) -> dict[str, Any]:
    return declared(tables={"table1": {"title": "T", "metrics": ["error"]} | content})


class TestLines:
    def test_each_line_has_its_metrics_on_each_of_its_releases(self, tmp_path: Path) -> None:
        made = tiny(tmp_path)
        compute(made, "table1")
        found = [(row.entry, row.release, row.metric) for row in table_rows(made, "table1")]
        assert found == [
            ("three", "first", "error"),
            ("drawn", "first", "error"),
            ("drawn", "first", "near"),
            ("fitted", "first", "error"),
            ("fitted", "first", "near"),
            ("three", "second", "error"),
            ("fitted", "second", "error"),
            ("fitted", "second", "near"),
        ]

    def test_a_number_says_what_it_is(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, **FIRST)
        compute(made, "table1")
        row = by_line(table_rows(made, "table1"))["drawn", "near"]
        assert (row.value, row.seeds, row.n_videos, row.n_listed) == (25, (1, 2), 2, 2)
        assert (row.status, row.split, row.title, row.options_text) == ("ours", "test", "Guesses", "within=1")
        assert row.spec == made.spec(made.job("first", "drawn", "all"))
        assert row.note == "selection: guessed"
        assert row.per_video == pytest.approx({"e": 100 / 3, "f": 0})

    def test_what_a_line_and_the_benchmark_note_stands_beside(self, tmp_path: Path) -> None:
        lines = [{"entry": "people", "method": "P", "note": "counted"}]
        made = tiny(tmp_path, one_table(metrics=["n"], lines=lines), subset={"fraction": 0.5}, **FIRST)
        (row,) = table_rows(made, "table1")
        assert (row.value, row.note, row.spec, row.subset) == (9, "counted; numbers are whole", "", "")

    def test_entries_of_one_line_each(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, entries={"three": {"inputs": ["val", "video"]}}, **FIRST)
        compute(made, "table2")
        rows = table_rows(made, "table2")
        assert [(row.entry, row.method, row.inputs) for row in rows] == [
            ("four", "Four", ("train", "truth")),
            ("three", "Three, again", ("val", "video", "train")),
        ]

    def test_a_line_stands_under_each_of_its_names(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def named(self: Tiny, line: Line) -> list[Line]:
            return [replace(line, method=f"{line.method} {name}") for name in "ba"]

        monkeypatch.setattr(Tiny, "named", named)
        line = {"entry": "three", "method": "Three", "modality": "V+L", "setting": "baseline"}
        rows = table_rows(tiny(tmp_path, one_table(lines=[line]), **FIRST), "table1")
        assert [(row.method, row.modality, row.setting) for row in rows] == [
            (f"Three {name}", "V+L", "baseline") for name in "ba"
        ]

    def test_a_line_that_the_configuration_renames_is_beyond_the_papers(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, entries={"four": {"method": "4"}}, **FIRST)
        rows = table_rows(made, "table2")
        assert {row.method: row.protocol for row in rows} == {"4": "beyond", "Three, again": "paper"}

    def test_a_reference_is_the_papers_number(self, tmp_path: Path) -> None:
        write_text(tmp_path / "paper/table1.csv", f"{PAPER}1,People,,reference,,error,test,first,0.5,,1,,,,\n")
        found = by_line(table_rows(tiny(tmp_path, **FIRST), "table1"))
        row = found["people", "error"]
        assert (row.status, row.value, row.needs) == ("reference", 0.5, ())

    def test_a_line_shows_its_job_at_another_window(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Tiny, "contexts", lambda self, table, line: [(60, None), (180, None)])
        made = tiny(tmp_path, one_table(lines=[{"entry": "three", "method": "Three"}]), **FIRST)
        compute(made, "table1")
        assert [(row.context_s, row.value) for row in table_rows(made, "table1")] == [(60, 2.5), (180, 2.5)]


class TestMissing:
    def test_what_is_missing_has_its_needs_and_a_command(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, **FIRST)
        row = by_line(table_rows(made, "table1"))["fitted", "error"]
        assert (row.status, row.value, row.needs) == ("needs", None, (Need("features", "net/first"),))
        assert row.command == (
            "stepline bank import FOLDER --name net --dataset first --hop-s 1 && "
            "snakemake --cores 8 results/tiny/table1.csv"
        )

    def test_a_metric_that_is_missing_something_alone_has_no_number(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, metrics={"within": 0}, **FIRST)
        compute(made, "table1")
        found = by_line(table_rows(made, "table1"))
        assert found["drawn", "error"].value == 3.5
        assert found["drawn", "near"].needs == (Need("config", "tiny.metrics.within", "1"),)
        assert found["drawn", "near"].command.endswith("--config 'tiny={metrics: {within: 1}}'")

    def test_a_score_that_no_job_of_this_run_made_waits_for_the_next(self, tmp_path: Path) -> None:
        row = by_line(table_rows(tiny(tmp_path, **FIRST), "table1"))["three", "error"]
        assert (row.needs, row.command) == ((Need("score", "three"),), "snakemake --cores 8 results/tiny/table1.csv")

    def test_what_turned_out_to_be_missing_is_needed(self, tmp_path: Path) -> None:
        content = one_table(lines=[{"entry": "asking", "method": "A"}])
        content["entries"]["asking"] = {"kind": "asking"}
        made = tiny(tmp_path, content, **FIRST)
        compute(made, "table1")
        (row,) = table_rows(made, "table1")
        assert (row.status, row.needs) == ("needs", (Need("key", "TINY_KEY"),))
        assert row.command.startswith("export TINY_KEY=... && ")

    def test_a_metric_without_a_value_in_a_score_needs_what_the_benchmark_says(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unscored(self: Tiny, entry: Entry, release: str, metric: str) -> list[Need]:
            return [Need("weights", f"{entry.id}.{release}.{metric}")]

        monkeypatch.setattr(Tiny, "unscored", unscored)
        measured = {"error": {"value": 2.0, "seeds": []}}
        found = {"needs": [], "status": "present", "selection": "", "metrics": measured}
        write_json(paths.scores("tiny", "first", "drawn", "all"), found)
        rows = by_line(table_rows(tiny(tmp_path, **FIRST), "table1"))
        assert (rows["drawn", "error"].value, rows["drawn", "error"].needs) == (2.0, ())
        assert (rows["drawn", "near"].value, rows["drawn", "near"].needs) == (
            None,
            (Need("weights", "drawn.first.near"),),
        )

    def test_counts_of_an_absent_release_need_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def counted(self: Tiny, entry: Entry, release: str) -> None:
            raise UnavailableError(Need("release", f"tiny/{release}"), Need("labels", f"tiny/{entry.id}"))

        monkeypatch.setattr(Tiny, "counted", counted)
        made = tiny(tmp_path, one_table(metrics=["n"], lines=[{"entry": "people", "method": "P"}]), **FIRST)
        (row,) = table_rows(made, "table1")
        assert (row.status, row.note) == ("needs", "needs release:tiny/first, labels:tiny/people; numbers are whole")

    def test_a_damaged_score_is_one_line(self, tmp_path: Path) -> None:
        write_text(paths.scores("tiny", "first", "three", "all"), "[]")
        with pytest.raises(StoreError, match=r"three/all.json is not a score: remove it"):
            table_rows(tiny(tmp_path, **FIRST), "table1")

    def test_a_score_without_a_number_that_the_table_asks_for_is_one_line(self, tmp_path: Path) -> None:
        write_text(tmp_path / "paper/table1.csv", f"{PAPER}1,Three,,baseline,,error,test,first,0.5,,1,,,,\n")
        score = {"needs": [], "status": "present", "metrics": {}, "selection": ""}
        write_json(paths.scores("tiny", "first", "three", "all"), score)
        with pytest.raises(StoreError, match="the scores of entry 'three' on first have no 'error': score it again"):
            table_rows(tiny(tmp_path, **FIRST), "table1")


class TestCompared:
    @pytest.fixture(autouse=True)
    def _paper(self, tmp_path: Path) -> None:
        write_text(tmp_path / "paper/table1.csv", f"{PAPER}1,Drawn,,,,near,test,first,25.0,,1,,,,\n")

    def near(self, folder: Path, **options: Any) -> Row:
        made = tiny(folder, **FIRST | options)
        compute(made, "table1")
        return by_line(table_rows(made, "table1"))["drawn", "near"]

    def test_the_published_option_is_compared_and_another_is_not(self, tmp_path: Path) -> None:
        assert self.near(tmp_path).status == "exact"
        row = self.near(tmp_path, metrics={"within": 2})
        assert row.status == "not comparable"
        assert "within=2 (published: 1)" in row.note

    @pytest.mark.parametrize(
        ("published", "within", "status", "note"),
        [
            ({"within": 2}, 1, "not comparable", "within=1 (published: 2)"),
            ({"within": 2}, 2, "differs", "selection: guessed"),
            ({}, 2, "not comparable", "within=2 (default: 1)"),
            ({}, 1, "exact", "selection: guessed"),
        ],
    )
    def test_where_the_paper_states_no_option_it_is_the_default(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any, within: int, status: str, note: str
    ) -> None:
        monkeypatch.setattr(Tiny, "published", published)
        row = self.near(tmp_path, metrics={"within": within})
        assert (row.status, row.note.partition(";")[0]) == (status, note)

    def test_a_subset_is_named(self, tmp_path: Path) -> None:
        row = self.near(tmp_path, subset={"fraction": 0.5, "seed": 0})
        assert (row.status, row.n_videos, row.n_listed) == ("not comparable", 1, 2)
        assert "subset: 0.5 of each split, seed 0" in row.note

    def test_another_release_is_not(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Tiny, "paper_release", "second")
        assert self.near(tmp_path).status == "not comparable"


def test_an_option_of_training_stands_beside_features(tmp_path: Path) -> None:
    row = by_line(table_rows(tiny(tmp_path, head={"epochs": 5}, **FIRST), "table1"))["fitted", "near"]
    assert row.options_text == "epochs=5;features=net;within=1"


def test_the_blind_baseline_is_that_of_the_same_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blind = {("three", "error"): "drawn"}
    monkeypatch.setattr(Tiny, "blind", lambda self, entry, metric: blind.get((entry.id, metric), ""))
    paper = [f"1,Three,,,{context},error,test,first,2.4,,1,0.5,a rerun,,\n" for context in (60, 180)]
    write_text(tmp_path / "paper/table1.csv", "".join([PAPER, *paper]))
    lines = [{"entry": name, "method": name.title(), "contexts": [180, 60]} for name in ("drawn", "three")]
    for entry, context, value in (("three", 60, 2.5), ("drawn", 60, 9.0), ("three", 180, 2.6), ("drawn", 180, 2.5)):
        measured = {"error": {"value": value, "seeds": [], "n_videos": 2, "n_listed": 2}}
        found = {"needs": [], "status": "present", "selection": "", "metrics": measured}
        write_json(paths.scores("tiny", "first", entry, f"{context}s"), found)
    rows = table_rows(tiny(tmp_path, one_table(lines=lines), **FIRST), "table1")
    assert [(row.context_s, row.status, row.note.partition(", ")[0]) for row in rows if row.printed] == [
        (60, "within", "tolerance ±0.5: a rerun; Drawn scores 9.00"),
        (180, "inconclusive", "tolerance ±0.5: a rerun; Drawn scores 2.50"),
    ]


def test_files_of_others_are_named_beside_the_number(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    write_banks(tmp_path_factory.mktemp("banks"))
    row = by_line(table_rows(tiny(tmp_path, **FIRST), "table1"))["fitted", "error"]
    assert row.needs == (Need("score", "fitted"),)
    assert "imported files: features/net/imported-" in row.note


def test_the_file_has_the_entry_of_each_line(tmp_path: Path) -> None:
    made = tiny(tmp_path, declared(reference="tiny24"))
    compute(made, "table1")
    write_table(made, "table1")
    with open("results/tiny/table1.csv", newline="") as file:
        assert [row["entry"] for row in csv.DictReader(file)][:3] == ["three", "drawn", "drawn"]
    text = Path("results/tiny/table1.md").read_text()
    assert text.startswith("# Tiny [@tiny24]: Table 1\n")
    assert "## Table 1: Guesses, release second" in text
