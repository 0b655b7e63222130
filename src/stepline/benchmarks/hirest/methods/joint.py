"""The joint model (Sec. 4.2): moments, steps and captions from frames, the query and speech."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepline.backbones.sentence import sentence_spec
from stepline.backbones.weights import locate
from stepline.benchmark import Method
from stepline.benchmarks.hirest import texts
from stepline.benchmarks.hirest.benchmark import HEADS
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.benchmarks.hirest.methods.found import found
from stepline.datasets.hirest import Pair
from stepline.errors import ConfigError
from stepline.models.hirest_joint_words import Words
from stepline.progress import progress
from stepline.spec import digest

if TYPE_CHECKING:
    from stepline.models.hirest_joint import Joint
    from stepline.models.hirest_joint_config import JointConfig
    from stepline.models.hirest_joint_training import Example

Floats = NDArray[np.float32]


class JointMethod(Method[HirestInputs, Found]):
    """The joint model, fitted on train; the epoch with the lowest loss on val is kept."""

    def fit(self, inputs: HirestInputs, seed: int, path: Path) -> None:
        """Fit the three tasks on train, starting from CLIP4Caption's weights unless configured otherwise."""
        from stepline.models.hirest_joint_training import fit_joint

        options, seen = inputs.options["joint"], Seen(inputs)
        train, val = inputs.used("train"), inputs.used("val")
        begin = _weights("clip4caption") if options["init"] == "clip4caption" else None
        fit_joint(
            _config(inputs, seen),
            seen.examples(train),
            seen.examples(val),
            path,
            clip4caption=begin,
            mixing=options["mixing"],
            epochs=options["epochs"],
            batch_size=options["batch_size"],
            learning_rate=options["learning_rate"],
            weight_decay=options["weight_decay"],
            clip=options["clip"],
            seed=seed,
            device=inputs.device,
            resume=digest([inputs.spec, [pair.video for pair in [*train, *val]]]),
            what=f"{inputs.entry.id}, seed {seed}",
        )

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the predictions of each seed's model; raise StoreError if a checkpoint is absent or damaged."""
        from stepline.models.hirest_joint import Joint
        from stepline.models.training import loaded, restore

        used, listed = len(inputs.used("train")), len(inputs.truth("train"))
        self.selection = f"fitted on {used} of {listed} training moments; epoch with the lowest validation loss"
        seen = Seen(inputs)
        for seed, path in zip(inputs.entry.seeds, fits, strict=True):
            with loaded(path) as parameters:
                model = restore(Joint(_config(inputs, seen)), parameters, inputs.device)
            yield from predictions(inputs, seen, model, seed)


