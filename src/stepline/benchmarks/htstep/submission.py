"""Submissions to the challenge that evaluates with the withheld labels."""

from collections.abc import Sequence
from pathlib import Path

from stepline import paths
from stepline.benchmark import Job
from stepline.benchmarks.htstep.benchmark import Htstep
from stepline.benchmarks.htstep.kinds import Found
from stepline.datasets import htstep
from stepline.datasets.htstep_files import LAST_STEP
from stepline.datasets.htstep_submission import read_submission, write_submission
from stepline.io import atomic_dir
from stepline.runs.predictions import read_predictions


def write_submissions(benchmark: Htstep, job: Job) -> Path:
    """Write ``<split>.csv`` for each withheld split that a job predicts, with its first seed, and return the folder.

    The files are read back and checked: their videos must be in the split, and their labels must be ids of steps. A
    split without predicted videos has no file.
    """
    made, _ = read_predictions(benchmark.predictions(job), benchmark.prediction, benchmark.spec(job))
    folder = paths.submissions(benchmark.name, job.entry.id)
    with atomic_dir(folder) as part:
        for split in benchmark.withheld(job.entry):
            said = [each for each in made if each.split == split and each.seed == job.entry.seeds[0]]
            if said:
                _write(part / f"{split}.csv", said)
                read_submission(part / f"{split}.csv", htstep.split_videos()[split], range(LAST_STEP + 1))
    return folder


def _write(path: Path, said: Sequence[Found]) -> None:
    rows = [
        (each.video, start_s, end_s, step, score)
        for each in said
        for (start_s, end_s), step, score in zip(each.segments, each.steps, each.scores, strict=True)
        if start_s < end_s
    ]
    columns = zip(*rows, strict=True) if rows else [()] * 5
    write_submission(path, *columns)
