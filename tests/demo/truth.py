"""What must be true of the demo after each stage: one check per stage.

Each check takes the work folder of a run and the truth that the builder wrote, and raises AssertionError with one line
that says what is wrong. A truth with fewer videos checks these alone.
"""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stepline import paths
from stepline.availability import read_availability
from stepline.backbones.histogram import HistogramSpec
from stepline.features.bank import Bank
from stepline.io import read_json, read_table, sha256_file

Truth = dict[str, Any]

WORD_ERROR_RATE = 0.35
"""Over all recordings. Measured: 0.10, at most 0.13 in one of them."""
HEARD = 0.9
"""Share of the spoken sentences of which at least half lies in recognised ones."""
EXTRA_CUTS = 3
"""Per recording. Measured: none."""
NEAREST = 0.8
"""Share of a step's rows that are nearest to its own preview. Measured: 1."""
ABOVE_RANDOM = 2.0
"""How many times as often as Random an entry must be right in step recognition. Measured: 3 to 4.7."""
LONGEST_WINDOW_S = 8.0
"""Longer windows span three clips, so no method can tell which of them is meant. A clip has 5.4 s on average."""


def word_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> int:
    """Return the least number of substituted, deleted and inserted words between two sequences."""
    row = list(range(len(hypothesis) + 1))
    for i, word in enumerate(reference, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(hypothesis, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return row[-1]


def check_videos(workdir: Path, truth: Truth) -> None:
    """Every video was downloaded, and is the file that was built."""
    records = {}
    for path in sorted((workdir / "datasets/demo/availability").glob("*.json")):
        records |= read_availability(path)
    for video in truth["videos"]:
        record = records.get(video)
        assert record is not None, f"{video}: no availability record"
        assert record.status == "present", f"{video}: {record.status}: {record.reason}"
        built = truth["sha256"][f"demo/videos/{video}.mp4"]
        assert record.sha256 == built, f"{video}: the record's sha256 is not the built file's"
        assert sha256_file(workdir / record.path) == built, f"{video}: the file is not the one that was built"


def check_shots(workdir: Path, truth: Truth) -> None:
    """Every planted cut is found within one frame, and few others."""
    for video, true in truth["videos"].items():
        found = read_table(workdir / paths.shots("demo") / f"{video}.parquet")["start_frame"].to_pylist()[1:]
        planted = [shot["start_frame"] for shot in true["shots"]][1:]
        missed = [cut for cut in planted if all(abs(cut - frame) > 1 for frame in found)]
        assert not missed, f"{video}: cuts at frames {missed} were not found"
        extra = len(found) - len(planted)
        assert extra <= EXTRA_CUTS, f"{video}: {extra} more cuts found than the {len(planted)} planted"


def check_words(workdir: Path, truth: Truth) -> None:
    """What was said is recognised: the words, and when."""
    errors = spoken = 0
    for video, true in truth["videos"].items():
        rows = read_table(workdir / paths.transcripts("demo", "pocketsphinx") / f"{video}.parquet").to_pylist()
        said = _words(" ".join(sentence["text"] for sentence in true["words"]))
        errors += word_errors(said, _words(" ".join(row["text"] for row in rows)))
        spoken += len(said)
        heard = [
            sum(max(0.0, min(row["end_s"], s["end_s"]) - max(row["start_s"], s["start_s"])) for row in rows)
            >= (s["end_s"] - s["start_s"]) / 2
            for s in true["words"]
        ]
        assert np.mean(heard) >= HEARD, (
            f"{video}: {heard.count(False)} of {len(heard)} sentences were not heard in time"
        )
    assert errors <= WORD_ERROR_RATE * spoken, (
        f"word error rate {errors / spoken:.2f} over {', '.join(truth['videos'])}"
    )


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def check_features(workdir: Path, truth: Truth) -> None:
    """The rows of a step's clips are nearest to the preview of that step."""
    spec = HistogramSpec()
    folders = sorted(path for path in (workdir / paths.features("demo", "0", spec).parent).iterdir() if path.is_dir())
    bank = Bank.open([path for path in folders if (path / "index.parquet").exists()], spec)
    for video, true in truth["videos"].items():
        assert video in bank.videos, f"{video}: no features"
        previews = np.stack([bank.window(video, *step["animation_s"]).mean(0) for step in true["steps"][1:]])
        previews /= np.linalg.norm(previews, axis=1, keepdims=True)
        nearest = np.concatenate(
            [
                (bank.window(video, label["start_s"], label["end_s"]) @ previews.T).argmax(1) + 1 == label["label"]
                for label in true["labels"]
                if label["label"] > 0
            ]
        )
        assert nearest.mean() >= NEAREST, (
            f"{video}: {nearest.mean():.2f} of the rows are nearest to their step's preview"
        )


def check_steps(workdir: Path, truth: Truth) -> None:
    """The release's steps are those of the script: captions, narration and preview."""
    steps = read_json(workdir / "datasets/demo/demo/data/steps.json")
    for video, true in truth["videos"].items():
        for index, (step, expected) in enumerate(zip(steps[video], true["steps"], strict=True)):
            for key in ("caption", "transcript"):
                assert step[key] == expected[key], (
                    f"{video}, step {index}: {key} {step[key]!r} is not {expected[key]!r}"
                )
            animation = [step["animation_start"], step["animation_end"]] if index else None
            assert animation == expected["animation_s"], f"{video}, step {index}: its preview is not at {animation}"


def check_samples(workdir: Path, truth: Truth) -> None:
    """A sample's label is what is done at its frame; a retrieval query's positive candidate shares its segment.

    Splits of the retrieval task that no entry reads may be absent.
    """
    seen = set()
    for split in ("train", "val", "test"):
        for video, samples in _samples(workdir, "step_recognition", split, truth):
            seen.add(video)
            for sample in samples:
                done = _segment(truth, video, sample["frame_index"])["label"]
                assert sample["label"] == done, (
                    f"{video}: sample {sample['id']} has label {sample['label']}, not {done}"
                )
        for video, samples in _samples(workdir, "intra-video_retrieval", split, truth):
            for sample in samples:
                query = _segment(truth, video, sample["query_frame_index"])
                same = [_segment(truth, video, frame) is query for frame in sample["candidate_frame_indices"]]
                assert same[sample["label"]], f"{video}: retrieval sample {sample['id']}: the positive is elsewhere"
                assert sum(same) == 1, (
                    f"{video}: retrieval sample {sample['id']}: the negative is in the query's segment"
                )
    assert seen == set(truth["videos"]), f"no samples of {', '.join(sorted(set(truth['videos']) - seen))}"


def _samples(workdir: Path, task: str, split: str, truth: Truth) -> list[tuple[str, list[dict[str, Any]]]]:
    path = workdir / paths.samples("demo", "demo", task, split)
    if task == "intra-video_retrieval" and split != "test" and not path.exists():
        return []
    samples = json.loads(path.read_text())
    return [(video, items) for video, items in samples.items() if video in truth["videos"]]


def _segment(truth: Truth, video: str, frame: int) -> dict[str, Any]:
    labels = truth["videos"][video]["labels"]
    segment: dict[str, Any] = next(item for item in labels if item["start_frame"] <= frame < item["end_frame"])
    return segment


def check_table(workdir: Path, truth: Truth) -> None:
    """In step recognition, text and video entries are clearly above Random where a window is a clip or two."""
    with open(workdir / "results/demo/table2.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["value"]]
    assert all(0 <= float(row["value"]) <= 100 for row in rows), "a value is no percentage"
    accuracy = [row for row in rows if (row["table"], row["metric"]) == ("2a", "accuracy")]
    chance = max((float(row["value"]) for row in accuracy if row["method"] == "Random"), default=None)
    assert chance is not None, "table 2a has no line of Random"
    listed = read_json(workdir / "datasets/demo/demo/tasks/split.json")["test"]
    tests = [video for video in listed if video in truth["videos"]]
    for method in ("TF-IDF", "MiniLM", "Histogram"):
        lines = [row for row in accuracy if (row["method"], row["setting"]) == (method, "zero-shot")]
        lines = [row for row in lines if float(row["context_s"]) <= LONGEST_WINDOW_S]
        assert lines, f"table 2a has no zero-shot line of {method} at a window of at most {LONGEST_WINDOW_S:g} s"
        for row in lines:
            where = f"{method} at {row['context_s']} s"
            assert int(row["n_videos"]) == len(tests), f"{where}: {row['n_videos']} of {len(tests)} test videos"
            assert float(row["value"]) >= ABOVE_RANDOM * chance, f"{where}: {row['value']} %, Random has {chance} %"
