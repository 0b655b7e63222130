"""The interface of an engine: it returns an answer for each chunk of audio, which contains sentences."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stepline.asr.languages import Spoken
from stepline.asr.transcript import Sentence
from stepline.errors import SteplineError
from stepline.media.audio import RATE


class RecognitionError(SteplineError):
    """A recording could not be transcribed; another run may succeed."""


LEAST_ABSENT_S = 1.0
"""An answer may state a length that is shorter than the audio by less than this, because services round."""


def lacks(covered_s: float, samples: NDArray[np.int16]) -> bool:
    """Return whether an answer that covers the first ``covered_s`` seconds of ``samples`` is incomplete."""
    return covered_s <= len(samples) / RATE - LEAST_ABSENT_S


class Engine(Protocol):
    """A recogniser. An answer depends only on the chunk and ``parameters``, so that it can be cached.

    concurrency: the number of chunks that may be recognised in parallel, each from its own thread.
    """

    @property
    def parameters(self) -> Mapping[str, Any]: ...  # noqa: D102

    @property
    def concurrency(self) -> int: ...  # noqa: D102

    def answer(self, samples: NDArray[np.int16]) -> bytes:
        """Return the engine's answer for ``samples`` (16 kHz mono), as JSON.

        Raises RecognitionError if it fails this time, and MissingError if it has no key, package or weights.
        """

    def sentences(self, answer: bytes) -> list[Sentence]:
        """Return the sentences of an answer, with times in seconds from the first sample.

        Raises RecognitionError if the answer is invalid.
        """

    def spoken(self, answer: bytes) -> Spoken | None:
        """Return the language that the engine detected in an answer; None if it detected none."""
