"""The whole run on the demo study, stage by stage, against what its builder knows."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("av")
pytest.importorskip("pocketsphinx")

from stepline.io import read_json
from tests.demo import truth as checks

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(demo_run: Path) -> dict[str, Any]:
    content: dict[str, Any] = read_json(demo_run / "results/demo/truth.json")
    assert len(content["videos"]) == 5
    return content


@pytest.mark.parametrize("stage", ["videos", "shots", "words", "features", "steps", "samples", "table"])
def test_the_stage_finds_what_was_planted(stage: str, demo_run: Path, built: dict[str, Any]) -> None:
    getattr(checks, f"check_{stage}")(demo_run, built)


def test_the_results_can_be_looked_at(demo_run: Path) -> None:
    for name in ("table2.csv", "table2.md", "report.html"):
        assert (demo_run / "results/demo" / name).stat().st_size > 1000, name
