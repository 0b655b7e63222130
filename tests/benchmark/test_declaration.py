from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stepline.benchmark import Entry, Line, Option
from stepline.errors import ConfigError
from tests.benchmark.tiny import declared, tiny

THREE = {"kind": "constant", "settings": {"number": 3}, "method": "Three"}
LINE = {"entry": "three", "method": "Three"}


@dataclass(frozen=True, kw_only=True)
class Placed(Entry):
    """An entry that knows its table."""

    table: str = ""


def wrong(folder: Path, content: dict[str, Any] | None = None, **options: Any) -> str:
    """Return the error of a declaration without the name of the file that it begins with."""
    made = tiny(folder, content or declared(), **options)
    with pytest.raises(ConfigError) as error:
        _ = made.declared
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix(f"{folder}/")


def table(**changes: Any) -> dict[str, Any]:
    """Return the declaration with another first table, of one line unless ``changes`` say more."""
    return declared(tables={"table1": {"title": "T", "metrics": ["error"], "lines": [LINE]} | changes})


def entry(**content: Any) -> dict[str, Any]:
    return declared(entries={"three": {"kind": "constant", "settings": {"number": 3}} | content})


class TestTables:
    def test_lines_have_the_releases_of_their_table_or_their_own(self, tmp_path: Path) -> None:
        first, second = tiny(tmp_path).declared.tables
        assert (first.name, first.file, first.title, first.metrics) == ("1", "table1", "Guesses", ("error", "near"))
        assert [line.entry for line in first.lines] == ["three", "drawn", "fitted", "people"]
        assert [line.releases for line in first.lines[:2]] == [("first", "second"), ("first",)]
        assert first.lines[0].setting == "baseline"
        assert second.lines == (
            Line(entry="four", method="Four", note="an entry with its line"),
            Line(entry="three", method="Three, again"),
        )

    def test_a_table_may_stand_in_a_file_of_another_name(self, tmp_path: Path) -> None:
        other = {"title": "T", "metrics": ["n"], "target": "table1", "task": "counting"}
        made = tiny(tmp_path, declared(tables={"1b": other}))
        assert [each.task for each in made.declared.tables] == ["", "", "counting"]
        assert [(each.name, each.file) for each in made.declared.tables] == [
            ("1", "table1"),
            ("2", "table2"),
            ("1b", "table1"),
        ]
        assert made.all_tables() == ["table1", "table2"]
        assert made.table_title("table1") == "Guesses; T"

    def test_the_line_of_an_entry_may_stand_in_the_file_of_another_table(self, tmp_path: Path) -> None:
        moved = {"table": "table1", "same_as": "four", "target": "table2"}
        tables = tiny(tmp_path, declared(entries={"again": moved})).declared.tables
        assert [(each.name, each.file) for each in tables] == [("1", "table1"), ("2", "table2"), ("1", "table2")]
        assert [line.entry for line in tables[-1].lines] == ["four"]
        assert "four" not in [line.entry for line in tables[0].lines]

    @pytest.mark.parametrize(
        ("changes", "line"),
        [
            ({"metrics": ["eror"]}, "metrics[0]: 'eror' is not allowed; choose from error, near, n"),
            ({"metrics": "error"}, "metrics: 'error' is not allowed; write a list"),
            ({"title": 5}, "title: 5 is not allowed; write text: put it in quotes"),
            (
                {"titel": "x"},
                "titel: unknown key; did you mean 'title'? allowed: lines, metrics, releases, target, task, title",
            ),
            ({"lines": [5]}, "lines[0]: 5 is not allowed; write keys with values"),
            (
                {"lines": [LINE | {"entry": "tree"}]},
                "lines[0].entry: 'tree' is not allowed; choose from three, drawn, ",
            ),
            ({"lines": [LINE, {"entry": "drawn"}]}, "lines[1].method: it is required"),
            (
                {"lines": [LINE | {"releases": ["third"]}]},
                "lines[0].releases[0]: 'third' is not allowed; choose from first",
            ),
            (
                {"lines": [LINE | {"notes": "x"}]},
                "lines[0].notes: unknown key; did you mean 'note'? allowed: contexts, ",
            ),
            ({"lines": [LINE | {"method": 3}]}, "lines[0].method: 3 is not allowed; write text: put it in quotes"),
            (
                {"lines": [LINE | {"contexts": [True]}]},
                "lines[0].contexts[0]: true is not allowed; write a number, or null",
            ),
            ({"releases": ["frist"]}, "releases[0]: 'frist' is not allowed; choose from first, second"),
        ],
    )
    def test_a_mistake_is_one_line(self, tmp_path: Path, changes: dict[str, Any], line: str) -> None:
        assert wrong(tmp_path, table(**changes)).startswith(f"tables.yaml: tables.table1.{line}")

    @pytest.mark.parametrize("key", ["title", "metrics"])
    def test_a_table_has_a_title_and_metrics(self, tmp_path: Path, key: str) -> None:
        content = table()
        del content["tables"]["table1"][key]
        assert wrong(tmp_path, content) == f"tables.yaml: tables.table1.{key}: it is required"


