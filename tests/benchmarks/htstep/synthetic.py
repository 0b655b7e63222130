"""A small HT-Step in the form of the released files, with gaps and variations, and features that show its steps.

Beside it the text tower of these features, a user's file: each word has a vector of its own, and a text has their mean.
"""

import csv
import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from stepline.datasets.htstep import ANNOTATIONS, CANDIDATES, NARRATIONS, RELEASES
from stepline.datasets.htstep_files import TAXONOMY, VIDEOS
from stepline.features.importing import Folder, import_folder
from tests.benchmarks.tower import DIMENSION, tower
from tests.datasets.fetched import write_release

SEEN, UNSEEN = ("Make Tea", "Bake Bread", "Fry Eggs"), ("Boil Rice",)
VARIED = "Bake Bread"
"""The activity of two articles."""
N_STEPS = {"Make Tea": 4, "Bake Bread": 3, "Fry Eggs": 1, "Boil Rice": 3}
"""Of each article."""
GAP = 10
"""Between the first ids of two articles."""
COUNTS = {"train": 8, "val_seen": 3, "val_unseen": 2, "test_seen": 3, "test_unseen": 2}
"""Videos of each activity in a split."""
SILENT = "val_seen-0-0"
"""A video in which nothing is said."""
TASKS = {
    "1001": ("Make Coffee", ("grind beans", "pour water", "add milk")),
    "1002": ("Wash Car", ("rinse car", "dry it")),
}
TINY = {"batch_size": 8, "learning_rate": 3e-3, "seeds": [0]}
CONFIG: dict[str, Any] = {
    "features": {name: ["planted"] for name in ("s3d", "s3d_joint", "timesformer")},
    "texts": dict.fromkeys(("word2vec", "mil_nce", "mpnet", "clip"), "tower"),
    "match": {"key": "kind"},
    "actionformer": TINY | {"epochs": 2, "warmup_epochs": 1, "embed": 16, "max_length": 128, "window": 3},
    "umt": TINY | {"epochs": 2, "embed": 16},
    "mt_bce": TINY | {"epochs": 2, "width": 16, "layers": 1, "max_length": 128},
    "metrics": {"bootstrap_samples": 100, "crosstask_subsets": 2, "crosstask_videos": 1},
}


@dataclass(frozen=True)
class Shown:
    """A video. steps: the ids of its article; segments: (start_s, end_s, step id, whether it is a full match)."""

    split: str
    activity: str
    variation: str
    video: str
    duration: int
    steps: tuple[int, ...]
    segments: tuple[tuple[float, float, int, bool], ...]


@cache
def articles() -> dict[tuple[str, str], tuple[int, ...]]:
    """Return the ids of each article's steps; between articles, and in the last one, there are gaps."""
    named = [(name, variation) for name in (*SEEN, *UNSEEN) for variation in ("AB" if name == VARIED else [""])]
    found = {each: tuple(range(GAP * n, GAP * n + N_STEPS[each[0]])) for n, each in enumerate(named)}
    last = named[-1]
    return found | {last: (found[last][0], found[last][1] + 1, found[last][2] + 1)}


def headline(step: int) -> str:
    """Return the headline of a step."""
    return f"Do thing{step} with tool{step}."


@cache
def videos() -> tuple[Shown, ...]:
    """Return the videos of all splits, in the released order; most steps of an article are shown, some twice."""
    random = np.random.default_rng(5)
    found = []
    for split, n in COUNTS.items():
        for place, activity in enumerate(UNSEEN if split.endswith("unseen") else SEEN):
            for number in range(n):
                variation = "AB"[number % 2] if activity == VARIED else ""
                steps = articles()[activity, variation]
                segments, at = list[tuple[float, float, int, bool]](), 2.0
                for step in steps:
                    for _ in range(int(random.choice([0, 1, 1, 2]))):
                        length = float(random.integers(4, 9))
                        segments.append((at + 0.5, at + length, step, bool(random.integers(2))))
                        at += length + float(random.integers(1, 5))
                if not segments:
                    segments.append((at, at + 5, steps[0], True))
                    at += 6
                duration = max(70, int(at) + 4)
                found.append(
                    Shown(split, activity, variation, f"{split}-{place}-{number}", duration, steps, tuple(segments))
                )
    return tuple(found)


def crosstask_videos() -> dict[tuple[str, str], list[tuple[int, float, float]]]:
    """Return (number of the step from 1, start_s, end_s) of each task's videos."""
    return {
        (task, f"ct-{task}-{n}"): [(k + 1, 10.0 * k + 3, 10.0 * k + 9 + n) for k in range(len(steps))]
        for task, (_, steps) in TASKS.items()
        for n in range(2)
    }


def annotations(*splits: str) -> dict[str, Any]:
    """Return what ``annotations.json`` holds of some splits."""
    return {
        each.video: {
            "subset": each.split,
            "activity": each.activity,
            "annotations": [
                {"id": step, "segment": [start_s, end_s], "kind": "full" if full else "partial"}
                for start_s, end_s, step, full in each.segments
            ],
        }
        for each in videos()
        if each.split in splits
    }


