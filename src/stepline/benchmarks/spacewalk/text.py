"""The text of windows and steps (released evaluation's rules; paper Sec. 4.1)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stepline import paths
from stepline.asr import released, transcript
from stepline.asr.transcript import Sentence
from stepline.datasets.schema import Recording, Release
from stepline.datasets.studies import Study

Source = Literal["released", "asr"]


def window(t_s: float, length_s: float, duration_s: float) -> tuple[float, float]:
    """Return start and end of the window centred at ``t_s``, clipped to the recording, never shifted."""
    return max(0.0, t_s - length_s / 2), min(duration_s, t_s + length_s / 2)


def load_text(study: Study, release: Release, video: str, *, source: Source, engine: str) -> "RecordingText":
    """Return the text of one recording.

    Raises StoreError where our transcript is damaged, ReleaseError where a released one is not as it was fetched.
    """
    if source == "released":
        sentences = released.read(study.release_file(release.name, f"data/transcripts/{video}.csv"))
    else:
        sentences = transcript.read(paths.transcripts(study.name, engine) / f"{video}.parquet")
    return RecordingText(release.recordings[video], sentences, recognised=source == "asr")


@dataclass(frozen=True)
class RecordingText:
    """Sentences of a recording, in any order, and its steps.

    recognised: whether the steps' narration is taken from the sentences too, as it was for the release (a step's
    transcript is the sentences that overlap its animation), instead of from the release.
    """

    recording: Recording
    sentences: tuple[Sentence, ...]
    recognised: bool

    @cached_property
    def _spans_s(self) -> NDArray[np.float64]:
        spans = [(sentence.start_s, sentence.end_s) for sentence in self.sentences]
        return np.array(spans, dtype=np.float64).reshape(-1, 2).T.copy()

    def between(self, start_s: float, end_s: float) -> str:
        """Return the whole sentences that overlap the open interval, joined by spaces (strict at both ends)."""
        starts_s, ends_s = self._spans_s
        inside = np.flatnonzero((starts_s < end_s) & (ends_s > start_s)).tolist()
        return " ".join(self.sentences[number].text for number in inside)

    def window(self, t_s: float, length_s: float) -> str:
        """Return the text of the window of ``length_s`` centred at ``t_s``."""
        return self.between(*window(t_s, length_s, self.recording.duration_s))

    def step_texts(self) -> list[tuple[str, str]]:
        """Return (transcript, caption) of the labels 0..K; for Irrelevant its description stands in both places."""
        irrelevant = self.recording.steps[0].transcript
        texts = [(irrelevant, irrelevant)]
        for step in self.recording.steps[1:]:
            assert step.animation_s is not None
            narration = self.between(*step.animation_s) if self.recognised else step.transcript
            texts.append((narration, step.caption))
        return texts

    def step_documents(self) -> list[str]:
        """Return one document per label 0..K: transcript and caption as released (or as recognised)."""
        recognised = [narration for narration, _ in self.step_texts()]
        return [
            f"{narration if self.recognised else step.transcript} {step.caption}"
            for narration, step in zip(recognised, self.recording.steps, strict=True)
        ]
