import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepline.availability import Record, write_availability
from stepline.io import sha256_file
from tests.conftest import ROOT
from tests.media.clips import CFR_25, make
from tests.workflow.runs import messages

pytest.importorskip("scenedetect")
pytestmark = pytest.mark.slow
SHOTS = "datasets/demo/shots/manifests/000.json"


def test_another_revision_makes_scores_and_shots_again(tmp_path: Path) -> None:
    project, folder = tmp_path / "project", tmp_path / "run"
    for name in ("src", "workflow", "envs"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(ROOT / name, project)
    path = make(tmp_path / "a.mp4", CFR_25)
    record = Record(video="a", status="present", path=str(path), sha256=sha256_file(path))
    write_availability(folder / "datasets/demo/availability/000.json", [record])

    def made() -> list[str]:
        command = [Path(sys.executable).parent / "snakemake", "--snakefile", project / "Snakefile", "--cores", "1"]
        options = ["--config", "demo={}", "--", SHOTS]
        done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, check=True)
        return messages(done)

    both = ["audio and content scores of demo, shard 000", "shots of demo, shard 000"]
    assert made() == both
    assert made() == []
    source = project / "src/stepline/media/__init__.py"
    source.write_text(source.read_text().replace("REVISION = 2\n", "REVISION = 99\n"))
    assert made() == both
