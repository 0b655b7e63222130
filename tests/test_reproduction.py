"""The reproduction ledger lists every number that the papers print, and the README's totals are its own."""

import re
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import get_args

import pytest

from stepline.needs import NeedKind
from stepline.tables.paper import read_paper

ROOT = Path(__file__).parents[1]
_spec = spec_from_file_location("reproduction", ROOT / "docs/reproduction.py")
assert _spec is not None
assert _spec.loader is not None
reproduction = module_from_spec(_spec)
_spec.loader.exec_module(reproduction)
NUMBERS = reproduction.read()
PLANS = reproduction.PLANS
PRINTED = {
    "spacewalk": {
        "2a": [(1, 3), (2, 1), (9, 6)],
        "2b": [(1, 6), (2, 1), (9, 6)],
        "3a": [(3, 1)],
        "3b": [(4, 2)],
        "3c": [(3, 1)],
        "A1": [(18, 1)],
        "A5": [(16, 3)],
        "A6": [(4, 14)],
        "A7": [(3, 8), (1, 7)],  # of InternVideo's line one number is legible, and six are in Table 2b
        "A8": [(5, 14), (1, 10)],
    },
    "hirest": {"1": [(1, 8)], "2": [(17, 3)], "3": [(7, 2)], "4": [(5, 4)], "5": [(5, 6)], "6": [(4, 5)]},
    "htstep": {
        "1": [(6, 4)],
        "2": [(2, 4), (9, 8)],
        "3": [(11, 2)],
        "4": [(1, 2), (1, 4)],
        "5": [(10, 1)],
        "6": [(3, 2)],
        "7": [(51, 2)],
    },
    "oepp": {
        "1": [(1, 5)],
        "2": [(10, 6)],
        "3": [(6, 4)],
        "4": [(3, 9)],
        "5": [(4, 9)],
        "6": [(12, 6)],
        "7": [(5, 6)],
        "8": [(5, 4)],
        "9": [(43, 1)],
        "10": [(28, 1)],
    },
    "pss": {"1": [(6, 5)], "2": [(6, 2)], "3": [(6, 6)], "4": [(4, 8)]},
}
"""The numbers that each table of the papers prints, counted in the papers: groups of lines, each with its columns.

Without standard deviations, differences in brackets, and the lines of other data sets in the tables that compare data
sets. In Tables 9 and 10 of OEPP, the labels.
"""


@pytest.mark.parametrize("study", reproduction.PAPERS)
def test_every_printed_number_has_one_line(study):
    printed = Counter(
        (key.table, key.method, key.setting, key.metric, number.printed or number.rerun)
        for file in reproduction.PAPERS[study][1]
        for key, number in read_paper(PLANS[study].paper_file(file), PLANS[study].metrics).items()
        if number.printed or number.rerun
    )
    listed = Counter(
        (each.table, each.method, each.setting, each.metric, each.paper) for each in NUMBERS if each.study == study
    )
    assert printed - listed == Counter()


@pytest.mark.parametrize("study", reproduction.PAPERS)
def test_all_tables_with_printed_numbers_are_listed(study):
    files = {path.stem for path in (PLANS[study].folder / "paper").glob("*.csv")}
    tables = {number.table.rstrip("abc") for number in NUMBERS if number.study == study}
    assert {file.removeprefix("table").rstrip("abc") for file in files} == tables


@pytest.mark.parametrize("study", reproduction.PAPERS)
def test_the_ledger_has_as_many_printed_numbers_as_the_papers_tables(study):
    listed = Counter(each.table for each in NUMBERS if each.study == study and each.source == "printed")
    assert listed == {
        table: sum(rows * columns for rows, columns in groups) for table, groups in PRINTED[study].items()
    }


def test_what_is_not_printed_is_repeated_or_from_elsewhere():
    def cell(each):
        return each.study, each.table, each.method, each.setting, each.metric, each.split, each.paper

    others = Counter((each.study, each.table, each.source) for each in NUMBERS if each.source != "printed")
    assert others == {
        ("spacewalk", "3b", "elsewhere"): 6,
        **{("hirest", table, "repeated"): n for table, n in (("3", 2), ("4", 4), ("5", 6))},
        **{("hirest", table, "elsewhere"): n for table, n in (("2", 1), ("3", 2), ("4", 4), ("5", 7))},
        ("htstep", "2c", "elsewhere"): 1,
    }
    printed = {cell(each) for each in NUMBERS if each.source == "printed"}
    assert {cell(each) for each in NUMBERS if each.source == "repeated"} <= printed
    assert not {cell(each) for each in NUMBERS if each.source == "elsewhere"} & printed


def test_a_number_is_computed_where_its_status_says_so():
    for number in NUMBERS:
        assert (number.status in reproduction.COMPUTED) == bool(number.ours), number
        assert number.about == (reproduction.about(number) if number.ours else ""), number


def test_what_is_computed_is_of_the_data_set_or_of_blind_baselines():
    of = {about: {(each.study, each.table) for each in NUMBERS if each.about == about} for about in reproduction.ABOUT}
    assert of["statistics or labels"] == {
        *(("spacewalk", table) for table in ("A1", "A5")),
        *(("oepp", table) for table in ("1", "8", "9", "10")),
        ("hirest", "1"),
        ("htstep", "1"),
    }
    assert {each.method.partition(" ")[0] for each in NUMBERS if each.about == "blind baselines"} == {
        "Random",
        "Uniform",
    }
    assert of["methods"] == set()


def test_a_number_that_needs_something_names_it():
    named = re.compile(rf"(^|; )needs ({'|'.join(get_args(NeedKind))}):")
    assert [each for each in NUMBERS if each.status == "needs" and not named.search(each.evidence)] == []


def test_the_page_is_that_of_the_ledger():
    assert (ROOT / "docs/reproduction.md").read_text() == reproduction.page(NUMBERS)


def test_the_readme_has_its_totals():
    text = (ROOT / "README.md").read_text()
    for study, share in reproduction.shares(NUMBERS).items():
        assert re.findall(rf"<!-- {study} -->(.*?)<!-- /{study} -->", text) == [share]
