"""What an engine is: it answers to chunks of audio, and its answers hold sentences."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stepline.asr.transcript import Sentence
from stepline.errors import SteplineError


class RecognitionError(SteplineError):
    """A recording that could not be transcribed now; another run may."""


class Engine(Protocol):
    """A recogniser. An answer depends on the chunk and ``parameters`` alone, so that it can be kept.

    concurrency: how many chunks may be asked at once, from as many threads.
    """

    @property
    def parameters(self) -> Mapping[str, Any]: ...  # noqa: D102

    @property
    def concurrency(self) -> int: ...  # noqa: D102

    def answer(self, samples: NDArray[np.int16]) -> bytes:
        """Return what the engine makes of ``samples`` (16 kHz mono), as JSON.

        Raises RecognitionError where it cannot now, MissingError where it lacks something.
        """

    def sentences(self, answer: bytes) -> list[Sentence]:
        """Return what is said, with times in seconds from the first sample.

        Raises RecognitionError where this is no answer.
        """
