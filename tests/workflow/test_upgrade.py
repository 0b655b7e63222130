"""A work folder of an earlier commit goes on with this one: nothing that took long is computed again."""

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from stepline.datasets import pss
from stepline.datasets.schema import SPLITS
from tests.benchmarks.pss.synthetic import CONFIG, write_banks, write_releases
from tests.conftest import ROOT, snakemake
from tests.workflow.runs import SMALL, messages, rows
from tests.workflow.test_own_videos import clip

pytestmark = pytest.mark.slow
UNNAMED = "0fe94404052ae09a9e73893fbc2ad9728ca98f16"
"""The last commit whose predictions did not say which configuration made them."""
BY_FILE = "dfa48297"
"""The last commit whose digests of methods depended on the names of files."""
TABLE, VIDEOS = "results/pss/table1.csv", "results/mine/videos.csv"
SCORE = "results/spacewalk/scores/v2/2a-linear-in-time/all.json"
RUN = "--cores", "2", "--configfile", "config.json", "--", TABLE, VIDEOS, SCORE
NUMBERS = ("value", "value_sd", "ci_low", "ci_high", "n_videos", "seeds", "spec", "status")


def checkout(commit: str, folder: Path) -> Path:
    """Write the files of an earlier commit to a folder."""
    archive = ["git", "-C", str(ROOT), "archive", commit, "Snakefile", "config.yaml", "envs", "src", "workflow"]
    try:
        packed = subprocess.run(archive, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if packed.returncode:
        pytest.skip(f"the history does not reach back to {commit}: this is a shallow clone, or no checkout")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def prepare(folder: Path, features: Path) -> None:
    """Write a data set of a video, and PSS whose one bank is of ProcNet: of Table 1 the rest that is trained waits."""
    clip(folder / "videos/a.mp4", amplitude=600)
    write_releases(folder)
    videos = {each.video: each.segments for split in SPLITS for each in pss.load("youcook2", split).values()}
    features.mkdir()
    write_banks(features, {"youcook2": videos}, names=["resnet34"])
    config = {
        "pss": CONFIG | {"tables": ["table1"], "releases": ["youcook2"]},
        "spacewalk": {key: SMALL[key] for key in ("tables", "releases", "subset")} | {"text_encoders": []},
        "datasets": {"mine": {"videos": "videos"}},
    }
    (folder / "config.json").write_text(json.dumps(config))


def numbers(folder: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the numbers of the table by line and metric."""
    keys = ("method", "modality", "setting", "metric", "release")
    return {tuple(row[key] for key in keys): {key: row[key] for key in NUMBERS} for row in rows(folder, TABLE)}


def inodes(folder: Path) -> list[int]:
    """Return which files hold the sound, the scores, the transcript and the rows of the data set's video."""
    names = "media/a/audio.wav", "media/a/scores.parquet", "transcripts/pocketsphinx/a.parquet"
    (rows,) = folder.glob("features/histogram/*/mine/000/features/c/0/0")
    return [path.stat().st_ino for path in (*(folder / "datasets/mine" / name for name in names), rows)]


@pytest.mark.parametrize("commit", [UNNAMED, BY_FILE])
def test_at_most_predictions_are_made_once_more(
    commit: str, real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    before, work = checkout(commit, tmp_path / "before"), tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    prepare(work, tmp_path / "features")
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH" and not key.startswith("STEPLINE_")}
    old = subprocess.run(
        [sys.executable, "-m", "snakemake", "--snakefile", str(before / "Snakefile"), "--printshellcmds", *RUN],
        env=kept | {"STEPLINE_MIRROR": str(real_data)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert old.returncode == 0, old.stderr
    assert {job.split()[0] for job in messages(old)} >= {
        *("audio", "fit", "histogram", "predict", "release", "samples", "score", "shots", "transcripts", "videos")
    }
    scored, by_line, kept_files = (work / SCORE).read_text(), numbers(work), inodes(work)
    assert any(each["value"] and "ProcNet" in line for line, each in by_line.items())

    new = snakemake(*RUN, folder=work, STEPLINE_MIRROR=str(real_data))
    assert new.returncode == 0, new.stderr
    scored_again = [job for job in messages(old) if job.startswith("score ") or job == TABLE]
    others = [job for job in messages(old) if job.startswith("predict ") or "mine" in job]
    assert messages(new) == sorted([*scored_again, *(others if commit == UNNAMED else [])])
    assert inodes(work) == kept_files, "headers alone are read again"
    assert numbers(work) == by_line
    before_, now = (json.loads(text)["metrics"] for text in (scored, (work / SCORE).read_text()))
    assert {metric: now[metric]["value"] for metric in before_} == {m: each["value"] for m, each in before_.items()}
    assert ("warning: results of" in new.stderr) == (commit == BY_FILE)

    accepted = subprocess.run([sys.executable, "-m", "stepline", "accept"], env=kept, capture_output=True, text=True)
    assert accepted.returncode == 0, accepted.stderr
    last = snakemake(*RUN, folder=work, STEPLINE_MIRROR=str(real_data))
    assert "Nothing to be done" in last.stderr, last.stderr
    assert "warning: results of" not in last.stderr
