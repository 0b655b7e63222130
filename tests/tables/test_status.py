"""Every status by its rule."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepline import tables
from stepline.benchmark.words import Option
from stepline.needs import Need
from tests.tables.numbers import PAPER, build, number, row, score

VALUES = {
    "exact": [11.22, 11.2249, 11.2151, 11.215],
    "within": [12.22, 10.22, 11.2251],
    "differs": [12.23, 10.21],
}


@pytest.mark.parametrize(("status", "values"), VALUES.items())
def test_the_printed_digits_and_then_the_tolerance_decide(paper: Path, status: str, values: list[float]) -> None:
    for value in values:
        found = row(paper, score=score(value))
        assert found.status == status
        assert found.difference == pytest.approx(value - 11.22)
        assert ("±1: a rerun" in found.note) == (status != "exact")


@pytest.mark.parametrize(("value", "text"), [(11.2249, "0.00"), (11.2151, "0.00"), (11.23, "+0.01"), (11.21, "-0.01")])
def test_a_difference_that_rounds_to_zero_has_no_sign(paper: Path, value: float, text: str) -> None:
    assert tables.lines([row(paper, score=score(value))])[0].difference == text


@pytest.mark.parametrize(
    ("value", "status"), [(0.7, "within"), (0.9, "within"), (0.6999, "differs"), (0.9001, "differs")]
)
def test_errors_of_floats_do_not_decide_at_the_tolerance(tmp_path: Path, value: float, status: str) -> None:
    path = tmp_path / "paper.csv"
    path.write_text(PAPER.replace("11.22,,2,1,a rerun", "0.80,,2,0.1,a rerun"))
    assert row(path, score=score(value)).status == status


def test_a_number_without_a_tolerance_differs_and_one_that_the_paper_does_not_have_is_ours(paper: Path) -> None:
    found = row(paper, context_s=180.0, score=score(12.40))
    assert (found.status, round(found.difference or 0, 2), found.note) == ("differs", 0.01, "")
    found = row(paper, context_s=30.0)
    assert (found.status, found.paper, found.difference) == ("ours", None, None)
    assert row(paper, context_s=30.0, subset="0.5 of the videos").note == "subset: 0.5 of the videos"


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"release": "v1"}, "release v1, the paper's numbers are for v0"),
        ({"split": "val"}, "split val, the paper's number is for test"),
        ({"subset": "2 videos"}, "subset: 2 videos"),
        ({"score": score(n_videos=5)}, "videos: 5 of 6 evaluated"),
        ({"score": score(pool_used=9, pool_listed=10)}, "pool: 9 of 10 evaluated"),
        ({"score": score(n_queries=9, queries_listed=10)}, "queries: 9 of 10 evaluated"),
        ({"score": score(n_in_part=2, absent_s=3.44)}, "videos: 2 partly read, 3.4 s missing"),
        ({"protocol": "beyond"}, "protocol beyond the paper's"),
        (
            {"options": {"transcripts": Option("asr", "released"), "k": Option(1, 1)}},
            "transcripts=asr (published: released)",
        ),
        ({"options": {"k": Option(0.5, 1.0)}}, "k=0.5 (published: 1)"),
        ({"options": {"k": Option([1.0, 2], (1.0,)), "b": Option(3, 2)}}, "b=3 (published: 2); k=1,2 (published: 1)"),
        ({"options": {"k": Option(None, False, said=False)}}, "k= (default: false)"),
    ],
)
def test_what_is_not_comparable_says_why_and_has_no_difference(paper: Path, changes: Any, note: str) -> None:
    found = row(paper, **changes)
    assert (found.status, found.difference) == ("not comparable", None)
    assert found.paper == 11.22
    assert note in found.note


def test_what_the_paper_says_nothing_of_is_comparable_on_any_release_and_by_an_options_default_alone(
    paper: Path,
) -> None:
    found = row(paper, options={"normalise": Option("block", "block", said=False), "b": Option(True, True)})
    assert (found.status, found.options_text) == ("exact", "b=true;normalise=block")
    assert row(paper, release="v1", paper_release="").status == "exact"
    changed = row(paper, options={"normalise": Option("none", "block", said=False)})
    assert (changed.status, changed.note) == ("not comparable", "normalise=none (default: block)")


@pytest.mark.parametrize("absent", [None, score(None, metrics={}, status="needs", needs=["weights:x", "videos:y"])])
def test_a_line_without_a_value_needs_something_and_names_the_command(paper: Path, absent: Any) -> None:
    found = row(
        paper, score=absent, needs=(Need("weights", "x"), Need("videos", "y")), command="stepline fetch weights/x"
    )
    assert (found.status, found.value, found.difference) == ("needs", None, None)
    assert (found.note, found.command) == ("needs weights:x, videos:y", "stepline fetch weights/x")
    assert row(paper, command="stepline fetch weights/x").command == "", "a line with a value has no command"
    found = row(paper, score=absent, needs=(Need("weights", "x"), Need("predictions", "m")))
    assert found.note == "no method here; needs weights:x, predictions:m"


def test_our_own_line_without_a_value_stays_with_what_it_needs(paper: Path) -> None:
    absent = score(None, metrics={}, status="needs", needs=["videos:y"])
    found = row(paper, context_s=30.0, score=absent, needs=(Need("videos", "y"),), command="stepline fetch y/videos")
    assert (found.status, found.printed, found.needs, found.seeds) == ("needs", "", (Need("videos", "y"),), ())


def test_a_number_that_cannot_be_right_is_inconsistent_with_its_evidence(paper: Path) -> None:
    found = row(paper, method="Broken", score=score(99.0))
    assert (found.status, found.difference) == ("inconsistent", None)
    assert "more than all" in found.note
    found = row(paper, method="Broken", release="v1", score=score(99.0, n_videos=5))
    assert (found.status, found.note[-45:]) == (
        "inconsistent",
        "be right: more than all; videos: 5 of 6 evaluated"[-45:],
    )


def test_a_table_that_leaves_out_last_zeros_is_held_to_its_decimals(paper: Path) -> None:
    asked = {"table": "3b", "modality": "V", "setting": "last-layer"}
    assert row(paper, **asked, score=score(9.404)).status == "exact"
    found = row(paper, **asked, score=score(9.41))
    assert (found.status, found.rerun) == ("within", "9.81")
    assert found.note == "tolerance ±0.5: a rerun; copied by hand"


@pytest.mark.parametrize(("value", "status"), [(11.4, "exact"), (11.6, "differs")])
def test_a_table_that_states_no_decimals_has_whole_numbers(tmp_path: Path, value: float, status: str) -> None:
    path = tmp_path / "paper.csv"
    path.write_text(PAPER.replace("11.22,,2,1,a rerun", "11,,,,"))
    assert row(path, score=score(value)).status == status


def test_what_is_noted_of_a_number_that_is_not_known_stands_beside_ours(paper: Path) -> None:
    found = row(paper, table="3b", modality="V", context_s=180.0, score=score(8.0))
    assert (found.status, found.note) == ("ours", "damaged")


def test_halves_are_rounded_up_also_where_the_float_lies_below() -> None:
    assert tables.percent(12.965) == "12.97"
    assert tables.percent(12.974999999999998) == "12.98"
    assert tables.percent(12.974999) == "12.97"
    assert tables.percent(100 * 0.12975) == "12.98"


class TestBesideWhatSeesNothing:
    """Of the number 11.22 ± 1 where Random gets another value with another spread."""

    def row(self, paper: Path, value: float, random: float | None, **spread: Any) -> tables.Row:
        measured = {"value": random, "seeds": [], **spread}
        alone = {"metrics": {"accuracy": measured, "map": measured}} if random is not None else None
        asked = [
            number(blind="random", score=score(value)),
            number(entry="random", method="Random", modality="-", setting="baseline", blind="random", score=alone),
        ]
        return next(each for each in build(asked, paper) if each.entry == "minilm")

    @pytest.mark.parametrize(
        ("random", "spread", "status", "chance"),
        [
            (4.0, {}, "within", "0.00"),
            (10.3, {}, "inconclusive", "1.00"),
            (10.0, {}, "within", "0.00"),
            (9.5, {"draw_sd": 0.5}, "inconclusive", "0.07"),
            (9.0, {"draw_sd": 0.5}, "within", "0.01"),
            (9.34, {"draw_sd": 0.5}, "within", "0.04"),
            (9.0, {"sd": 0.5}, "within", "0.01"),
            (9.0, {"draw_sd": 1.0}, "inconclusive", "0.11"),
            (9.0, {"draw_sd": 1.0, "sd": 0.5}, "inconclusive", "0.11"),
            (9.0, {"draw_sd": 0.5, "sd": 1.0}, "inconclusive", "0.11"),
            (12.0, {"draw_sd": 1.0}, "inconclusive", "0.55"),
        ],
    )
    def test_a_tolerance_that_would_take_it_too_tells_nothing(
        self, paper: Path, random: float, spread: Any, status: str, chance: str
    ) -> None:
        found = self.row(paper, 11.3, random, **spread)
        assert found.status == status
        said = f"Random scores {random:.2f}, in this range with probability {chance}"
        assert found.note == f"tolerance ±1: a rerun; {said}"
        assert found.difference == pytest.approx(0.08)

    def test_what_rounds_to_the_printed_digits_is_exact_and_what_is_outside_differs(self, paper: Path) -> None:
        exact, outside = self.row(paper, 11.22, 11.2), self.row(paper, 13.0, 11.2)
        assert (exact.status, exact.note) == ("exact", "")
        assert (outside.status, outside.note[:42]) == ("differs", "tolerance ±1: a rerun; Random scores 11.20")

    def test_where_it_has_no_value_or_was_drawn_once_nothing_is_within(self, paper: Path) -> None:
        for found in (self.row(paper, 11.3, None), self.row(paper, 11.3, 10.0, seeds=[5])):
            assert found.status == "inconclusive"
            assert found.note == "tolerance ±1: a rerun; the score of Random is unknown"
        assert self.row(paper, 11.3, 9.0, seeds=[5], draw_sd=0.5).status == "within"

    @pytest.mark.parametrize(
        ("changes", "status"),
        [
            ({}, "within"),
            ({"split": "val"}, "inconclusive"),
            ({"context_s": 180.0}, "inconclusive"),
            ({"metric": "map"}, "inconclusive"),
            ({"release": "v1"}, "inconclusive"),
            ({"table": "2b"}, "inconclusive"),
            ({"options": {"order": Option("start", "start_end")}}, "inconclusive"),
            ({"options": {"order": Option("start", "start")}}, "within"),
        ],
    )
    def test_one_that_was_made_otherwise_is_not_known(self, paper: Path, changes: Any, status: str) -> None:
        measured = {"value": 4.0, "seeds": []}
        alone = {"metrics": {"accuracy": measured, "map": measured}}
        random = number(entry="random", method="Random", modality="-", setting="baseline", score=alone, **changes)
        found = build([number(blind="random", score=score(11.3)), random], paper)
        assert next(each.status for each in found if each.entry == "minilm") == status

    @pytest.mark.parametrize(
        "elsewhere", [{"context_s": 180.0}, {"release": "v1"}, {"split": "val"}, {"metric": "map"}, {"table": "3b"}]
    )
    def test_the_one_of_the_same_cell_counts_and_no_other(self, paper: Path, elsewhere: Any) -> None:
        random = number(entry="random", method="Random", modality="-", setting="baseline")
        one, other = ({name: {"value": value, "seeds": []} for name in ("accuracy", "map")} for value in (4.0, 11.0))
        asked = [
            replace(random, score={"metrics": one}),
            number(blind="random", score=score(11.3)),
            replace(random, score={"metrics": other}, **elsewhere),
        ]
        for numbers in (asked, asked[::-1]):
            found = next(each for each in build(numbers, paper) if each.entry == "minilm")
            assert (found.status, found.note[-50:]) == (
                "within",
                "Random scores 4.00, in this range with probability 0.00"[-50:],
            )

    def test_its_own_number_is_not_held_to_itself(self, paper: Path) -> None:
        found = row(paper, blind="minilm", score=score(11.3))
        assert (found.status, found.note) == ("within", "tolerance ±1: a rerun")

    def test_a_bound_that_it_keeps_tells_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "paper.csv"
        path.write_text(PAPER.replace("test,11.22,,2,1,a rerun", "test,<11.22,,2,,"))
        below = self.row(path, 11.0, 3.0)
        assert (below.status, below.difference) == ("inconclusive", None)
        assert below.note.startswith("the paper prints only a bound; Random scores 3.00")
        assert self.row(path, 11.0, 13.0).status == "within"
        assert self.row(path, -0.5, 13.0).status == "within"
        assert self.row(path, 11.22, 3.0).status == "differs"

    def test_the_lines_of_a_table_show_it(self, paper: Path) -> None:
        found = self.row(paper, 11.3, 9.0)
        assert tables.computed([found])[0][-1] == found.note
