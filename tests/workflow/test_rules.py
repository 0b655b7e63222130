"""What holds for all rules, and how the workflow is called."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from stepline.helpers import Plan
from stepline.pipeline import Features, Pipeline, Speech, Videos
from tests.conftest import ROOT, snakemake
from tests.workflow.runs import TABLE, linked, messages, run, spacewalk

RULES = {
    name: body
    for path in sorted((ROOT / "workflow/rules").glob("*.smk"))
    for name, body in re.findall(r"^rule (\w+):\n(.*?)(?=^\S|\Z)", path.read_text(), re.MULTILINE | re.DOTALL)
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_says_what_it_does_and_calls_one_verb(rule: str) -> None:
    body = RULES[rule]
    directives = re.findall(r"^    (\w+):", body, re.MULTILINE)
    assert {"output", "log", "conda", "message", "shell"} <= set(directives)
    assert not {"run", "script"} & set(directives)
    assert f'    resources:\n        **helpers.resources("{rule}"),\n' in body
    command = "".join(re.findall(r'"(.*)"', body.partition("    shell:")[2]))
    assert re.fullmatch(r"python -m stepline --log \{log\} [a-z]+ [^;&|>]+", command)


def test_all_stages_are_rules() -> None:
    stages = "release videos media shots transcribe extract thumbnails drop encode samples fit predict score table"
    shown = "pairs picture figures examples durations results report summary page worked_examples"
    own = "listings rebuild clusters submissions activities"
    assert {*stages.split(), *shown.split(), *own.split()} == set(RULES)


def test_rules_ask_only_what_is_declared() -> None:
    """What only some plans have is asked in rules that only their studies have."""
    asked = {
        (of, member)
        for body in RULES.values()
        for of, member in re.findall(r"\b(plan|pipeline)\(wildcards\)\.([\w.]+)", body)
    }
    assert {member for of, member in asked if of == "plan"} <= set(dir(Plan))
    parts = {"": Pipeline, "videos": Videos, "speech": Speech, "features": Features}
    for part, member in (member.rpartition(".")[::2] for of, member in asked if of == "pipeline"):
        assert hasattr(parts[part], member), member


def test_a_recogniser_is_given_the_cores_that_it_uses() -> None:
    assert "    threads: THREADS[ENGINE]\n" in RULES["transcribe"]


def test_workflow_files_are_short() -> None:
    assert len((ROOT / "Snakefile").read_text().splitlines()) <= 40
    for path in (ROOT / "workflow/rules").iterdir():
        assert len(path.read_text().splitlines()) <= 150, path.name


def test_parsing_the_workflow_imports_nothing_heavy() -> None:
    heavy = "numpy", "scipy", "sklearn", "torch", "pyarrow", "zarr", "httpx", "matplotlib", "av", "cv2"
    code = f"import stepline.plans, sys; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@pytest.mark.slow
def test_the_linter_finds_nothing(tmp_path: Path) -> None:
    done = snakemake("--lint", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "your workflow is in a good condition" in done.stderr + done.stdout


@pytest.mark.slow
def test_without_a_target_it_makes_tables_and_reports(tmp_path: Path) -> None:
    done = snakemake("--dry-run", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {"results/spacewalk/table2.csv", "results/spacewalk/report.html"} <= set(messages(done))


@pytest.mark.slow
def test_it_runs_from_elsewhere_into_a_folder(small: Path, real_data: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    options = "--directory", str(small), *spacewalk(text_encoders=[])
    assert run(TABLE, *options, folder=elsewhere, mirror=real_data) == [TABLE]
    assert list(elsewhere.iterdir()) == []


@pytest.mark.slow
def test_a_truncated_release_file_is_named_by_its_job(real_data: Path, tmp_path: Path) -> None:
    mirror = linked(real_data, tmp_path / "mirror")
    whole = (real_data / "spacewalk/v2/steps.json").read_bytes()
    (mirror / "spacewalk/v2/steps.json").unlink()
    (mirror / "spacewalk/v2/steps.json").write_bytes(whole[:-1])
    environment = {"STEPLINE_MIRROR": str(mirror), "HTTPS_PROXY": "http://127.0.0.1:9"}
    done = snakemake("--cores", "1", TABLE, *spacewalk(), folder=tmp_path, **environment)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: spacewalk/v2/data/steps.json is required: ")
    found = f"{len(whole) - 1} of {len(whole)} bytes"
    assert line.endswith(f"the mirror's spacewalk/v2/steps.json has {found}: replace it")
    assert not (tmp_path / "datasets/spacewalk/v2/release.json").exists()
    assert not (tmp_path / TABLE).exists()
