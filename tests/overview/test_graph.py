"""The jobs that lead to a target are Snakemake's."""

import re
from collections import Counter
from pathlib import Path

import pytest

from stepline.config import load
from stepline.errors import ConfigError
from stepline.overview.graph import Graph
from stepline.overview.rules import RULES
from tests.conftest import DEMO, ROOT, snakemake
from tests.overview.listed import config


def counted(*arguments: str, folder: Path, **environment: str) -> Counter[str]:
    """Return how many jobs of each rule a dry run lists."""
    done = snakemake("-n", "--cores", "1", *arguments, folder=folder, **environment)
    assert done.returncode == 0, done.stderr
    table = done.stdout.partition("job ")[2].partition("total ")[0]
    found = Counter({name: int(n) for name, n in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)})
    del found["all"]
    return found


def rules(graph: Graph) -> Counter[str]:
    return Counter(job.rule for job in graph.jobs)


@pytest.mark.slow
@pytest.mark.parametrize("file", ["config.yaml", "config.demo.yaml"])
def test_jobs_of_studies_are_those_of_a_dry_run(file: str) -> None:
    listed = counted("--configfile", str(ROOT / file), folder=Path.cwd())
    assert rules(Graph(load(ROOT / file))) == listed


@pytest.mark.slow
def test_jobs_of_a_study_whose_release_is_there_are_those_of_a_dry_run(
    demo_mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(demo_mirror))
    targets = ["results/demo/all", "results/demo/videos.csv"]
    listed = counted(*DEMO, "--", *targets, folder=Path.cwd(), STEPLINE_MIRROR=str(demo_mirror))
    graph = Graph(load(ROOT / "config.demo.yaml"), targets)
    assert rules(graph) == listed
    assert {"fit", "predict", "encode", "examples", "durations", "figures", "extract"} <= listed.keys()
    assert list(rules(graph)) == list(dict.fromkeys(job.rule for job in graph.jobs))


@pytest.mark.slow
def test_jobs_of_videos_that_are_not_kept_are_those_of_a_dry_run() -> None:
    changed = config(media={"keep": "none"}, mine={"stages": ["shots", "features"]})
    listed = counted("--configfile", "listed.yaml", folder=Path.cwd())
    assert rules(Graph(changed)) == listed
    assert listed == {"videos": 3, "media": 3, "shots": 3, "extract": 3, "drop": 3, "summary": 1, "page": 1}


def test_a_job_comes_after_those_that_it_waits_for() -> None:
    jobs = Graph(config()).jobs
    assert all(jobs.index(before) < jobs.index(job) for job in jobs for before in job.after)
    assert jobs[-1].rule == "page"
    assert {job.log for job in jobs if job.rule == "transcribe"} == {
        f"logs/transcribe/mine.pocketsphinx.{shard}.log" for shard in ("000", "001", "002")
    }


def test_a_name_stands_for_its_results_and_a_file_for_itself() -> None:
    made = config()
    assert Graph(made, ["mine"]).targets == ["results/mine/videos.csv", "results/mine/report.html"]
    for stage, before in (("shots", ["media"]), ("thumbnails", ["media", "shots"])):
        found = rules(Graph(made, [f"datasets/mine/{stage}/manifests/001.json"]))
        assert found == dict.fromkeys(["videos", *before, stage], 1)


@pytest.mark.parametrize(
    ("target", "line"),
    [
        (
            "results/mine/reports.html",
            "no job writes results/mine/reports.html: did you mean results/mine/report.html",
        ),
        ("results/mines/videos.csv", "no job writes results/mines/videos.csv: did you mean results/mine/videos.csv"),
        ("results/mine/videos/-bcDEF1234.html", "no job .*: `stepline show mine -bcDEF1234` writes the timeline of a"),
        ("nope", "no job writes nope: name a file such as results/mine/videos.csv"),
    ],
)
def test_what_nothing_makes_is_an_error_that_says_what_there_is(target: str, line: str) -> None:
    with pytest.raises(ConfigError, match=line):
        Graph(config(), [target])


def test_every_rule_of_the_workflow_is_known() -> None:
    files = (ROOT / "workflow/rules").glob("*.smk")
    named = [name for file in files for name in re.findall(r"^rule (\w+):", file.read_text(), re.MULTILINE)]
    assert sorted(named) == sorted(RULES)


def test_logs_and_outputs_are_those_of_the_workflow() -> None:
    for file in (ROOT / "workflow/rules").glob("*.smk"):
        for rule in re.split(r"^rule ", file.read_text(), flags=re.MULTILINE)[1:]:
            name = rule.partition(":")[0]
            (log,) = re.findall(r'log:\s+"([^"]+)"', rule)
            assert re.sub(r"\{(own|spacewalk)\}", _as_in_rules(rule), RULES[name].log) == log


def _as_in_rules(rule: str) -> str:
    return "{dataset}" if "{dataset}" in rule else "{study}"
