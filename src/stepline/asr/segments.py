"""The answers of Whisper and faster-whisper: segments of the same form."""

import json
import math

from stepline.asr.transcript import Sentence, Word


def sentences(answer: bytes) -> list[Sentence]:
    """Return one sentence per segment.

    A sentence's confidence is exp of its tokens' mean log probability. A word's is its tokens' mean probability.
    """
    return [
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
        for segment in json.loads(answer)
    ]
