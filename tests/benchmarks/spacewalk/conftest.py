"""The real releases with their samples, and a study that is made up."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline import paths
from stepline.asr.transcript import Sentence
from stepline.availability import Record, write_availability
from stepline.backbones.histogram import HistogramSpec
from stepline.backbones.registry import presets, towers
from stepline.benchmark import Job
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.checks import check
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.kinds import Choice
from stepline.benchmarks.spacewalk.methods import Chooser
from stepline.benchmarks.spacewalk.samples import write_samples
from stepline.config import Config, validate
from stepline.datasets.schema import SPLITS, Recording, Release, Segment, Step, Video
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION, Study
from stepline.features import store
from stepline.features.text import TextStore, encode_texts
from stepline.io import read_json, sha256_file, write_json, write_text
from stepline.runs import verbs
from stepline.runs.predictions import read_predictions
from stepline.runs.score import score
from stepline.spec import Spec, digest
from tests.conftest import made_once


@pytest.fixture(scope="session")
def spacewalk_folder(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder that was empty before ``stepline samples`` of every release."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STEPLINE_")}

    def make(folder: Path) -> None:
        for release in ("v0", "v1", "v2"):
            command = [sys.executable, "-m", "stepline", "samples", "spacewalk", "--release", release]
            subprocess.run(command, cwd=folder, env=kept | {"STEPLINE_MIRROR": str(real_data)}, check=True)

    return made_once(tmp_path_factory, "spacewalk", make)


@pytest.fixture
def in_spacewalk(spacewalk_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the test where the real releases and samples stand."""
    monkeypatch.chdir(spacewalk_folder)
    return spacewalk_folder


def real_inputs(entry: str, release: str, **changes: object) -> SpacewalkInputs:
    """What a declared entry reads, in a folder with the real releases."""
    plan = Spacewalk.configured(validate({"spacewalk": changes}), "spacewalk")
    return plan.inputs(Job(release=release, entry=plan.entries[entry]))


def at(inputs: SpacewalkInputs, context_s: float | None) -> SpacewalkInputs:
    """Return the same at a window length, with what was already read."""
    moved = type(inputs)(inputs.benchmark, replace(inputs.job, context_s=context_s))
    vars(moved).update({key: value for key, value in vars(inputs).items() if key not in ("benchmark", "job")})
    return moved


def fit(inputs: SpacewalkInputs, context_s: float | None, seed: int, path: Path) -> None:
    """Fit at a window length."""
    verbs.fit(at(inputs, context_s), seed, path)


def predict(
    inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path], path: Path
) -> tuple[list[Choice], Mapping[str, Any]]:
    """Predict at a window length, and return what is in the file."""
    verbs.predict(at(inputs, context_s), fits, path)
    return read_predictions(path, Choice, at(inputs, context_s).spec)


def scored(inputs: SpacewalkInputs, context_s: float | None, path: Path) -> dict[str, Any]:
    """Score predictions at a window length, and return what is in the file."""
    score(at(inputs, context_s), path, Path("score.json"))
    found: dict[str, Any] = read_json(Path("score.json"))
    return found


