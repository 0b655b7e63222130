"""What ``snakemake --report`` shows."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docutils.core import publish_parts
from jinja2 import Environment

from stepline.tables import MEANINGS
from tests.conftest import ROOT, snakemake
from tests.workflow.runs import TABLE, spacewalk

CAPTIONS = {path.stem: path.read_text() for path in (ROOT / "workflow/report").glob("*.rst")}
RULES = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
SHOWN = re.findall(r'shown\(\s*"results/([^"]+)",\s*"(\w+)"', RULES)
"""Outputs of rules and their captions."""


def part(report: str, name: str) -> Any:
    """Return an object of the report's page, which shows it by script."""
    [content] = re.findall(rf"\n    var {name} = (.*);\n", report)
    return json.loads(content)


def test_every_caption_is_shown_and_every_output_has_one() -> None:
    assert {caption for _, caption in SHOWN} | {"workflow"} == CAPTIONS.keys()
    assert len(SHOWN) == len(set(SHOWN)) > 15


@pytest.mark.parametrize("name", CAPTIONS)
def test_a_caption_is_correct(name: str) -> None:
    """docutils prints what is wrong into the page."""
    wildcards = SimpleNamespace(study="pss", dataset="mine", table="table1", encoder="minilm")
    template = Environment(trim_blocks=True, lstrip_blocks=True).from_string(CAPTIONS[name])
    text = template.render(snakemake=SimpleNamespace(wildcards=wildcards), categories=[SimpleNamespace(name="Tables")])
    links = "\n\n.. _Tables: javascript:tables"  # of Snakemake
    html = publish_parts(f"{text}{links}", writer="html", settings_overrides={"halt_level": 2})
    assert "{" not in html["body"]


def test_the_caption_of_a_table_has_every_status() -> None:
    listed = dict(re.findall(r"^(\w+(?: \w+)?) {2,}(.*)$", CAPTIONS["table"], re.MULTILINE))
    assert listed == MEANINGS


@pytest.mark.slow
def test_a_study_has_its_tables_with_what_they_mean(small: Path, real_data: Path) -> None:
    options = "--cores", "1", "--report", "report.html", *spacewalk(), "--", TABLE
    done = snakemake(*options, folder=small, STEPLINE_MIRROR=str(real_data))
    assert done.returncode == 0, done.stderr
    report = (small / "report.html").read_text(encoding="utf-8")
    assert part(report, "categories") == {"Tables": {"spacewalk": [TABLE]}}
    table = part(report, "results")[TABLE]
    assert table["labels"] == {"result": "table2.csv: Step recognition; Intra-video retrieval"}
    assert "spacewalk, table2: a line for each method" in table["caption"]
    assert "<td>inconclusive</td>" in table["caption"]
    assert "is shown next to the number computed" in " ".join(part(report, "workflow_desc").split())
    assert [folder for folder in (small, ROOT, real_data, Path.home()) if f"{folder}/" in report] == []