class TestEntries:
    def test_seeds_are_those_of_the_training_or_its_own(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, head={"seeds": [7]}).entries
        assert {name: each.seeds for name, each in made.items() if each.seeds != (0,)} == {
            "drawn": (1, 2),
            "fitted": (7,),
        }

    def test_a_setting_may_be_left_out_where_its_kind_says_so(self, tmp_path: Path) -> None:
        made = tiny(tmp_path).entries
        assert [*made] == ["three", "drawn", "fitted", "people", "four"]
        assert made["three"].settings == {"number": 3}
        assert made["four"].sees == ("train", "truth")

    def test_the_split_of_its_numbers_names_all_that_it_is_evaluated_on(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, entries={"drawn": {"splits": ["val", "test"]}})
        assert [made.split(made.entries[name], "error") for name in ("drawn", "three")] == ["val+test", "test"]

    @pytest.mark.parametrize(
        ("content", "line"),
        [
            (
                {"kind": "konstant"},
                "kind: 'konstant' is not allowed; choose from constant, drawn, fitted, heard, asking, people",
            ),
            ({"kind": None}, "kind: null is not allowed; choose from constant, "),
            (
                {"kin": "constant"},
                "kin: unknown key; did you mean 'kind'? allowed: contexts, features, inputs, kind, ",
            ),
            ({"inputs": ["moon"]}, "inputs: 'moon' is not allowed; choose from video, speech, train, val, truth"),
            ({"inputs": "video"}, "inputs: 'video' is not allowed; write a list, such as inputs: [video]"),
            ({"features": "nett"}, "features: 'nett' is not allowed; choose from net"),
            ({"splits": ["tests"]}, "splits[0]: 'tests' is not allowed; choose from train, val, test"),
            ({"splits": []}, "splits: [] is not allowed; write a list of at least 1 value, such as splits: [train]"),
            ({"method": "Three"}, "method: not allowed without table: it names a line"),
            ({"seeds": [1]}, "seeds: [1] is not allowed; it draws nothing"),
            ({"kind": "fitted", "settings": {}, "seeds": [1]}, "seeds: [1] is not allowed; its seeds are `head.seeds`"),
            ({"settings": []}, "settings: [] is not allowed; write keys with values, such as settings: {number: 1}"),
            ({"settings": {}}, "settings.number: it is required"),
            (
                {"settings": {"number": True}},
                "settings.number: true is not allowed; write a whole number of at least 1",
            ),
            ({"settings": {"number": 0}}, "settings.number: 0 is not allowed; write a whole number of at least 1"),
            ({"settings": {"number": 3, "nr": 1}}, "settings.nr: unknown key; allowed: like, look, number"),
            ({"settings": {"number": 3, "look": "up"}}, "settings.look: 'up' is not allowed; choose from no, yes"),
            (
                {"settings": {"number": 3, "like": "x"}},
                "settings.like: 'x' is not allowed; choose from three, drawn, fit",
            ),
            (
                {"settings": {"number": 3, "like": "three-again"}},
                "settings.like: 'three-again' is not allowed; choose fr",
            ),
        ],
    )
    def test_a_mistake_is_one_line(self, tmp_path: Path, content: dict[str, Any], line: str) -> None:
        assert wrong(tmp_path, entry(**content)).startswith(f"tables.yaml: entries.three.{line}")

    @pytest.mark.parametrize(
        ("seeds", "line"),
        [
            ([], ": [] is not allowed; write a list of at least 1 value, such as seeds: [0]"),
            ([1, 1], ": [1, 1] contains a value twice; keep one"),
            ([-1], "[0]: -1 is not allowed; write a whole number of at least 0"),
            ([1.5], "[0]: 1.5 is not allowed; write a whole number of at least 0"),
        ],
    )
    def test_seeds_are_different_numbers(self, tmp_path: Path, seeds: list[int], line: str) -> None:
        content = declared(entries={"drawn": {"kind": "drawn", "seeds": seeds}})
        assert wrong(tmp_path, content) == f"tables.yaml: entries.drawn.seeds{line}"

    def test_an_id_may_hold_dots(self, tmp_path: Path) -> None:
        content = declared(entries={"gpt-3.5": {"kind": "constant"}})
        assert wrong(tmp_path, content) == ("tables.yaml: entries.gpt-3.5.settings.number: it is required")

    def test_its_line_is_checked_too(self, tmp_path: Path) -> None:
        assert wrong(tmp_path / "1", entry(table="table2")) == "tables.yaml: entries.three.method: it is required"
        assert wrong(tmp_path / "2", entry(table="table2", method="3", releases=["x"])).startswith(
            "tables.yaml: entries.three.releases[0]: 'x' is not allowed; choose from first, second"
        )
        assert wrong(tmp_path / "3", entry(table="table9", method="3")) == (
            "tables.yaml: entries.three.table: 'table9' is not allowed; choose from table1, table2"
        )


