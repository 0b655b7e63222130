"""The answers of Whisper and faster-whisper: segments of the same form."""

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.asr.engine import Heard
from stepline.asr.languages import Spoken
from stepline.asr.transcript import Sentence, Word
from stepline.download.answers import checked
from stepline.media.audio import RATE

WINDOW = 30 * RATE
"""Whisper's window."""
WINDOWS = 5
"""Maximum number of windows in which a language is detected."""


def windows(samples: NDArray[np.int16]) -> list[NDArray[np.float32]]:
    """Return the windows of a chunk in which its language is detected, in [-1, 1].

    They are evenly spaced, from the first to the last 30 s. Silent ones are left out; if all are silent, the window is
    the one that begins with the first sound.
    """
    last, number = max(0, len(samples) - WINDOW), min(WINDOWS, -(-len(samples) // WINDOW))
    parts = [samples[start : start + WINDOW] for start in np.linspace(0, last, number).astype(int)]
    first = int(np.argmax(samples != 0))
    heard = [part for part in parts if part.any()] or [samples[first : first + WINDOW]]
    return [part.astype(np.float32) / np.float32(32768) for part in heard]


def likeliest(probabilities: list[dict[str, float]]) -> Spoken:
    """Return the language with the highest mean probability over windows, the first by code of equal ones."""
    mean = {language: float(np.mean([each[language] for each in probabilities])) for language in probabilities[0]}
    language = min(mean, key=lambda code: (-mean[code], code))
    return Spoken(language, min(1.0, mean[language]))


def answer(found: list[Any], spoken: Spoken | None) -> bytes:
    """Return segments as an answer, with their language if it was detected."""
    heard = {"language": spoken.language, "probability": spoken.probability, "segments": found} if spoken else found
    return json.dumps(heard, default=float).encode()


def heard(answer: bytes) -> Heard:
    """Return one sentence per segment, and the language of an answer if it was detected.

    A sentence's confidence is exp of its tokens' mean log probability. A word's is its tokens' mean probability.
    """
    found = checked(answer)
    detected = isinstance(found, dict)
    said = [
        Sentence(
            segment["text"].strip(),
            segment["start"],
            segment["end"],
            math.exp(segment["avg_logprob"]),
            tuple(
                Word(word["word"].strip(), word["start"], word["end"], word["probability"])
                for word in segment.get("words") or ()
            ),
        )
        for segment in (found["segments"] if detected else found)
    ]
    return Heard(said, Spoken(found["language"], found["probability"]) if detected else None)
