"""Videos with the steps of their articles, as inputs of heads, and predictions from the outputs of heads."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import Entry
from stepline.benchmarks.htstep import texts
from stepline.benchmarks.htstep.inputs import HtstepInputs, Narrated
from stepline.benchmarks.htstep.kinds import Found
from stepline.datasets import htstep_transfer
from stepline.datasets.htstep import Recording, Step
from stepline.datasets.htstep_transfer import Sentence
from stepline.models.grounding import GroundedSegments, GroundedVideo
from stepline.models.narrations import narrated_video
from stepline.models.ordering import ordered_times

if TYPE_CHECKING:
    from stepline.features.text import TextStore

DECIMALS = 9
"""The decimals of compared similarities, so that ties do not depend on rounding errors."""


@dataclass(frozen=True)
class Learned:
    """The training data of a head: videos, and the steps by number."""

    videos: Sequence[GroundedVideo]
    steps: Sequence[Step]

    @property
    def sha256(self) -> str:
        """The sha256 of the annotation and the steps' texts, without the features."""
        found = hashlib.sha256(repr(self.steps).encode())
        for video in self.videos:
            for part in (video.candidates, video.segments_s, video.steps):
                found.update(part.tobytes())
        return found.hexdigest()


class Articles:
    """All steps of the release, numbered by ascending id because ids have gaps."""

    def __init__(self, inputs: HtstepInputs) -> None:
        self.inputs = inputs

    @cached_property
    def steps(self) -> Sequence[Step]:
        """The steps, by number."""
        return [step for _, step in sorted(self.inputs.steps.items())]

    @cached_property
    def _number(self) -> Mapping[int, int]:
        return {step.id: number for number, step in enumerate(self.steps)}

    def video(self, each: Recording) -> GroundedVideo:
        """Return a video of a split."""
        return _grounded(self.inputs.bank(each.split)[each.video], each, self._number)

    def learned(self, seed: int) -> Learned:
        """Return the training data of the entry: annotated videos with steps, or narrated videos."""
        inputs, on = self.inputs, self.inputs.benchmark.trained_on(self.inputs.entry)
        if on == "narrations":
            return self._narrated(inputs.used(on), seed)
        if on == "coin":
            steps = [step for _, step in sorted(htstep_transfer.texts_of("coin").items())]
            number = {step.id: place for place, step in enumerate(steps)}
            listed = [_grounded(inputs.bank(on)[each.video], each, number) for each in inputs.used(on)]
        else:
            steps, listed = list(self.steps), [self.video(each) for each in inputs.used("train")]
        return Learned([each for each in listed if len(each.steps)], steps)

    def _narrated(self, listed: Iterable[Narrated], seed: int) -> Learned:
        """Return narrated videos; each sentence used in training is a separate step."""
        videos, steps, bank = list[GroundedVideo](), list[Step](), self.inputs.bank("narrations")
        for each in listed:
            rows, most = bank[each.video], self.inputs.options["narrations"]["sentences"]
            sentences = [(said.start_s, said.end_s, said.text) for said in each.sentences]
            if video := narrated_video(rows, len(rows), sentences, first=0, most=most, seed=seed):
                numbers = np.arange(len(steps), len(steps) + len(video.candidates))
                videos.append(replace(video, candidates=numbers, steps=numbers))
                steps += [_spoken(each.sentences[number]) for number in video.candidates.tolist()]
        return Learned(videos, steps)


def _spoken(said: Sentence) -> Step:
    return Step(id=-1, activity="", variation="", index=0, headline=said.text, paragraph="")


def _grounded(rows: NDArray[np.floating], each: Recording, number: Mapping[int, int]) -> GroundedVideo:
    return GroundedVideo(
        rows=rows,
        duration_s=float(len(rows)),
        candidates=np.array([number[step] for step in each.steps], np.int64),
        segments_s=np.array([(seg.start_s, seg.end_s) for seg in each.segments], np.float64).reshape(-1, 2),
        steps=np.array([number[segment.step] for segment in each.segments], np.int64),
    )


def step_vectors(inputs: HtstepInputs, entry: Entry, steps: Sequence[Step]) -> NDArray[np.float32]:
    """Return the (S, E) vectors of the steps' texts, which the setting ``input`` selects."""
    made_of = entry.settings["input"]
    listed = [texts.whole(step, made_of) for step in steps]
    return _store(inputs, entry, listed)(listed)


def sentence_vectors(inputs: HtstepInputs, entry: Entry, steps: Sequence[Step]) -> list[NDArray[np.float32]]:
    """Return the (n, E) vectors of each step's sentences, which the setting ``input`` selects."""
    made_of = entry.settings["input"]
    return _parts(inputs, entry, [texts.sentences(step, made_of) for step in steps])


def word_vectors(inputs: HtstepInputs, entry: Entry, steps: Sequence[Step]) -> list[NDArray[np.float32]]:
    """Return the (n, E) vectors of each step's words, each encoded alone."""
    return _parts(inputs, entry, [texts.words(texts.whole(step, entry.settings["input"])) for step in steps])


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return (N, D) vectors scaled to unit length; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: NDArray[np.float64] = np.divide(vectors, lengths, out=np.zeros(vectors.shape), where=lengths > 0)
    return found


def _parts(inputs: HtstepInputs, entry: Entry, listed: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
    rows = _store(inputs, entry, [text for of in listed for text in of])([text for of in listed for text in of])
    return np.split(rows, np.cumsum([len(of) for of in listed])[:-1]) if listed else []


def _store(inputs: HtstepInputs, entry: Entry, listed: Iterable[str]) -> "TextStore":
    key = texts.encoder_of(entry)
    return texts.stored(texts.encoder(inputs.benchmark, key), inputs.release, dict.fromkeys(listed))


def found(
    each: Recording,
    said: GroundedSegments,
    steps: Sequence[Step],
    *,
    seed: int,
    confidence: NDArray[np.floating] | None = None,
) -> Found:
    """Return the prediction for a video. confidence: (T, K), by second and step of the article; None if unknown."""
    times_s: tuple[float, ...] = ()
    ordered_s: tuple[float, ...] = ()
    if confidence is not None:
        times_s = tuple(map(float, confidence.argmax(axis=0)))
        ordered_s = tuple(
            map(float, ordered_times(confidence, skip=None if len(confidence) >= len(each.steps) else 0.0))
        )
    return Found(
        seed=seed,
        split=each.split,
        video=each.video,
        steps=tuple(steps[number].id for number in said.step.tolist()),
        segments=tuple(zip(said.start_s.tolist(), said.end_s.tolist(), strict=True)),
        scores=tuple(said.score.tolist()),
        article=each.steps if confidence is not None else (),
        times_s=times_s,
        ordered_s=ordered_s,
    )