class TestConfigured:
    def test_settings_merge_by_key_and_other_fields_are_replaced(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, entries={"four": {"settings": {"number": 5}, "method": "Five"}, "drawn": {"seeds": [4]}})
        assert made.entries["four"].settings == {"number": 5, "look": "yes"}
        assert made.entries["drawn"].seeds == (4,)
        assert [line.method for line in made.declared.tables[1].lines] == ["Five", "Three, again"]
        other = tiny(tmp_path, entries={"four": {"kind": "heard", "settings": {"number": 5}}})
        assert other.entries["four"].settings == {"number": 5}, "another kind has settings of its own"

    def test_an_entry_is_added_with_its_line(self, tmp_path: Path) -> None:
        new = {
            "kind": "constant",
            "settings": {"number": 9},
            "table": "table1",
            "method": "Nine",
            "releases": ["first"],
        }
        made = tiny(tmp_path, entries={"nine": new})
        line = made.declared.tables[0].lines[-1]
        assert (line.entry, line.method, line.releases) == ("nine", "Nine", ("first",))
        assert ("nine", "first") in made.pairs()
        assert ("nine", "second") not in made.pairs()

    @pytest.mark.parametrize(
        ("content", "line"),
        [
            (
                {"kind": "konstant", "table": "table1", "method": "N"},
                "kind: 'konstant' is not allowed; choose from const",
            ),
            ({"kind": "drawn"}, "table: it is required"),
            ({"kind": "drawn", "table": "table1"}, "method: it is required"),
            (
                {"kind": "drawn", "table": "table1", "method": "N", "sedes": [1]},
                "sedes: unknown key; did you mean 'seeds'? allowed: contexts",
            ),
            ({"table": "table1", "method": "N"}, "kind: it is required"),
        ],
    )
    def test_a_mistake_names_the_configuration(self, tmp_path: Path, content: dict[str, Any], line: str) -> None:
        assert wrong(tmp_path, entries={"new": content}).startswith(f"config: tiny.entries.new.{line}")

    def test_a_change_of_a_declared_entry_too(self, tmp_path: Path) -> None:
        assert wrong(tmp_path, entries={"drawn": {"seeds": [1, 1]}}).startswith(
            "config: tiny.entries.drawn.seeds: [1, 1] contains a value twice; keep one"
        )

    @pytest.mark.parametrize(
        ("changes", "protocol"),
        [
            ({}, "paper"),
            ({"note": "another"}, "paper"),
            ({"settings": {"number": 5}}, "paper"),
            ({"method": "Three"}, "beyond"),
            ({"setting": "baseline"}, "beyond"),
            ({"modality": "V"}, "beyond"),
            ({"table": "table1"}, "beyond"),
        ],
    )
    def test_a_line_that_it_names_otherwise_is_not_the_papers(
        self, tmp_path: Path, changes: dict[str, Any], protocol: str
    ) -> None:
        made = tiny(tmp_path, entries={"four": changes})
        note = changes.get("note", "an entry with its line")
        assert {(line.protocol, line.note) for _, line, _ in made.lines() if line.entry == "four"} == {(protocol, note)}

    def test_a_line_that_it_gives_to_another_entry_is_not_the_papers(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, entries={"three-again": {"same_as": "four"}})
        named = {(line.entry, line.protocol) for _, line, _ in made.lines() if line.method == "Three, again"}
        assert named == {("four", "beyond")}

    def test_a_line_that_it_adds_is_not_the_papers(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, entries={"again": {"table": "table1", "same_as": "four", "protocol": "paper"}})
        assert {line.protocol for table, line, _ in made.lines("table1") if line.entry == "four"} == {"beyond"}

    def test_what_it_changes_of_an_entry_is_an_option(self, tmp_path: Path) -> None:
        four = {"settings": {"number": 5}, "inputs": ["truth"], "method": "Five"}
        made = tiny(tmp_path, entries={"four": four, "drawn": {"seeds": [7], "splits": ["val"]}})

        def named(entry: str) -> dict[str, Option]:
            return dict(made.named_options(made.entries[entry], "first"))

        assert named("four") == {"number": Option(5, 4)}
        assert named("drawn") == {"seeds": Option((7,), (1, 2)), "splits": Option(("val",), ("test",))}
        assert named("three") == {}

    def test_seeds_of_another_kind_are_no_other_option(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, entries={"three": {"kind": "fitted", "settings": {}}})
        found = made.named_options(made.entries["three"], "first")
        assert found == {"kind": Option("fitted", "constant"), "number": Option(None, 3)}


