"""Deepgram, a service that is paid by the second of audio: one request per chunk, whose answer is kept.

https://developers.deepgram.com/reference/speech-to-text/listen-pre-recorded
"""

import hashlib
import io
import json
import math
import re
import time
import wave
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
from numpy.typing import NDArray

from stepline.asr.engines import KEYS, absent_key, key
from stepline.asr.transcript import Sentence
from stepline.download import retry_after, unreachable
from stepline.errors import MissingError, SteplineError
from stepline.io import canonical_json, write_bytes
from stepline.media.audio import RATE

PARAMETERS = {"language": "en", "punctuate": "true", "utterances": "true"}
RETRIES = 3
BACKOFF_S = 1.0
"""Wait before the first retry; it doubles with each."""
LONGEST_WAIT_S = 600.0
"""A service that asks for more is asked in another run."""
TIMEOUT = httpx.Timeout(600.0, connect=10.0)
VARIABLE = KEYS["deepgram"]


class RecognitionError(SteplineError):
    """A recording that could not be transcribed now; another run may."""


class Deepgram:
    """A recogniser. The service's answers stand in the folder ``answers``: none is paid for twice.

    url: scheme and host of the service; model: as the service names it.
    """

    def __init__(self, *, model: str, url: str, answers: Path) -> None:
        """Ask nothing yet: where all answers are there, neither key nor network is needed."""
        self._parameters = PARAMETERS | {"model": model}
        self._url = url.rstrip("/")
        self._answers = answers

    def __call__(self, samples: NDArray[np.int16]) -> Iterator[Sentence]:
        """Yield what is said in ``samples`` (16 kHz mono): one sentence per utterance, between pauses of 0.8 s.

        Times are in seconds from the first sample; starts ascend. Raises RecognitionError where the service cannot be
        had or refuses the audio, MissingError where it refuses the key or there is none.
        """
        wav = _wav(samples)
        name = hashlib.sha256(canonical_json(self._parameters).encode() + wav).hexdigest()
        path = self._answers / f"{name}.json"
        if path.is_file():
            sentences = _sentences(path.read_bytes())
        else:
            answer = self._ask(wav)
            sentences = _sentences(answer)
            write_bytes(path, answer)
        duration_s = len(samples) / RATE
        for sentence in sentences:
            yield Sentence(sentence.text, min(sentence.start_s, duration_s), min(sentence.end_s, duration_s))

    def _ask(self, wav: bytes) -> bytes:
        headers = {"Authorization": f"Token {_checked_key()}", "Content-Type": "audio/wav"}
        if reason := unreachable(self._url):
            raise RecognitionError(reason)
        for attempt in range(RETRIES + 1):
            wait_s = BACKOFF_S * 2**attempt
            try:
                response = httpx.post(
                    f"{self._url}/v1/listen", params=self._parameters, content=wav, headers=headers, timeout=TIMEOUT
                )
            except httpx.RequestError as error:
                reason = str(error) or type(error).__name__
            else:
                if response.status_code == 200:
                    return response.content
                reason = _refusal(response)
                wait_s = retry_after(response) or wait_s
            if wait_s > LONGEST_WAIT_S:
                raise RecognitionError(f"{reason}; asks to wait {wait_s:.0f} s")
            if attempt < RETRIES:
                time.sleep(wait_s)
        raise RecognitionError(f"{reason} ({RETRIES + 1} attempts)")


def _checked_key() -> str:
    if absent_key("deepgram"):
        raise MissingError(f"{VARIABLE} is unset: export {VARIABLE}=... and run the same again")
    value = key("deepgram")
    if not re.fullmatch("[!-~]+", value):
        raise MissingError(f"{VARIABLE} holds spaces or letters that no key has: copy it again")
    return value


def _refusal(response: httpx.Response) -> str:
    """Return why another attempt may do better; raise where it cannot."""
    said = " ".join(response.text.replace(key("deepgram"), "***").split())[:200]
    reason = f"{response.url.host}: HTTP {response.status_code}: {said}"
    if response.status_code in (401, 403):
        raise MissingError(f"the key in {VARIABLE} is refused: {reason}")
    if response.status_code < 500 and response.status_code not in (408, 429):
        raise RecognitionError(reason)
    return reason


def _wav(samples: NDArray[np.int16]) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    return buffer.getvalue()


def _sentences(answer: bytes) -> list[Sentence]:
    try:
        utterances = json.loads(answer)["results"]["utterances"]
        said = [Sentence(str(u["transcript"]), float(u["start"]), float(u["end"])) for u in utterances]
    except (ValueError, KeyError, TypeError):
        raise RecognitionError("the answer holds no utterances") from None
    if not all(0 <= sentence.start_s <= sentence.end_s < math.inf for sentence in said):
        raise RecognitionError("the answer holds an utterance that ends before it starts")
    return sorted((sentence for sentence in said if sentence.text), key=lambda sentence: sentence.start_s)