def chooser_of(inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
    """Return what chooses at a window length, by the fits."""
    made: Chooser = inputs.method.chooser(inputs, context_s, fits)
    return made


FPS = 10.0
CONTEXTS = {"step_recognition": [4, 6], "intra-video_retrieval": [4, 6]}
WORDS = ["bolt", "cable", "hatch", "tether", "truss", "wrench", "radio", "panel", "array", "glove", "camera", "battery"]


@dataclass(frozen=True, kw_only=True)
class TinySpec(Spec):
    dimension: int = 6


class TinyEncoder:
    """Random vectors that only the text decides."""

    spec = TinySpec(name="tiny", label="tiny", revision=1)

    def tokens(self, text: str) -> list[int]:
        return [int(digest(word), 16) % 997 for word in text.split()]

    def encode(self, tokens: list[int]) -> np.ndarray:
        return np.random.default_rng(tokens).standard_normal(6).astype(np.float32)


class TinyInputs(SpacewalkInputs):
    """Inputs whose sentence embeddings are those of the tiny encoder."""

    def embeddings(self, video: str) -> TextStore:
        folder = Path("tiny", video)
        text = self.text(video)
        wanted = [part for texts in text.step_texts() for part in texts] + [s.text for s in text.sentences]
        (split,) = (split for split in SPLITS if video in self.annotation.splits[split])
        items = self.items(split)[video]
        wanted += [text.window(t, length) for item in items for t in item.times_s for length in (4.0, 6.0)]
        encode_texts(wanted, TinyEncoder(), folder, what=video)
        return TextStore(folder, TinyEncoder.spec)


def segments_of(*parts: tuple[int, int]) -> tuple[Segment, ...]:
    """Return segments one after the other, each of a label and a number of frames."""
    made, at = [], 0
    for label, frames in parts:
        end = at + frames
        made.append(Segment(start_s=at / FPS, end_s=end / FPS, start_frame=at, end_frame=end, label=label))
        at = end
    return tuple(made)


def _recording(video: str, split: str, n_steps: int, seed: int) -> Recording:
    rng = np.random.default_rng(seed)
    labels = [-1, *rng.permutation([0, *range(1, n_steps + 1), *rng.integers(0, n_steps + 1, 3)]).tolist(), -1]
    labels = [label for label, before in zip(labels, [None, *labels], strict=False) if label != before]
    lengths = [5 * 10 * (n_steps + 1), *(int(rng.integers(40, 120)) for _ in labels[1:])]
    segments = segments_of(*zip(labels, lengths, strict=True))
    steps = [Step(caption="Irrelevant", transcript="noise and other things", animation_s=None)]
    for k in range(1, n_steps + 1):
        told = " ".join(rng.choice(WORDS, 4).tolist())
        steps.append(Step(caption=f"{WORDS[k]} work", transcript=told, animation_s=(5.0 * k, 5.0 * k + 3)))
    return Recording(video=video, split=split, duration_s=segments[-1].end_s, segments=segments, steps=tuple(steps))  # type: ignore[arg-type]


@dataclass(frozen=True)
class MadeUp:
    """A small study with transcripts, frame features and samples of both tasks, in the current folder."""

    study: Study
    release: Release

    def inputs(
        self, entry: dict[str, object], made: type[SpacewalkInputs] = TinyInputs, **changes: object
    ) -> SpacewalkInputs:
        """What an entry of these fields reads."""
        given = {"table": "2a", "method": "M", "modality": "L", "setting": "zero-shot", "inputs": ["window"]}
        config: Config = validate(
            {"demo": {"contexts_s": CONTEXTS, "entries": {"mine": given | {"protocol": "beyond"} | entry}} | changes}
        )
        plan = Spacewalk.configured(config, "demo")
        vars(plan)["released"] = self.study
        check(plan)
        inputs = made(plan, Job(release="demo", entry=plan.entries["mine"]))
        for part in inputs.parts:
            vars(part)["annotation"] = self.release
        return inputs


@pytest.fixture
def made_up(tmp_path: Path) -> MadeUp:
    """A study of four recordings that the test may spoil."""
    listed = enumerate((("a", "train"), ("b", "train"), ("c", "val"), ("d", "test"), ("e", "test")))
    recordings = [_recording(video, split, 3 + seed % 3, seed) for seed, (video, split) in listed]
    said, rows = {}, {}
    for seed, recording in enumerate(recordings):
        rng = np.random.default_rng(100 + seed)
        starts = np.arange(0, recording.duration_s - 1, 1.5).tolist()
        said[recording.video] = [Sentence(" ".join(rng.choice(WORDS, 5).tolist()), s, s + 1.2) for s in starts]
        rows[recording.video] = rng.random((int(recording.duration_s * 2), 8)).astype(np.float32)
    return study_of(recordings, said, rows)


def study_of(
    recordings: Sequence[Recording],
    said: Mapping[str, Sequence[Sentence]],
    rows: Mapping[str, Any],
    *,
    samples: int = 40,
) -> MadeUp:
    """Write a study in the current folder: its transcripts, two rows of features a second, and samples."""
    splits = {split: tuple(each.video for each in recordings if each.split == split) for split in SPLITS}
    by_video = {each.video: each for each in recordings}
    release = Release(study="demo", name="demo", fps=FPS, recordings=by_video, splits=splits)
    listed = tuple(Video(id=r.video, split=r.split, duration_s=r.duration_s, url="", path=r.video) for r in recordings)
    study = Study(
        name="demo",
        title="A made-up study",
        known=("demo",),
        fps={"demo": FPS},
        tasks={"demo": (STEP_RECOGNITION, RETRIEVAL)},
        as_released=frozenset(),
        samples_per_video=samples,
        min_distance_s=0.5,
        boundary_s=0.2,
        videos=lambda: listed,
        release_files=lambda release: (),
    )
    sha256 = {}
    for video, sentences in said.items():
        path = f"data/transcripts/{video}.csv"
        lines = [f"{s.text},{s.start_s},{s.end_s}" for s in sentences]
        write_text(study.folder("demo") / path, "\n".join(["Sentence,Global start,Global end", *lines, ""]))
        sha256[path] = sha256_file(study.folder("demo") / path)
    write_json(study.folder("demo") / "release.json", {"files": sha256})
    shards, spec = study.shards(10), HistogramSpec()
    for shard in set(shards.values()):
        held = {video: each for video, each in rows.items() if shards[video] == shard}
        store.write(paths.features("demo", shard, spec), spec, held, 0.5)
    for task in (STEP_RECOGNITION, RETRIEVAL):
        for split in SPLITS:
            write_samples(study, release, task, split, paths.samples("demo", "demo", task, split))
    return MadeUp(study, release)


@pytest.fixture(scope="session")
def tiny(parity: Path) -> Any:
    """A small InternVideo: its configuration and weights."""
    torch = pytest.importorskip("torch")
    from tests.parity import internvideo as reference
    from tests.parity import weights

    described = read_json(parity / "internvideo/manifest.json")
    args, config = described["args"]["tiny"], described["configs"]["tiny"]
    shapes = {key: shape for key, (shape, *_) in config["keys"].items()}
    arrays = weights(config["keys"], config["digest_sha256"])
    return reference.config_of(args, shapes), {f"clip.{key}": torch.tensor(array) for key, array in arrays.items()}


@pytest.fixture
def small_internvideo(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the current folder, the small network with its 32 features stands for InternVideo."""
    import torch

    from stepline.backbones import internvideo

    config, tensors = tiny
    Path("weights/internvideo").mkdir(parents=True)
    torch.save(tensors, "weights/internvideo/pytorch_model.bin")
    spec = presets()["internvideo-spacewalk"]
    steps = (("short_side", 56, "pil_bicubic"), ("centre_crop", 56, "round"))
    monkeypatch.setattr(internvideo, "Config", lambda: config)
    monkeypatch.setitem(presets(), spec.name, replace(spec, num_frames=3, steps=steps, dimension=32))  # type: ignore[type-var]
    monkeypatch.setitem(towers(), "internvideo-text", replace(towers()["internvideo-text"], dimension=32))


def record_videos(made: MadeUp) -> None:
    """Record all videos of a study as present."""
    records: dict[str, list[Record]] = {}
    for video in made.release.recordings:
        record = Record(video=video, status="present", sha256="0", path=f"{video}.mp4")
        records.setdefault(made.study.shards(10)[video], []).append(record)
    for shard, found in records.items():
        write_availability(paths.availability("demo", shard), found)