class TestSameAs:
    def test_it_is_another_line_of_one_entry(self, tmp_path: Path) -> None:
        content = declared(entries={"again": {"table": "table1", "same_as": "four", "releases": ["first"]}})
        content["entries"]["four"]["contexts"] = [60]
        made = tiny(tmp_path, content)
        assert "again" not in made.entries
        line = made.declared.tables[0].lines[-1]
        assert (line.entry, line.method, line.note) == ("four", "Four", "an entry with its line")
        assert (line.releases, line.contexts) == (("first",), (None,))
        changed = tiny(tmp_path / "changed", content, entries={"four": {"method": "Five"}})
        assert changed.declared.tables[0].lines[-1].method == "Five"

    @pytest.mark.parametrize(
        ("content", "line"),
        [
            ({"same_as": "x"}, "same_as: 'x' is not allowed; choose from three, drawn, fitted, people, four"),
            ({"same_as": "three-again"}, "same_as: 'three-again' is not allowed; choose from three, drawn, "),
            ({"same_as": "four", "settings": {}}, "settings: not allowed beside same_as; change four"),
            ({"same_as": "drawn"}, "method: it is required"),
        ],
    )
    def test_a_mistake_is_one_line(self, tmp_path: Path, content: dict[str, Any], line: str) -> None:
        new = {"table": "table1"} | content
        assert wrong(tmp_path, declared(entries={"again": new})).startswith(f"tables.yaml: entries.again.{line}")


def test_a_table_that_an_entry_has_as_a_field_of_its_own_is_known_too(tmp_path: Path) -> None:
    tables = {**declared()["tables"], "table1": {"title": "T", "metrics": ["error"], "lines": []}}
    made = tiny(tmp_path, declared(entries={"three": THREE | {"table": "table9"}}) | {"tables": tables})
    type(made).entry = Placed
    with pytest.raises(ConfigError, match="entries.three.table: 'table9' is not allowed; choose from table1, table2$"):
        _ = made.declared
