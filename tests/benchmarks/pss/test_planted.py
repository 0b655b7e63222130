"""Each trained method reads its inputs: the answer is planted in one alone, which is then blinded.

All videos have one duration, and segments of random places. A row says whether it is in a segment and what is said of
it, so nothing but the rows tells where segments are. With given segments, nothing else tells which rows to caption.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.benchmark import Job
from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.kinds import Segmentation
from stepline.datasets.pss import RELEASES, SPLIT_FILES, VOCABULARIES
from stepline.datasets.schema import SPLITS
from stepline.features.importing import Folder, import_folder
from tests.benchmarks.copied import copy_once
from tests.benchmarks.pss.conftest import plan
from tests.datasets.fetched import write_release

pytest.importorskip("torch")

CASES = {
    ("procnet", "video"): ("procnet", "soda_d", 55, 45),
    ("pdvc", "video"): ("soda-s3d", "soda_c_stem", 35, 20),
    ("pdvc", "segments"): ("pdvc-r3d-given", "rouge_l", 80, 50),
}
"""Entry and metric, the least score of a fit and the most of a blinded one."""
PLANTED = list(CASES)
SENTENCES = ("cut the onion", "fry an egg", "serve with rice")
VIDEOS = {"train": 32, "val": 6, "test": 12}
DURATION_S, LENGTH_S = 72, 11
OPTIONS: dict[str, Any] = {
    "length": {"youcook2": DURATION_S},
    "metrics": {"meteor": False},
    "pdvc": {
        "epochs": 9,
        "learning_rate": 0.003,
        "decay_epochs": [7],
        "queries": 6,
        "hidden": 32,
        "layers": 1,
        "levels": 2,
        "words": 5,
        "most_segments": 4,
        "dropout": 0,
        "batch_size": 4,
        "count_weights": "none",
        "seeds": [0],
    },
    "procnet": {
        "epochs": 12,
        "learning_rate": 0.01,
        "weight_decay": 0,
        "length": DURATION_S,
        "hidden": 16,
        "anchors": 2,
        "most_segments": 4,
        "seeds": [0],
    },
}


def _write(folder: Path) -> None:
    random = np.random.default_rng(5)
    contents: dict[str, Any] = {}
    for split, (_, path) in SPLIT_FILES["youcook2"].items():
        contents[path] = {}
        for number in range(VIDEOS[split]):
            n = random.integers(2, 4)
            starts = np.sort(random.choice(DURATION_S - n * LENGTH_S, n, replace=False)) + LENGTH_S * np.arange(n)
            edges = np.stack([starts, starts + LENGTH_S], axis=1)
            said = random.permutation(len(SENTENCES))[:n]
            rows = random.normal(0, 0.1, (DURATION_S, 3 + len(SENTENCES))).astype(np.float32)
            for (start, end), which in zip(edges, said, strict=True):
                rows[start:end, [0, 3 + which]] += 1
                rows[start, 1] += 1
                rows[end - 1, 2] += 1
            np.save(folder / f"{split}{number}.npy", rows)
            sentences = [SENTENCES[which] for which in said]
            record = {"duration": DURATION_S, "timestamps": edges.tolist(), "sentences": sentences}
            contents[path][f"{split}{number}"] = record
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    contents[VOCABULARIES["youcook2"]] = {"word_to_ix": {word: place for place, word in enumerate(words, 1)}}
    write_release(RELEASES, "youcook2", contents)
    import_folder(Folder(folder), "planted", "youcook2", 1.0)
    for file in folder.glob("*.npy"):
        np.save(file, np.zeros_like(np.load(file)))
    import_folder(Folder(folder), "blind", "youcook2", 1.0)


def inputs(entry: str, bank: str = "planted") -> PssInputs:
    made = plan({**OPTIONS, "features": {name: [bank] for name in ("s3d", "r3d", "resnet34")}})
    return made.inputs(Job(release="youcook2", entry=made.entries[entry]))


def predicted(of: PssInputs) -> list[Segmentation]:
    """Return the predictions for test after a fit."""
    method, path = of.benchmark.method(of.entry.kind)(), Path("fit.safetensors")
    method.fit(of, *of.entry.seeds, path)
    return list(method.predict(of, [path]))


def score(of: PssInputs, made: list[Segmentation], metric: str) -> float:
    return float(of.benchmark.values(of, made)[metric].values.mean())


@pytest.mark.parametrize(("kind", "seen"), PLANTED)
def test_what_is_planted_in_an_input_is_found_there_alone(
    kind: str, seen: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy_once(tmp_path_factory, "pss-planted", _write)
    entry, metric, least, most = CASES[kind, seen]
    of = inputs(entry)
    if seen == "video":
        blind = predicted(inputs(entry, "blind"))
    else:
        blinded, given = inputs(entry), {each.video: each.segments for each in of.truth("test")}
        for split in SPLITS:
            blinded._truth[split] = [
                replace(each, segments=((0.0, float(DURATION_S)),) * len(each.segments))
                for each in blinded.truth(split)
            ]
        blind = [replace(each, segments=given[each.video]) for each in predicted(blinded)]
    assert score(of, predicted(of), metric) > least
    assert score(of, blind, metric) < most
