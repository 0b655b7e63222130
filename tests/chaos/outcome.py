"""What a work folder holds of each video of the data set in ``mine.yaml``: ``python -m tests.chaos.outcome``."""

import csv
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from stepline import paths
from stepline.config import load
from stepline.errors import SteplineError
from stepline.features.bank import Bank
from stepline.features.opening import open_bank
from stepline.pipeline import Pipeline
from stepline.plans import pipeline

RESULTS = Path("results/mine")


def main() -> None:
    """Print as JSON: lines, files and rows of each, and a digest of the page."""
    found = pipeline(load("mine.yaml"), "mine")
    with open(RESULTS / "videos.csv", newline="", encoding="utf-8") as file:
        rows = {row["video"]: row for row in csv.DictReader(file)}
    lines = (RESULTS / "videos.md").read_text(encoding="utf-8").splitlines()
    page = (RESULTS / "report.html").read_text(encoding="utf-8")
    outcome = {
        "csv": rows,
        "md": {video: [line for line in lines if line.startswith(f"| {video} |")] for video in rows},
        "made": {video: dict(_files(found, video)) for video in rows},
        "page": hashlib.sha256(page.replace(os.getcwd(), ".").encode()).hexdigest(),
        "rows": {backbone: _rows(found, backbone) for backbone in found.features.computed},
    }
    sys.stdout.write(json.dumps(outcome).replace(os.getcwd(), "."))


def _files(found: Pipeline, video: str) -> Iterator[tuple[str, str]]:
    folders = [paths.media("mine") / video, paths.thumbnails("mine") / video]
    files = [paths.shots("mine") / f"{video}{suffix}" for suffix in (".csv", ".parquet")]
    files += [paths.transcripts("mine", found.speech.engine) / f"{video}.parquet"]
    for path in sorted([*files, *(path for folder in folders for path in folder.rglob("*"))]):
        if path.is_file():
            yield str(path), hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _rows(found: Pipeline, backbone: str) -> dict[str, str]:
    """Return a digest of each video's rows with their times, as a user opens them; an error in their place."""
    spec = found.features.spec_of(backbone)
    try:
        bank = open_bank(f"{spec.name}/{spec.id}", "mine")
    except SteplineError as error:
        return {"error": str(error)}
    return {video: _digest(bank, video) for video in sorted(bank.videos)}


def _digest(bank: Bank, video: str) -> str:
    blocks = [(block.length, block.t0_s, block.hop_s, block.start_s, block.end_s) for block in bank.blocks[video]]
    return hashlib.sha256(repr(blocks).encode() + bank.rows[video].tobytes()).hexdigest()[:16]


if __name__ == "__main__":
    main()
