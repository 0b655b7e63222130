"""PocketSphinx, with the US English model that its package carries."""

import io
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stepline.asr.transcript import Sentence
from stepline.media.audio import RATE


class PocketSphinx:
    """A recogniser for one recording, chunk after chunk. It may adapt to the recording: take a new one for the next."""

    def __init__(self) -> None:
        """Load the model."""
        from pocketsphinx import Decoder

        self._decoder = Decoder(loglevel="FATAL")

    def __call__(self, samples: NDArray[np.int16]) -> Iterator[Sentence]:
        """Yield what is said in ``samples`` (16 kHz mono): one sentence per stretch of speech between pauses.

        Times are in seconds from the first sample. A stretch in which no word is recognised is left out. A second of
        silence is added, so that speech which lasts to the end is closed.
        """
        from pocketsphinx import Segmenter

        stream = io.BytesIO(samples.tobytes() + bytes(2 * RATE))
        for speech in Segmenter(sample_rate=RATE).segment(stream):
            self._decoder.start_utt()
            self._decoder.process_raw(speech.pcm, full_utt=True)
            self._decoder.end_utt()
            hypothesis = self._decoder.hyp()
            if hypothesis is not None and hypothesis.hypstr:
                yield Sentence(hypothesis.hypstr, speech.start_time, min(speech.end_time, len(samples) / RATE))
