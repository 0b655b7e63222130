"""The whole run on the demo study, stage by stage, against what its builder knows."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("av")
pytest.importorskip("pocketsphinx")

from stepline.io import read_json
from tests.conftest import DEMO, HEARD, SUBSET, snakemake
from tests.demo import truth as checks
from tests.workflow.runs import messages

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(demo_run: Path) -> dict[str, Any]:
    content: dict[str, Any] = read_json(demo_run / "results/demo/truth.json")
    return {**content, "videos": {video: content["videos"][video] for video in HEARD}}


@pytest.mark.parametrize("stage", ["videos", "shots", "words", "features", "steps", "samples", "table"])
def test_the_stage_finds_what_was_planted(stage: str, demo_run: Path, built: dict[str, Any]) -> None:
    getattr(checks, f"check_{stage}")(demo_run, built)


def test_the_configuration_as_it_stands_asks_for_more_windows_and_seeds(demo_run: Path, demo_mirror: Path) -> None:
    options = "--dry-run", *DEMO, "--config", f"demo={{{SUBSET}}}", "--", "results/demo/table2.csv"
    done = snakemake(*options, folder=demo_run, STEPLINE_MIRROR=str(demo_mirror))
    assert done.returncode == 0, done.stderr
    jobs = messages(done)
    assert [job for job in jobs if job.startswith("fit ")] == [
        f"fit 2a-minilm-last-layer on demo at {context}s, seed {seed}" for context in (2, 4, 8) for seed in (0, 1, 2)
    ]
    assert {"predict 2a-tfidf-zero-shot on demo at 8s", "predict 2b-histogram-zero-shot on demo at 2s"} <= set(jobs)
    assert not [job for job in jobs if "shard 000" in job], "a stage before the windows"


def test_the_results_can_be_looked_at(demo_run: Path) -> None:
    for name in ("table2.csv", "table2.md", "report.html"):
        assert (demo_run / "results/demo" / name).stat().st_size > 1000, name
