import re
from pathlib import Path

import pytest
import yaml

from stepline import __version__
from stepline.asr import engines
from stepline.backbones.presets.clip import NAMED
from stepline.backbones.registry import FRAME_BACKBONES, presets, towers
from stepline.backbones.sentence import MODELS
from stepline.backbones.weights import WEIGHTS
from stepline.citations.works import FOLDER, backbones, metrics, references, work, works
from stepline.datasets.configured import DATASETS, STUDIES
from stepline.plans import BENCHMARKS
from tests.conftest import ROOT

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


@pytest.mark.parametrize("key", references())
def test_references_are_whole_bibtex(key: str) -> None:
    kind, fields = parsed(references()[key])
    assert NEEDED[kind] <= fields.keys() <= FIELDS | {"url", "version"}
    assert re.fullmatch(r"\d{4}", fields.get("year", "2000"))
    assert re.fullmatch(r"\d+--\d+", fields.get("pages", "1--2"))
    assert re.fullmatch(r"\d{4}\.\d{5}", fields.get("eprint", "1234.12345"))
    assert ("eprint" in fields) == (fields.get("archiveprefix") == "arXiv")
    assert "{{" in references()[key].split("author", 1)[1].split("\n", 1)[0] or ", " in fields["author"]
    assert not re.search(r"[^\x00-\x7f]", references()[key]), "letters beyond ASCII are written as BibTeX has them"


def test_every_entry_of_the_file_is_found_and_used() -> None:
    text = (FOLDER / "references.bib").read_text()
    assert len(references()) == text.count("@") == len(set(re.findall(r"@\w+\{(\S+),", text)))
    cited = {
        key for name, group in works().items() if name != "aliases" for each in group.values() for key in each["cite"]
    }
    assert cited == references().keys()


def test_everything_that_stepline_names_is_registered() -> None:
    assert works()["benchmarks"].keys() == {study for each in BENCHMARKS for study in each.studies}
    assert works()["datasets"].keys() == {*STUDIES, *DATASETS}
    assert works()["recognisers"].keys() == engines.ENVIRONMENTS.keys()
    assert works()["backbones"].keys() == {*WEIGHTS, *MODELS, *FRAME_BACKBONES, *NAMED, "word2vec"}
    kinds = {f"{each.studies[0]}/{kind}" for each in BENCHMARKS for kind in each.kinds}
    assert works()["methods"].keys() <= kinds
    every = {metric for each in BENCHMARKS for metric in each.metrics}
    assert {found[0].name for metric in every if (found := metrics(metric))} == works()["metrics"].keys()
    for name in (*presets(), *towers(), *MODELS, *FRAME_BACKBONES, *NAMED):
        found = backbones(name)
        assert found, name
        assert all(each.licence for each in found), name
        assert name == "histogram" or all(each.cite for each in found), name


def test_licences_are_those_of_the_weights() -> None:
    assert [(each.name, each.licence) for each in backbones("videoclip-oepp")] == [
        ("videoclip", "CC-BY-NC-4.0"),
        ("s3d", "none stated"),
    ]
    assert backbones("mpnet")[0].licence == MODELS["mpnet"].licence
    assert backbones("mil_nce") == backbones("s3d")
    assert backbones("step_recognition") == []
    assert [each.name for each in metrics("test_507_bert_score")] == ["bert_score", "roberta-large"]
    assert [each.name for each in metrics("val_meteor_stem")] == ["meteor_stem"]
    assert metrics("accuracy") == []


def test_stepline_is_cited_as_its_file_says() -> None:
    said = yaml.safe_load(Path(ROOT, "CITATION.cff").read_text())
    kind, fields = parsed(references()["stepline"])
    assert (kind, fields["version"]) == ("software", __version__)
    assert fields["title"] == f"{{{said['title']}}}"
    assert fields["author"] == f"{{{said['authors'][0]['name']}}}"
    assert work("tool", "tools", "stepline").licence == said["license"]
