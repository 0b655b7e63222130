"""The interface of an engine: it returns an answer for each chunk of audio, which contains sentences."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from stepline.asr.languages import Spoken
from stepline.asr.transcript import Sentence, Word
from stepline.media.audio import RATE

LEAST_ABSENT_S = 1.0
"""An answer may state a length that is shorter than the audio by less than this, because services round."""


def lacks(covered_s: float, samples: NDArray[np.int16]) -> bool:
    """Return whether an answer that covers the first ``covered_s`` seconds of ``samples`` is incomplete."""
    return covered_s <= len(samples) / RATE - LEAST_ABSENT_S


class Heard(NamedTuple):
    """What an answer contains.

    sentences: with times in seconds from the first sample. spoken: the language that the engine detected; None if it
    detected none. covered_s: the length of the audio that the answer states; infinity if it states none.
    """

    sentences: list[Sentence]
    spoken: Spoken | None = None
    covered_s: float = math.inf

    def spans(self) -> Iterator[Sentence | Word]:
        """Yield all sentences and words."""
        for sentence in self.sentences:
            yield sentence
            yield from sentence.words


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

        Raises DownloadError if it fails this time, and MissingError if it has no key, package or weights.
        """

    def heard(self, answer: bytes) -> Heard:
        """Return what an answer contains; raise DownloadError if the answer is invalid."""
