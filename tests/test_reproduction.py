"""The reproduction ledger lists every number that the papers print, once, and the README's totals are its own."""

import re
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from stepline.config import validate
from stepline.plans import BENCHMARKS
from stepline.tables.paper import read_paper

ROOT = Path(__file__).parents[1]
_spec = spec_from_file_location("reproduction", ROOT / "docs/reproduction.py")
assert _spec is not None
assert _spec.loader is not None
reproduction = module_from_spec(_spec)
_spec.loader.exec_module(reproduction)
NUMBERS = reproduction.read()
PLANS = {each.studies[0]: each.configured(validate({each.studies[0]: {}}), each.studies[0]) for each in BENCHMARKS}


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


def test_a_number_is_computed_where_its_status_says_so():
    for number in NUMBERS:
        assert (number.status in reproduction.COMPUTED) == bool(number.ours), number


def test_a_number_that_needs_something_names_it():
    assert [each for each in NUMBERS if each.status == "needs" and "needs " not in each.evidence] == []


def test_the_page_is_that_of_the_ledger():
    assert (ROOT / "docs/reproduction.md").read_text() == reproduction.page(NUMBERS)


def test_the_readme_has_its_totals():
    text = (ROOT / "README.md").read_text()
    for study, (_, printed, computed, *_) in zip(
        [*reproduction.PAPERS, "all"], reproduction.totals(NUMBERS), strict=True
    ):
        assert re.findall(rf"<!-- {study} -->(.*?)<!-- /{study} -->", text) == [f"{computed} of {printed}"]
