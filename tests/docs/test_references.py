"""The page of references: everything that Stepline names has a line, and every key is an entry of references.bib."""

import re

import pytest
import yaml

from stepline import __version__
from stepline.asr import engines
from stepline.backbones.presets.clip import NAMED
from stepline.backbones.registry import FRAME_BACKBONES
from stepline.backbones.sentence import MODELS
from stepline.backbones.weights import WEIGHTS
from stepline.config import validate
from stepline.config.declarations import declaration
from stepline.datasets.configured import DATASETS, STUDIES
from stepline.plans import BENCHMARKS, benchmark
from tests.conftest import ROOT

PAGE = (ROOT / "docs/references.md").read_text(encoding="utf-8")
BIB = (ROOT / "docs/references.bib").read_text(encoding="utf-8")
ENTRIES = {found[1]: found[0] for found in re.finditer(r"^@\w+\{(\S+),\n.*?^\}", BIB, re.MULTILINE | re.DOTALL)}
TABLES = {
    title: dict(re.findall(r"^\| `(\S+)` \| (.+?) \|", text, re.MULTILINE))
    for title, text in re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", PAGE, re.MULTILINE)
}
"""The tables of the page by title: the keys, as text, by name."""
FIELDS = {"author", "title", "booktitle", "journal", "volume", "number", "pages", "year", "eprint", "archiveprefix"}
NEEDED = {
    "article": {"author", "title", "journal", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "misc": {"author", "title"},
    "software": {"author", "title", "version"},
}


def parsed(entry: str) -> tuple[str, dict[str, str]]:
    """Return the type and the fields of a BibTeX entry; fail where its form is wrong."""
    head, *lines, end = entry.splitlines()
    kind = re.fullmatch(r"@([a-z]+)\{[a-z0-9]+,", head)
    assert kind, head
    assert end == "}"
    fields = {}
    for line in lines:
        field = re.fullmatch(r"  ([a-z]+) = \{(.+)\}(,?)", line)
        assert field, line
        assert bool(field[3]) == (line is not lines[-1]), f"a comma after all fields but the last: {line}"
        depth = 0
        for character in field[2]:
            depth += {"{": 1, "}": -1}.get(character, 0)
            assert depth >= 0, line
        assert depth == 0, line
        fields[field[1]] = field[2]
    return kind[1], fields


@pytest.mark.parametrize("key", ENTRIES)
def test_references_are_whole_bibtex(key: str) -> None:
    kind, fields = parsed(ENTRIES[key])
    assert NEEDED[kind] <= fields.keys() <= FIELDS | {"url", "version"}
    assert re.fullmatch(r"\d{4}", fields.get("year", "2000"))
    assert re.fullmatch(r"\d+--\d+", fields.get("pages", "1--2"))
    assert re.fullmatch(r"\d{4}\.\d{5}", fields.get("eprint", "1234.12345"))
    assert ("eprint" in fields) == (fields.get("archiveprefix") == "arXiv")
    assert "{{" in ENTRIES[key].split("author", 1)[1].split("\n", 1)[0] or ", " in fields["author"]
    assert not re.search(r"[^\x00-\x7f]", ENTRIES[key]), "letters beyond ASCII are written as BibTeX has them"


def test_every_key_is_an_entry_and_every_entry_is_named() -> None:
    assert len(ENTRIES) == BIB.count("@")
    assert {key for names in TABLES.values() for keys in names.values() for key in re.findall("`(.+?)`", keys)} == {
        *ENTRIES
    }


def test_everything_that_stepline_names_has_a_line() -> None:
    assert TABLES["Benchmarks"].keys() == {
        study for each in BENCHMARKS if declaration(each.folder).get("reference") for study in each.studies
    }
    assert TABLES["Data sets"].keys() == {*STUDIES, *DATASETS}
    assert TABLES["Recognisers"].keys() == engines.ENVIRONMENTS.keys()
    assert TABLES["Networks and encoders"].keys() == {*WEIGHTS, *MODELS, *FRAME_BACKBONES, *NAMED, "word2vec"}
    assert TABLES["Methods"].keys() <= {f"{each.studies[0]}/{kind}" for each in BENCHMARKS for kind in each.kinds}
    metrics = {metric for each in BENCHMARKS for metric in each.metrics}
    assert all(any(each == name or each.endswith(f"_{name}") for each in metrics) for name in TABLES["Metrics"])


def test_a_table_names_the_key_of_its_paper() -> None:
    for study, keys in TABLES["Benchmarks"].items():
        plan = benchmark(validate({}), study).configured(validate({study: {}}), study)
        assert plan.cited == f"{plan.title} [@{keys.strip('`')}]"


def test_stepline_is_cited_as_its_file_says() -> None:
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    kind, fields = parsed(ENTRIES["stepline"])
    assert (kind, fields["version"]) == ("software", __version__)
    assert fields["title"] == f"{{{said['title']}}}"
    assert fields["author"] == f"{{{said['authors'][0]['name']}}}"
