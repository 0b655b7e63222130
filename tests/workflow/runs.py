"""Runs of the workflow on a small study, and what they did."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, made_once, snakemake

TABLE = "results/spacewalk/table2.csv"
LONG = (
    *("2a-order-alone", "2a-tfidf-hmm", "2a-tfidf-stems-hmm"),
    *("2a-minilm-sentences", "2a-senttransformer-sentences"),
)
ELSEWHERE = {name: {"target": "tableA9"} for name in LONG}
"""What keeps out of Table 2 the decoder, whose settings take minutes to choose, and encoders of every sentence."""
SMALL: dict[str, Any] = {
    "tables": ["table2"],
    "releases": ["v2"],
    "text_encoders": ["tfidf"],
    "contexts_s": {"step_recognition": [60]},
    "subset": {"videos": ["02012021", "03152022", "11152019"]},
    "last_layer": {"seeds": [0], "epochs": 2},
    "entries": ELSEWHERE,
}
"""Of each split one recording."""

DEMO_TABLE = "results/demo/table2.csv"
ABSENT = (
    *("2a-random", "2a-sample-rank", "2a-linear-in-time", "2a-linear-after-preview", "2a-order-alone"),
    *("2a-tfidf-zero-shot", "2a-tfidf-train-zero-shot", "2a-tfidf-stems-zero-shot", "2a-tfidf-histogram"),
    *("2a-tfidf-hmm", "2a-tfidf-stems-hmm", "2b-random", "2b-equal-segments", "2b-histogram-tw-finch"),
)
HISTOGRAMS: dict[str, Any] = {
    "releases": ["demo"],
    "text_encoders": [],
    "video_encoders": ["histogram"],
    "tables": ["table2"],
    "contexts_s": {"step_recognition": [4], "intra-video_retrieval": []},
    "last_layer": {"seeds": [0], "epochs": 1},
    "subset": {"videos": ["soup", "garden", "room"]},
    "entries": {name: {"target": "tableA9"} for name in ABSENT},
}
"""Of the demo what histograms alone give."""


def spacewalk(**changes: Any) -> tuple[str, str]:
    """Return the option that configures the small study with ``changes``."""
    entries = ELSEWHERE | changes.get("entries", {})
    return "--config", f"spacewalk={json.dumps(SMALL | changes | {'entries': entries})}"


def network(
    name: str,
    *,
    revision: int = 1,
    fps: int = 1,
    frames: int = 1,
    weights: tuple[str, ...] = (),
    before: str = "",
    body: str = "clips.mean((2, 3, 4)) + SPEC.revision",
) -> str:
    """Return the file of a network that has of each second the row ``body``. before: what it does as it is loaded."""
    return f"""
from stepline.spec import ClipSpec
SPEC = ClipSpec(
    name="{name}", label="test", revision={revision}, fps={fps}, architecture="file", weights={weights}, licence="MIT",
    num_frames={frames}, interval=1, hop={fps}, steps=(("exact", 16, 16, "swscale_bicubic"),), mean=(0, 0, 0),
    std=(1, 1, 1), output="mean", dimension=3,
)
def load(spec, files):
    {before}
    return lambda clips: {body}
"""


def run(*arguments: str, folder: Path, mirror: Path, traced: bool = False, **environment: str) -> list[str]:
    """Run the workflow and return the messages of its jobs, sorted; none where there was nothing to do."""
    environment["STEPLINE_MIRROR"] = str(mirror)
    done = snakemake("--cores", "2", *arguments, folder=folder, traced=traced, **environment)
    assert done.returncode == 0, done.stderr
    jobs = messages(done)
    assert jobs or "Nothing to be done" in done.stderr, done.stderr
    return jobs


@dataclass(frozen=True)
class Study:
    """A study of made-up releases that is small enough for the whole workflow. other: what else is configured."""

    name: str
    config: dict[str, Any]
    other: dict[str, Any] = field(default_factory=dict)

    def results(self, *names: str) -> list[str]:
        """Return the paths of results."""
        return [f"results/{self.name}/{name}" for name in names]

    def run(self, folder: Path, *targets: str, dry: bool = False, traced: bool = False, **changes: Any) -> list[str]:
        """Run the workflow, with ``changes`` of the study, and return the messages of its jobs, sorted."""
        (folder / f"{self.name}.json").write_text(json.dumps({self.name: self.config | changes, **self.other}))
        options = ["--cores", "1", "--configfile", f"{self.name}.json", *(["--dry-run"] if dry else [])]
        done = snakemake(*options, "--", *targets, folder=folder, traced=traced)
        assert done.returncode == 0, done.stderr
        return messages(done)

    def whole(self, factory: pytest.TempPathFactory, write: Callable[[Path], object], *targets: str) -> Path:
        """Return a work folder in which targets were made once. write: writes its inputs; gets another folder."""
        pytest.importorskip("torch")

        def compute(folder: Path) -> None:
            with chdir(folder):
                write(factory.mktemp(f"{self.name}-inputs"))
            self.run(folder, *targets, traced=True)

        return made_once(factory, f"{self.name}-run", compute)

    def fits(self, folder: Path) -> list[str]:
        """Return the entry of each fit, sorted."""
        return sorted(path.parts[-3] for path in (folder / f"results/{self.name}/fits").rglob("*.safetensors"))


def killed(*arguments: str, folder: Path, when: Callable[[], object], **environment: str) -> None:
    """Start a run, and kill it and its jobs as soon as ``when`` says so."""
    command = [Path(sys.executable).parent / "snakemake", "--snakefile", ROOT / "Snakefile", *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=os.environ | environment, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            while not when() and process.poll() is None:
                time.sleep(0.005)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


def run_alone(
    tools: Path, *arguments: str, folder: Path, packages: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Snakemake from the environment that holds it alone. packages: a folder with the package, if any."""
    command = [tools / "alone/bin/python", "-m", "snakemake", "--cores", "1", *arguments]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("STEPLINE_", "PYTHONPATH"))}
    kept |= {"PATH": f"{tools}/conda/bin{os.pathsep}/usr/bin{os.pathsep}/bin"}
    kept |= {"PYTHONPATH": str(packages)} if packages else {}
    return subprocess.run(command, cwd=folder, env=kept | environment, capture_output=True, text=True, check=False)


def messages(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the messages of the jobs of a run, sorted."""
    return sorted(re.findall(r"^Job \d+: (.+)$", done.stderr + done.stdout, re.MULTILINE))


def rows(folder: Path, table: str = TABLE) -> list[dict[str, str]]:
    """Return the lines of a table."""
    with open(folder / table, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def by_entry(folder: Path, table: str) -> dict[tuple[str, str], dict[str, str]]:
    """Return the lines of a table by entry and metric."""
    return {(row["entry"], row["metric"]): row for row in rows(folder, table)}


def by_video(folder: Path, table: str) -> dict[str, dict[str, str]]:
    """Return the lines of a table by video."""
    return {row["video"]: row for row in rows(folder, table)}


def linked(mirror: Path, folder: Path) -> Path:
    """Return a mirror of links to the Spacewalk-18 files of another, to which a test may add."""
    shutil.copytree(mirror / "spacewalk", folder / "spacewalk", copy_function=os.symlink)
    return folder