def taxonomy() -> str:
    """Return ``taxonomy.csv``; the first step of each article has no paragraph."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(
        ("global_step_index", "activity", "step_index", "variation", "variation_index", "headline", "paragraph")
    )
    for (activity, variation), steps in articles().items():
        for index, step in enumerate(steps, start=1):
            paragraph = f"First, mind thing{step}. Then go on." if index > 1 else ""
            name = variation or "none"
            rows.writerow((step, activity, index - 1, name, f"{variation}{index}", headline(step), paragraph))
    return text.getvalue()


def narrations() -> dict[str, Any]:
    """Return what is said: in each segment of a step its headline, every 7 s something else."""
    found: dict[str, Any] = {}
    for each in videos():
        said = [(start_s, end_s, headline(step)) for start_s, end_s, step, _ in each.segments]
        said += [(7.0 * n, 7.0 * n + 2, f"hello number{n}") for n in range(each.duration // 7)]
        lines = [] if each.video == SILENT else sorted(said)
        found[each.video] = {
            "start": [line[0] for line in lines],
            "end": [line[1] for line in lines],
            "text": [line[2] for line in lines],
        }
    return found


def write_releases(*withheld: str, root: Path = Path()) -> None:
    """Write all releases but ``coin`` below ``root``, as they stand after they are fetched, and the text tower.

    withheld: splits whose labels are not there; by default both tests and val_unseen.
    """
    hidden = withheld or ("val_unseen", "test_seen", "test_unseen")
    splits = {split: [each.video for each in videos() if each.split == split] for split in COUNTS}
    write_release(RELEASES, "v1", {TAXONOMY: taxonomy(), VIDEOS: splits}, root)
    shown = annotations(*(split for split in COUNTS if split not in hidden))
    write_release(RELEASES, "annotations", {ANNOTATIONS: shown}, root)
    candidates = {each.video: list(each.steps) for each in videos()}
    write_release(RELEASES, "candidates", {CANDIDATES: candidates}, root)
    write_release(RELEASES, "narrations", {NARRATIONS: narrations()}, root)
    archive = io.BytesIO()
    with ZipFile(archive, "w") as file:
        file.writestr(
            "crosstask_release/tasks_primary.txt",
            "".join(
                f"{task}\n{title}\nurl\n{len(steps)}\n{','.join(steps)}\n\n" for task, (title, steps) in TASKS.items()
            ),
        )
        listed = "".join(f"{task},{video},url\n" for task, video in crosstask_videos())
        file.writestr("crosstask_release/videos.csv", listed)
        file.writestr("crosstask_release/videos_val.csv", "")
        for (task, video), steps in crosstask_videos().items():
            lines = "".join(f"{number},{start_s},{end_s}\n" for number, start_s, end_s in steps)
            file.writestr(f"crosstask_release/annotations/{task}_{video}.csv", lines)
    write_release(RELEASES, "crosstask", {"crosstask_release.zip": archive.getvalue()}, root)
    (root / "tower.py").write_text(tower(vector))


@cache
def vector(text: str) -> NDArray[np.float64]:
    """Return the vector of a text, as the tower makes it."""
    words = text.lower().replace(":", " ").replace(".", " ").split() or [""]
    mean = np.mean([np.random.default_rng([*word.encode()]).normal(size=DIMENSION) for word in words], axis=0)
    unit: NDArray[np.float64] = mean / np.linalg.norm(mean)
    return unit


def planted(seed: int = 3) -> dict[str, dict[str, NDArray[np.float32]]]:
    """Return rows of each video by its data set, one of each second: in a segment the vector of its step's text.

    Elsewhere a video has a vector of its own. All have noise.
    """
    random = np.random.default_rng(seed)
    shown = {
        each.video: (each.duration, [(s, e, headline(step)) for s, e, step, _ in each.segments]) for each in videos()
    }
    crosstask = {
        video: (60, [(s, e, TASKS[task][1][number - 1]) for number, s, e in steps])
        for (task, video), steps in crosstask_videos().items()
    }
    found: dict[str, dict[str, NDArray[np.float32]]] = {"htstep": {}, "crosstask": {}}
    for dataset, listed in (("htstep", shown), ("crosstask", crosstask)):
        for video, (duration, segments) in listed.items():
            rows = np.tile(0.3 * vector(video), (duration, 1))
            for start_s, end_s, text in segments:
                rows[int(start_s) : int(end_s)] = vector(text)
            found[dataset][video] = (rows + random.normal(0, 0.02, rows.shape)).astype(np.float32)
    return found


def write_banks(tmp: Path, name: str = "planted", *, without: tuple[str, ...] = ()) -> None:
    """Import the planted rows as banks, by way of files in ``tmp``, but for some videos."""
    for dataset, listed in planted().items():
        folder = tmp / dataset
        folder.mkdir()
        for video, rows in listed.items():
            if video not in without:
                np.save(folder / f"{video}.npy", rows)
        import_folder(Folder(folder), name, dataset, 1.0)
