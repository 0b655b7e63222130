"""Each trained head learns steps that one of its inputs alone shows, and nothing where this input is constant."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.backbones.histogram import HistogramSpec
from stepline.benchmark import Job
from stepline.benchmarks.segments.inputs import SegmentInputs
from stepline.benchmarks.segments.recognition import Segment, StepRecognition
from stepline.datasets.schema import SPLITS
from stepline.features import store
from stepline.features.bank import Bank
from stepline.fetch import fetch_release
from tests.benchmarks.segments.conftest import plan, predicted

PLANTED = [("linear", "video"), ("linear", "segment")]
STEPS = ("wash", "cut", "fry", "stir")
COUNTS = {"train": 10, "val": 3, "test": 4}
VECTORS = np.eye(4, 6) + 1


def drawn(video: str, order: Sequence[str], rng: np.random.Generator) -> list[Segment]:
    """Return segments of 6 s in this order, after gaps."""
    starts_s = np.cumsum(rng.integers(2, 5, len(order))) + 6 * np.arange(len(order))
    spans = [(float(start_s), float(start_s) + 6, step) for start_s, step in zip(starts_s, order, strict=True)]
    return [
        Segment(video=video, start_s=start_s, end_s=end_s, duration_s=spans[-1][1], step=step)
        for start_s, end_s, step in spans
    ]


def bank(listed: Sequence[Segment], *, blind: bool, rng: np.random.Generator) -> Bank:
    """Return rows of each half second: noise about the vector of a segment's step, and in gaps that of other steps."""
    rows = {}
    for video in {each.video for each in listed}:
        own = [each for each in listed if each.video == video]
        shown = 3 * VECTORS[rng.integers(len(STEPS), size=int(2 * own[-1].end_s))]
        for each in own:
            shown[int(2 * each.start_s) : int(2 * each.end_s)] = VECTORS[STEPS.index(each.step)]
        rows[video] = np.ones_like(shown) if blind else shown + 0.3 * rng.standard_normal(shown.shape)
    store.write(Path("rows"), HistogramSpec(), rows, 0.5)
    return Bank.open([Path("rows")], HistogramSpec())


def without_times(benchmark: type[StepRecognition], monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the times of segments by those of their videos."""
    segments = benchmark.segments

    def whole(self: Any, release: str, split: str) -> Iterator[Segment]:
        return (replace(each, start_s=0.0, end_s=each.duration_s) for each in segments(self, release, split))

    monkeypatch.setattr(benchmark, "segments", whole)


def accuracy(of: SegmentInputs) -> float:
    """Return the accuracy of what the entry's method recognises once it is fitted."""
    benchmark, fit = of.benchmark, Path("fit")
    benchmark.method(of.entry.kind)().fit(of.staged("fit"), 0, fit)
    return float(benchmark.values(of, predicted(of, fit))["accuracy"].values.mean())


@pytest.mark.parametrize(("kind", "word"), PLANTED)
def test_a_head_learns_what_is_in_one_input_alone(kind: str, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    found = {}
    for blind in (False, True):
        rng = np.random.default_rng(0)
        videos = [(f"{split}{number}", split) for split in SPLITS for number in range(COUNTS[split])]
        splits = dict(videos)
        listed = [each for video in splits for each in drawn(video, rng.permutation(STEPS).tolist(), rng)]
        for video in splits:
            Path("videos", f"{video}.mp4").write_bytes(b"x")
        lines = [f"{e.video},{e.start_s},{e.end_s},{e.step},{splits[e.video]}\n" for e in listed]
        Path("labels.csv").write_text("video,start_s,end_s,label,split\n" + "".join(lines))
        made = plan({"linear": {"seeds": [0], "epochs": 60, "batch_size": 16, "learning_rate": 0.05}})
        fetch_release(made.released, "mine")
        if blind and word == "segment":
            without_times(type(made), monkeypatch)
        of = made.inputs(Job(release="mine", entry=made.entries[f"{kind}-histogram"]))
        vars(of)["banks"] = [bank(listed, blind=blind and word == "video", rng=rng)]
        found[blind] = accuracy(of)
    assert found[False] > 90
    assert found[True] < 40  # by chance 25
