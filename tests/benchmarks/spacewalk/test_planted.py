"""Each trained head learns an answer that is in one of its inputs alone, and nothing where this input is constant."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from stepline.asr.transcript import Sentence
from stepline.backbones.histogram import HistogramSpec
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.methods import all_layer, hmm
from stepline.benchmarks.spacewalk.methods import lfb as lfb_method
from stepline.datasets.schema import SPLITS, Recording, Step
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.pictures import Seen
from stepline.models import lfb
from stepline.spec import digest
from tests.benchmarks.spacewalk.conftest import FPS, MadeUp, TinyInputs, at, record_videos, segments_of, study_of

PLANTED = [
    # `window` of last-layer and all-layer: its frames and its words; a step has words in its narration and its caption.
    *(("last-layer", word) for word in ("video", "text", "transcript", "caption")),
    *(("all-layer", word) for word in ("video", "text")),
    # `window` of lfb: frames and words of its middle segment, and the frames of its other segments.
    *(("lfb", word) for word in ("video", "text", "context")),
    # `recording` of hmm: its words, and the order in which it shows the steps.
    *(("hmm", word) for word in ("text", "order")),
    *(("order-alone", word) for word in ("duration", "preview_end")),
]
CASES = [*((*pair, "2a") for pair in PLANTED), ("last-layer", "video", "2b"), ("last-layer", "text", "2b")]
LIMIT = {"2a": 50, "2b": 65}
"""Of a method that sees nothing, which ranks the samples of four steps, or chooses one of two candidates."""
STEPS, D = 4, 5
PREVIEW_S = 30.0
COUNTS = {"train": 16, "val": 3, "test": 4}
FILLER = "wrench", "radio", "glove", "camera", "battery", "cable"
ENTRIES: dict[str, dict[str, Any]] = {
    "last-layer": {"encoder": "internvideo-seconds", "contexts": [4.0]},
    "all-layer": {
        "encoder": "internvideo-spacewalk",
        "contexts": [4.0],
        "settings": {"samples_per_video": 2000, "videos": 10},
    },
    "lfb": {"encoder": "internvideo-seconds", "contexts": [36.0]},
    "hmm": {"contexts": "unlimited", "settings": {"scorer": "2a-tfidf-zero-shot"}},
    "order-alone": {"contexts": "unlimited"},
}
HEADS = {"video": "cat", "text": "cat", "context": "nl"}
OPTIONS: dict[str, Any] = {
    "last_layer": {"epochs": 40, "batch_size": 32, "learning_rate": 0.01, "seeds": [0]},
    "all_layer": {"epochs": 5, "batch_size": 8, "learning_rate": 2e-3, "optimiser": "adamw"},
}
CHOICES = {
    "window_s": (4.0,),
    "scale": (1.0, 10.0, 30.0),
    "stay": (0.5, 1.0),
    "reach": (0.25, 0.05),
    "back": (0.02, 0.2),
    "irrelevant": (0.2,),
}


@cache
def frame(name: str) -> np.ndarray:
    """Return random vectors at right angles, (D, D)."""
    return np.linalg.qr(np.random.default_rng(int(digest(name), 16)).standard_normal((D, D)))[0]


def vector(text: str) -> np.ndarray:
    """Return the sum of the vectors of the words; that of ``AxK`` is row K of the vectors of A."""
    words = [word.partition("x") for word in text.split()]
    return np.sum([np.zeros(D), *(frame(name)[int(number or 0)] for name, _, number in words)], axis=0)


class Planted(TinyInputs):
    """Inputs that have all videos, and the vector of any text."""

    def embeddings(self, video: str) -> Any:
        return lambda texts: self.wide([vector(text) for text in texts])

    def wide(self, rows: Any) -> np.ndarray:
        """Return rows with zeros up to the dimension of the network that is trained."""
        return np.pad(np.asarray(rows, np.float32), ((0, 0), (0, 32 - D if self.entry.kind_name == "all-layer" else 0)))

    def has(self, unit: Recording) -> bool:
        return True


class Study:
    """A study with the answers in one input of a kind alone or, if it is blind, in none, in the current folder.

    The frame of each second, and what is said in it, are those of the step that is shown then; in other inputs they are
    noise. Each recording has vectors and words of its own, but those of `all-layer` have the same.
    """

    def __init__(self, kind: str, word: str, *, blind: bool) -> None:
        self.kind, self.word, self.blind = kind, word, blind
        counts = {"train": 2, "val": 1, "test": 1} if kind == "all-layer" else COUNTS
        videos = [f"{split}{number}" for split in SPLITS for number in range(counts[split])]
        recordings = {video: self.recording(video, number) for number, video in enumerate(videos)}
        said = {video: self.said(each) for video, each in recordings.items()}
        self.rows = {video: self.frames(each) for video, each in recordings.items()}
        samples = 15 if kind == "all-layer" else 40
        self.made: MadeUp = study_of([*recordings.values()], said, {}, samples=samples)

    def name(self, video: str) -> str:
        return "step" if self.kind == "all-layer" else video

    def told(self, video: str, k: int) -> str:
        """Return the word of a step; two steps have each word where only their order tells them apart."""
        return f"{self.name(video)}x{k % 2 if self.word == 'order' else k}"

    def recording(self, video: str, number: int) -> Recording:
        rng = np.random.default_rng(number)
        shown = [*rng.permutation(STEPS + 1).tolist(), *rng.permutation(STEPS + 1).tolist()]
        if self.kind in ("hmm", "order-alone") and not (self.word == "order" and self.blind):
            shown = [0, *range(1, STEPS + 1), 0]
        shown = [k for k, before in zip(shown, [None, *shown], strict=False) if k != before]
        preview_s = [80.0, 130.0, 180.0][number % 3] if self.word == "preview_end" else PREVIEW_S
        lengths_s = [12.0] * len(shown)
        if self.word == "preview_end":
            lengths_s = [(270 - preview_s) / len(shown)] * len(shown)
        elif self.word == "duration":
            lengths_s = [[3.0, 10.0, 40.0][number % 3]] * len(shown)
        elif self.kind == "hmm":
            lengths_s = rng.choice([6, 60] if self.word == "text" else [16, 24], len(shown)).tolist()
        frames = [round(FPS * length_s) for length_s in lengths_s]
        parts = segments_of((-1, int(FPS * preview_s)), *zip(shown, frames, strict=True))
        animations = [(5.0 * k, 5.0 * k + 3) for k in range(1, STEPS + 1)]
        if self.word == "preview_end" and not self.blind:
            animations[-1] = (preview_s - 3, preview_s)
        steps = [Step(caption="Irrelevant", transcript="noise", animation_s=None)]
        for k, animation_s in enumerate(animations, 1):
            caption, transcript = (
                self.told(video, k) if self.word in ("text", part, "order") else "work"
                for part in ("caption", "transcript")
            )
            steps.append(Step(caption=caption, transcript=transcript, animation_s=animation_s))
        return Recording(
            video=video,
            split=video.rstrip("0123456789"),  # type: ignore[arg-type]
            duration_s=270.0 if self.word == "duration" and self.blind else parts[-1].end_s,
            segments=parts,
            steps=tuple(steps),
        )

    def said(self, of: Recording) -> list[Sentence]:
        seconds = range(int(of.segments[-1].end_s))
        texts = np.random.default_rng(int(digest([of.video, 0, "said"]), 16)).choice(FILLER, len(seconds)).tolist()
        if self.word in ("text", "transcript", "caption", "order"):
            texts = [self.told(of.video, k) for k in labels(of, 0.0)]
            if self.blind and self.word != "order":
                texts = ["work"] * len(seconds)
        return [Sentence(text, second + 0.1, second + 0.9) for second, text in zip(seconds, texts, strict=True)]

    def frames(self, of: Recording) -> np.ndarray:
        """Return one row a second; those of lfb are of the 12 s that begin there."""
        seconds = int(of.segments[-1].end_s)
        rng = np.random.default_rng(int(digest([of.video, 0]), 16))
        rows = rng.standard_normal((seconds, D)) / D**0.5
        if self.word not in ("video", "context"):
            return rows
        if self.blind:
            return np.ones_like(rows)
        shown = labels(of, (6.0 if self.kind == "lfb" else 0.0) - (12.0 if self.word == "context" else 0.0))
        for k, step in enumerate(of.steps):
            if step.animation_s:
                shown[int(step.animation_s[0]) : int(step.animation_s[1])] = [k] * 3
        return 0.3 * rows + [frame(self.name(of.video))[k] if k else np.zeros(D) for k in shown]

    def inputs(self, table: str) -> Planted:
        """Return the inputs of an entry of the kind."""
        modality = {"transcript": "T", "caption": "C"}.get(self.word, "V+L" if table == "2a" else "V+T")
        modality = "V" if (self.kind, self.word) == ("all-layer", "video") else modality
        entry = {"kind": self.kind, "table": table, "modality": modality} | ENTRIES[self.kind]
        if self.kind == "lfb":
            entry |= {"settings": {"head": HEADS[self.word], "steps": "2a-internvideo-zero-shot"}}
        changed = {"last_layer": OPTIONS["last_layer"] | {"epochs": 25}} if self.word == "context" else {}
        found = self.made.inputs(entry, Planted, **OPTIONS | changed)
        inputs = at(found, None if entry["contexts"] == "unlimited" else entry["contexts"][0])
        inputs.benchmark.config["features"]["device"] = "cpu"
        if self.kind == "all-layer":
            record_videos(self.made)
            vars(inputs)["bank"] = SimpleNamespace(clip=self.clip)
        elif self.kind != "hmm":
            store.write(Path("rows"), HistogramSpec(), self.rows, 1)
            vars(inputs)["bank"] = Bank.open([Path("rows")], HistogramSpec())
        if self.kind == "lfb":
            vars(inputs)["parts"] = (inputs, inputs)
        return inputs

    # In the place of what all-layer decodes

    def clip(self, video: str, start_s: float, end_s: float) -> np.ndarray:
        """Return the feature of a listed clip."""
        rows = self.rows[video][int(start_s) : int(end_s)]
        return np.pad(rows.mean(axis=0), (0, 32 - D))

    def pictures(self, video: str, clips: Any) -> np.ndarray:
        """Return pictures whose colours are the frame in the middle of their clip."""
        middles = [self.rows[video][int((start_s + end_s) / 2), :3] for start_s, end_s in clips]
        colours = (127 + 100 * np.array(middles)).clip(0, 255).astype(np.uint8)
        return np.tile(colours[:, None, None, None], (1, 3, 56, 56, 1))

    def keep(self, _spec: Any, listed: Mapping[str, Any], _videos: Any, folder: Path) -> Mapping[str, np.ndarray]:
        folder.mkdir()
        return {video: self.pictures(video, clips) for video, clips in listed.items()}

    def stream(self, _spec: Any, listed: Mapping[str, Any], *_: Any) -> Iterator[Seen]:
        """Yield the later clips first."""
        for video, clips in listed.items():
            for places in np.array_split(np.arange(len(clips))[::-1], 3):
                seen = self.pictures(video, [clips[place] for place in places])
                yield Seen(video, places, seen, np.ones((len(places), 3), np.bool_), 0)


def labels(of: Recording, after_s: float) -> list[int]:
    """Return the label that is shown some time after the middle of each second, 0 where none is."""
    return [
        next((max(0, each.label) for each in of.segments if each.start_s <= second + 0.5 + after_s < each.end_s), 0)
        for second in range(int(of.segments[-1].end_s))
    ]


def score(inputs: SpacewalkInputs) -> float:
    """Return the score of what the entry's method predicts once it is fitted, in percent."""
    benchmark, fit = inputs.benchmark, Path("fit.safetensors")
    method = benchmark.method(inputs.entry.kind)
    method().fit(inputs.staged("fit"), 0, fit)
    made, _ = benchmark.select(inputs, list(method().predict(inputs.staged("predict"), [fit])))
    found = benchmark.values(inputs, made)
    return float(found["map" if inputs.entry.thresholded else "accuracy"].values.mean())


@pytest.mark.parametrize(("kind", "word", "table"), CASES)
def test_a_head_learns_what_is_in_one_input_alone(
    kind: str, word: str, table: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if kind == "all-layer":
        request.getfixturevalue("small_internvideo")
    monkeypatch.setattr(lfb, "LATENT", 16)
    monkeypatch.setattr(lfb_method, "OPTIONS", {"nl": {"batch_size": 128, "learning_rate": 0.01}})
    monkeypatch.setattr(hmm, "STEP_S", 2.0)
    monkeypatch.setattr(hmm, "CHOICES", CHOICES)
    found = []
    for blind in (False, True):
        study = Study(kind, word, blind=blind)
        for name in ("keep", "stream"):
            monkeypatch.setattr(all_layer, name, getattr(study, name))
        found.append(score(study.inputs(table)))
    learned, blinded = found
    assert learned > max(55, blinded + 25)
    assert blinded < LIMIT[table]
