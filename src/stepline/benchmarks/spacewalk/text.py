"""Text of windows and steps, by the rules of the released evaluation (paper Sec. 4.1)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepline.asr import released, transcript
from stepline.asr.transcript import Sentence
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.windows import window
from stepline.datasets.schema import Recording, Release

if TYPE_CHECKING:
    from stepline.benchmarks.spacewalk.benchmark import Spacewalk


def load_text(plan: "Spacewalk", release: Release, video: str) -> "RecordingText":
    """Return the text of one recording from the configured source.

    Raises StoreError if our transcript is damaged, ReleaseError if a released one changed after it was fetched.
    """
    recognised = plan.options["transcripts"] == "asr"
    if recognised:
        sentences = transcript.read(plan.pipeline.speech.folder / f"{video}.parquet")
    else:
        sentences = released.read(plan.released.release_file(release.name, f"data/transcripts/{video}.csv"))
    return RecordingText(release.recordings[video], sentences, recognised=recognised)


@dataclass(frozen=True)
class RecordingText:
    """Sentences of a recording, in any order, and its steps.

    recognised: whether a step's narration is read from the sentences that overlap its animation, as in the making of
    the release, instead of from the release.
    """

    recording: Recording
    sentences: tuple[Sentence, ...]
    recognised: bool

    @cached_property
    def _spans_s(self) -> NDArray[np.float64]:
        spans = [(sentence.start_s, sentence.end_s) for sentence in self.sentences]
        return np.array(spans, dtype=np.float64).reshape(-1, 2).T.copy()

    def inside(self, spans_s: Sequence[tuple[float, float]]) -> list[NDArray[np.int64]]:
        """Return, for each open interval in seconds, the indices of the sentences that overlap it."""
        (starts_s, ends_s), (from_s, to_s) = self._spans_s, np.array(spans_s, dtype=np.float64).reshape(-1, 2).T
        first = np.maximum.accumulate(ends_s).searchsorted(from_s, side="right")
        end = np.minimum.accumulate(starts_s[::-1])[::-1].searchsorted(to_s, side="left")
        near = np.maximum(end - first, 0)  # candidates: sentences are in any order
        of = np.repeat(np.arange(len(near)), near)
        numbers = np.arange(len(of)) + np.repeat(first - np.cumsum(near) + near, near)
        overlap = (starts_s[numbers] < to_s[of]) & (ends_s[numbers] > from_s[of])
        counts = np.bincount(of[overlap], minlength=len(near))
        return np.split(numbers[overlap], np.cumsum(counts)[:-1]) if len(near) else []

    def texts(self, spans_s: Sequence[tuple[float, float]]) -> list[str]:
        """Return, for each open interval in seconds, the whole sentences that overlap it, joined by spaces."""
        return [" ".join(self.sentences[number].text for number in each.tolist()) for each in self.inside(spans_s)]

    def between(self, start_s: float, end_s: float) -> str:
        """Return the text of one open interval in seconds."""
        return self.texts([(start_s, end_s)])[0]

    def window(self, t_s: float, length_s: float) -> str:
        """Return the text of the window of ``length_s`` centred at ``t_s``."""
        return self.texts(self.windows_s([t_s], length_s))[0]

    def windows_s(self, times_s: Sequence[float], length_s: float) -> list[tuple[float, float]]:
        """Return the windows of ``length_s`` centred at the times."""
        return [window(t_s, length_s, self.recording.duration_s) for t_s in times_s]

    def windows(self, items: Sequence[Item], length_s: float) -> Iterator[list[str]]:
        """Yield the N texts of the samples' windows; in retrieval, then of the first and second candidates."""
        for times_s in zip(*(item.times_s for item in items), strict=True):
            yield self.texts(self.windows_s(times_s, length_s))

    def sentences_of(self, items: Sequence[Item], length_s: float) -> Iterator[list[NDArray[np.int64]]]:
        """Yield the indices of each window's sentences, in the order of ``windows``."""
        for times_s in zip(*(item.times_s for item in items), strict=True):
            yield self.inside(self.windows_s(times_s, length_s))

    def segments(self, length_s: float) -> list[str]:
        """Return the text of [s, s + length_s) for each whole second s of the recording."""
        return self.texts([(second, second + length_s) for second in range(math.ceil(self.recording.duration_s))])

    def step_texts(self) -> list[tuple[str, str]]:
        """Return (transcript, caption) of the labels 0..K; for Irrelevant, both are its description."""
        irrelevant = self.recording.steps[0].transcript
        texts = [(irrelevant, irrelevant)]
        for step in self.recording.steps[1:]:
            assert step.animation_s is not None
            narration = self.between(*step.animation_s) if self.recognised else step.transcript
            texts.append((narration, step.caption))
        return texts

    def step_documents(self) -> list[str]:
        """Return one document per label 0..K: the released (or recognised) transcript and the caption."""
        narrations = (narration for narration, _ in self.step_texts())
        return [f"{narration} {step.caption}" for narration, step in zip(narrations, self.recording.steps, strict=True)]
