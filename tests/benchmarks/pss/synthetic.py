"""A small PSS: releases and features in which the boundaries of segments are planted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stepline.datasets.pss import RELEASES, SPLIT_FILES, VOCABULARIES
from stepline.features.importing import Folder, import_folder
from tests.datasets.fetched import write_release

VERBS, THINGS = ("cut", "fry", "mix", "serve"), ("the onion", "the rice", "an egg")
VIDEOS = {"train": 10, "val": 4, "test": 4}
BANKS = ("tsn-a", "tsn-b", "r3d", "i3d", "s3d", "resnet34")
CONFIG: dict[str, Any] = {
    "features": {"s3d": ["s3d"], "tsn": ["tsn-a", "tsn-b"]},
    "length": {"youcook2": 32, "tasty": 24},
    "metrics": {"meteor": False, "bootstrap_samples": 100},
    "pdvc": {
        "epochs": 2,
        "learning_rate": 0.001,
        "queries": 8,
        "hidden": 32,
        "layers": 1,
        "levels": 2,
        "words": 8,
        "most_segments": 6,
        "seeds": [0, 1],
    },
    "procnet": {"epochs": 1, "length": 32, "hidden": 32, "anchors": 3, "most_segments": 6, "seeds": [0]},
}


def write_releases(root: Path = Path()) -> None:
    """Write all releases below ``root``, as they stand after they are fetched."""
    for dataset, splits in SPLIT_FILES.items():
        random = np.random.default_rng(7)
        files: dict[str, dict[str, object]] = {}
        for split, (release, path) in splits.items():
            prefix = "v_" if dataset == "youcook2" else ""
            content = {f"{prefix}{dataset}-{split}-{number}": _video(random) for number in range(VIDEOS[split])}
            files.setdefault(release, {})[path] = content
        words = {word for verb in VERBS for word in verb.split()} | {w for thing in THINGS for w in thing.split()}
        ids = {word: number if dataset == "youcook2" else str(number) for number, word in enumerate(sorted(words), 1)}
        files[dataset][VOCABULARIES[dataset]] = {"word_to_ix": ids}
        for release, contents in files.items():
            write_release(RELEASES, release, contents, root)


def _video(random: np.random.Generator) -> dict[str, object]:
    n = int(random.integers(2, 5))
    edges = np.sort(random.choice(np.arange(2, 58), 2 * n, replace=False))
    sentences = [f"{random.choice(VERBS)} {random.choice(THINGS)} " for _ in range(n)]
    return {"duration": 60.0, "timestamps": edges.reshape(n, 2).tolist(), "sentences": sentences}


def write_banks(
    tmp: Path, videos: dict[str, dict[str, tuple[tuple[float, float], ...]]], names: Sequence[str] = BANKS
) -> None:
    """Import a bank of each name for every data set: a row a second that says whether a segment is on, and noise.

    videos: by data set and id, the segments.
    """
    random = np.random.default_rng(3)
    for dataset, by_video in videos.items():
        for name in names:
            folder = tmp / f"{name}-{dataset}"
            folder.mkdir()
            for video, segments in by_video.items():
                rows = random.normal(0, 0.1, (60, 6)).astype(np.float32)
                for start_s, end_s in segments:
                    rows[int(start_s) : int(end_s), 0] += 1
                    rows[int(start_s), 1] += 2
                    rows[int(end_s) - 1, 2] += 2
                np.save(folder / f"{video}.npy", rows)
            import_folder(Folder(folder), name, dataset, 1.0)
