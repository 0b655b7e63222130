"""The text of windows and steps (released evaluation's rules; paper Sec. 4.1)."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stepline.asr.transcript import Sentence, read
from stepline.datasets.schema import Recording, Release
from stepline.datasets.studies import Study

Source = Literal["released", "asr"]


def window(t_s: float, length_s: float, duration_s: float) -> tuple[float, float]:
    """Return start and end of the window centred at ``t_s``, clipped to the recording, never shifted."""
    return max(0.0, t_s - length_s / 2), min(duration_s, t_s + length_s / 2)


def transcript_path(study: Study, release: str, video: str, *, source: Source, engine: str) -> Path:
    """Return where the transcript of ``video`` stands."""
    if source == "released":
        return study.folder(release) / "data" / "transcripts" / f"{video}.csv"
    return Path("datasets") / study.name / "transcripts" / engine / f"{video}.csv"


def load_text(study: Study, release: Release, video: str, *, source: Source, engine: str) -> "RecordingText":
    """Return the text of one recording. The released files are cp1252, ours UTF-8."""
    path = transcript_path(study, release.name, video, source=source, engine=engine)
    sentences = read(path, "cp1252" if source == "released" else "utf-8")
    return RecordingText(release.recordings[video], sentences, recognised=source == "asr")


@dataclass(frozen=True)
class RecordingText:
    """Sentences of a recording, in time order and not overlapping, and its steps.

    recognised: whether the steps' narration is taken from the sentences too, as it was for the release (a step's
    transcript is the sentences that overlap its animation), instead of from the release.
    """

    recording: Recording
    sentences: tuple[Sentence, ...]
    recognised: bool

    def __post_init__(self) -> None:
        """Index the sentences by time."""
        object.__setattr__(self, "_starts", [sentence.start_s for sentence in self.sentences])
        object.__setattr__(self, "_ends", [sentence.end_s for sentence in self.sentences])

    def between(self, start_s: float, end_s: float) -> str:
        """Return the whole sentences that overlap the open interval, joined by spaces (strict at both ends)."""
        first = bisect_right(self._ends, start_s)  # type: ignore[attr-defined]
        last = bisect_left(self._starts, end_s)  # type: ignore[attr-defined]
        return " ".join(sentence.text for sentence in self.sentences[first:last])

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
