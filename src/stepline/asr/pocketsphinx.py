"""PocketSphinx, with the US English model of its package: https://github.com/cmusphinx/pocketsphinx."""

import io
import json
import re

import numpy as np
from numpy.typing import NDArray

from stepline.asr.engine import Heard
from stepline.asr.engines import recogniser
from stepline.asr.transcript import Sentence, Word
from stepline.download.answers import checked
from stepline.media.audio import RATE

FRAME_RATE = 100
"""The decoder's frames per second."""
FILLER = re.compile(r"<.*>|\[.*\]|\+\+.*\+\+")


class PocketSphinx:
    """A recogniser. It adapts to the audio within one chunk."""

    concurrency = 1

    def __init__(self) -> None:
        """Prepare the parameters; nothing is loaded yet."""
        self.parameters = recogniser("pocketsphinx", {})

    def answer(self, samples: NDArray[np.int16]) -> bytes:
        """Return the stretches of speech between pauses, each with its words and their posterior probabilities.

        A second of silence is appended, so that speech at the end of the chunk is terminated.
        """
        from pocketsphinx import Decoder, Segmenter

        decoder = Decoder(loglevel="FATAL")
        heard = []
        for speech in Segmenter(sample_rate=RATE).segment(io.BytesIO(samples.tobytes() + bytes(2 * RATE))):
            decoder.start_utt()
            decoder.process_raw(speech.pcm, full_utt=True)
            decoder.end_utt()
            words = [
                {"word": word.word, "start_frame": word.start_frame, "end_frame": word.end_frame, "prob": word.prob}
                for word in decoder.seg() or ()
            ]
            heard.append({"start": speech.start_time, "end": speech.end_time, "words": words})
        return json.dumps(heard).encode()

    def heard(self, answer: bytes) -> Heard:
        """Return one sentence per stretch of speech with at least one recognised word.

        A word's confidence is its posterior probability in the decoder's lattice. A sentence's confidence is the mean
        of its words' confidences.
        """
        said = []
        for speech in checked(answer):
            words = tuple(
                Word(
                    re.sub(r"\(\d+\)$", "", word["word"]),
                    speech["start"] + word["start_frame"] / FRAME_RATE,
                    speech["start"] + (word["end_frame"] + 1) / FRAME_RATE,
                    word["prob"],
                )
                for word in speech["words"]
                if not FILLER.fullmatch(word["word"])
            )
            if words:
                text = " ".join(word.text for word in words)
                mean = sum(word.confidence or 0.0 for word in words) / len(words)
                said.append(Sentence(text, speech["start"], speech["end"], mean, words))
        return Heard(said)