class ReleasedJoint(Method[HirestInputs, Found]):
    """The joint model with the authors' weights."""

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the predictions of the model.

        Raises StoreError if the weights do not match, ConfigError if the features do not have the sizes of EVA-CLIP.
        """
        from stepline.models.hirest_joint_release import load_released

        options = inputs.options["joint"]
        settings = {key: options[key] for key in ("fusion", "caption_frames", "padding")}
        model, seen = load_released(_weights(HEADS["joint_released"]), **settings).to(inputs.device), Seen(inputs)
        sizes = inputs.dimension, len(next(iter(seen.queries.values())))
        if sizes != (model.config.feature_dim, model.config.text_dim):
            raise ConfigError(
                f"config: hirest.features.{inputs.entry.features}: rows have {sizes[0]} and texts {sizes[1]} numbers, "
                f"but the released model needs {model.config.feature_dim} and {model.config.text_dim}: name others"
            )
        yield from predictions(inputs, seen, model, 0)


def predictions(inputs: HirestInputs, seen: "Seen", model: "Joint", seed: int) -> Iterator[Found]:
    """Yield the moment of each pair and, if it has annotated steps, the steps and captions in the true moment.

    The pairs of a split are processed in batches, in the released order; see ``joint.padding``.
    """
    import torch

    from stepline.models.hirest_joint_training import Tables

    size, beams = (inputs.options["joint"][key] for key in ("batch_size", "beam"))
    for split in inputs.entry.splits:
        pairs = inputs.used(split)
        tables = Tables(seen.examples(pairs), model.config, inputs.device)
        stepped = [number for number, pair in enumerate(pairs) if pair.steps]
        said: dict[int, dict[str, object]] = {number: {} for number in range(len(pairs))}
        for some in _batches([*range(len(pairs))], size, f"{inputs.entry.id}, moments of {split}"):
            moments = model.moments(tables.videos(torch.tensor(some))).tolist()
            said |= {number: {"moment": tuple(map(float, each))} for number, each in zip(some, moments, strict=True)}
        for some in _batches(stepped, size, f"{inputs.entry.id}, steps of {split}"):
            videos = tables.videos(torch.tensor(some))
            bounds = model.segments(videos, tables.moments[some].to(inputs.device))
            counts = [len(pairs[number].steps) for number in some]
            video = torch.arange(len(some)).repeat_interleave(torch.tensor(counts))
            of_steps = torch.cat([tables.steps[tables.steps[:, 0] == number, 1:] for number in some])
            ids = iter(model.captions(videos, video.to(inputs.device), of_steps.to(inputs.device), beams=beams))
            for number, edges, count in zip(some, bounds, counts, strict=True):
                said[number]["segments"] = tuple(zip(map(float, edges[:-1]), map(float, edges[1:]), strict=True))
                said[number]["sentences"] = tuple(seen.words.decode(next(ids)) for _ in range(count))
        for number, pair in enumerate(pairs):
            yield found(pair, seed=seed, **said[number])


class Seen:
    """The model's inputs for pairs: features of frames, vectors of queries, and of the speech in each second."""

    def __init__(self, inputs: HirestInputs) -> None:
        self.inputs = inputs
        (name,) = inputs.benchmark.features(inputs.entry)
        self.bank = inputs.each_second(name)
        self.audio = "speech" in inputs.entry.sees
        self.words = Words()

    @cached_property
    def queries(self) -> Mapping[str, Floats]:
        """The vector of each query, not normalised."""
        encoder = texts.query_encoder(self.inputs.benchmark, self.inputs.entry.features, raw=True)
        listed = sorted({pair.query for pair in self._pairs})
        return dict(zip(listed, texts.encoded(encoder, "queries", listed), strict=True))

    @cached_property
    def sentences(self) -> Mapping[str, Floats]:
        """The vector of each line of the transcripts."""
        listed = sorted({each.text for pair in self._pairs for each in self.inputs.subtitles[pair.video]})
        return dict(zip(listed, texts.encoded(texts.sentence_encoder(), "speech", listed), strict=True))

    @property
    def _pairs(self) -> list[Pair]:
        return [
            pair for split in self.inputs.splits(self.inputs.stage or "predict") for pair in self.inputs.used(split)
        ]

    def examples(self, pairs: Sequence[Pair]) -> "list[Example]":
        """Return the inputs and targets of pairs. An unknown moment is the whole video."""
        return [self._example(pair) for pair in progress(pairs, what="reading features", unit="videos")]

    def _example(self, pair: Pair) -> "Example":
        from stepline.models.hirest_joint_frames import boundaries, frame_of
        from stepline.models.hirest_joint_training import Example

        features = self._frames(pair)
        n = len(features)
        start_s, end_s = pair.bounds_s or (0.0, pair.duration_s)
        steps_s = [(step.start_s, step.end_s) for step in pair.steps]
        return Example(
            features=features,
            query=self.queries[pair.query],
            speech=self._speech(pair, n) if self.audio else None,
            moment=(frame_of(start_s, n), frame_of(end_s, n)),
            boundaries=boundaries(steps_s, n),
            steps=[(frame_of(start_s, n), frame_of(end_s, n)) for start_s, end_s in steps_s],
            captions=[self.words.encode(step.caption) for step in pair.steps],
        )

    def _frames(self, pair: Pair) -> Floats:
        """Return (T, D) rows of unit length, one per second; T is at most the rounded duration."""
        rows = np.asarray(self.bank[pair.video], np.float32)[: max(1, round(pair.duration_s))]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: Floats = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
        return unit

    def _speech(self, pair: Pair, n: int) -> Floats:
        """Return the (n, 384) vectors of the speech in each second, zeros in silence."""
        from stepline.models.hirest_joint_frames import speech_rows

        said = self.inputs.subtitles[pair.video]
        vectors = np.zeros((len(said) + 1, sentence_spec(texts.SENTENCES).dimension), np.float32)
        for number, each in enumerate(said):
            vectors[number] = self.sentences[each.text]
        return vectors[speech_rows([(each.start_s, each.end_s) for each in said], n)]


def _batches(numbers: Sequence[int], size: int, what: str) -> Iterator[list[int]]:
    """Yield parts of ``numbers`` of length ``size``; the last one may be shorter."""
    starts = range(0, len(numbers), size)
    for start in progress(starts, what=what, unit="batches"):
        yield list(numbers[start : start + size])


def _weights(name: str) -> Path:
    """Return the path of weights that are a single file."""
    (path,) = (locate(name) or {}).values()
    return path


def _config(inputs: HirestInputs, seen: Seen) -> "JointConfig":
    from stepline.models.hirest_joint_config import JointConfig

    options = inputs.options["joint"]
    return JointConfig(
        feature_dim=inputs.dimension,
        text_dim=len(next(iter(seen.queries.values()))),
        hidden=options["hidden"],
        feedforward=4 * options["hidden"],
        layers=options["layers"],
        fusion=options["fusion"],
        caption_frames=options["caption_frames"],
        padding=options["padding"],
        audio=seen.audio,
    )
