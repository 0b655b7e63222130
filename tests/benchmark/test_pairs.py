"""Which pairs are asked for, what they are compared by, and what makes them again."""

from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.benchmark import pairs
from stepline.errors import ConfigError
from tests.benchmark.tiny import Tiny, declared, tiny, write_releases

THREE, DRAWN, FOUR = ["three", None], ["drawn", None], ["four", None]


def planned(folder: Path, *asked: list[Any], **options: Any) -> Tiny:
    return tiny(folder, declared(pairs=list(asked)), **options)


def found(benchmark: Tiny) -> list[tuple[str, ...]]:
    return [
        (one.job.release, one.job.entry.id, one.job.context, other.job.entry.id, other.job.context)
        for one, other in pairs.pairs(benchmark)
    ]


def test_a_pair_stands_on_each_release_that_shows_both_in_configured_tables(tmp_path: Path) -> None:
    asked = [THREE + FOUR, THREE + DRAWN]
    assert found(planned(tmp_path / "all", *asked)) == [
        ("first", "three", "all", "four", "all"),
        ("second", "three", "all", "four", "all"),
        ("first", "three", "all", "drawn", "all"),
    ]
    assert found(planned(tmp_path / "one", *asked, tables=["table1"])) == [("first", "three", "all", "drawn", "all")]
    assert found(planned(tmp_path / "second", *asked, releases=["second"])) == [
        ("second", "three", "all", "four", "all")
    ]


def test_a_pair_stands_where_both_have_jobs_at_these_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def contexts(self: Tiny, table: Any, line: Any) -> list[tuple[float, float | None]]:
        return [(each, None if line.entry == "drawn" else each) for each in (60.0, 180.0)]

    monkeypatch.setattr(Tiny, "contexts", contexts)
    asked = ["three", 60, "three", 180], ["three", 180, "drawn", None], ["three", 60, "drawn", 60], THREE + DRAWN
    assert found(planned(tmp_path, *asked, releases=["first"])) == [
        ("first", "three", "60s", "three", "180s"),
        ("first", "three", "180s", "drawn", "all"),
    ]


def test_a_side_is_the_first_line_that_shows_the_job(tmp_path: Path) -> None:
    ((one, other),) = pairs.pairs(planned(tmp_path, THREE + FOUR, releases=["first"]))
    assert (one.table.name, one.line.method) == ("1", "Three")
    assert (other.table.name, other.line.method) == ("2", "Four")


def test_scores_are_read_of_sides_that_can_be_computed(tmp_path: Path) -> None:
    write_releases()
    made = planned(tmp_path, THREE + DRAWN, ["three", None, "fitted", None], releases=["first"])
    assert pairs.inputs(made) == [paths.scores("tiny", "first", entry, "all") for entry in ("three", "drawn")]


def test_pairs_are_made_again_for_metrics_and_what_is_missing(tmp_path: Path) -> None:
    asked = ["three", None, "fitted", None]
    before = pairs.params(planned(tmp_path / "a", asked))
    assert before == pairs.params(planned(tmp_path / "b", asked, head={"epochs": 9}))
    assert before != pairs.params(planned(tmp_path / "c", asked, metrics={"bootstrap_seed": 9}))
    assert before != pairs.params(planned(tmp_path / "d", asked, features={"net": ["histogram"]}))
    renamed, moved = declared(pairs=[asked]), declared(pairs=[asked])
    renamed["tables"]["table1"]["lines"][0]["method"] = "3"
    first, second = moved["tables"].values()
    moved["tables"] = {"table9": first | {"target": "table1"}, "table2": second}
    assert len({before, *(pairs.params(tiny(tmp_path / str(n), each)) for n, each in enumerate((renamed, moved)))}) == 3


def test_pairs_are_made_again_for_other_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tiny, "contexts", lambda self, table, line: [(each, each) for each in (60.0, 180.0)])
    sides = ["three", 60], ["three", 180]
    made = [planned(tmp_path / str(place), sides[place] + sides[1 - place]) for place in range(2)]
    assert len({*map(pairs.params, made)}) == 2


@pytest.mark.parametrize(
    ("pair", "line"),
    [
        (["tree", None, *THREE], "pairs[0][0]: 'tree' is not allowed; choose from three, drawn, fitted, four"),
        ([*THREE, "people", None], "pairs[0][2]: 'people' is not allowed; choose from three, drawn, fitted, four"),
        (["three", "drawn"], "pairs[0]: ['three', 'drawn'] is not allowed; write a list of 4 values"),
        (["three", "60", *DRAWN], "pairs[0][1]: '60' is not allowed; write a number, or null"),
    ],
)
def test_what_no_pair_can_be_is_one_line(tmp_path: Path, pair: list[Any], line: str) -> None:
    with pytest.raises(ConfigError) as error:
        _ = planned(tmp_path, pair).declared
    assert str(error.value).partition(": ")[2].startswith(line)
