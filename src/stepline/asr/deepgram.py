"""Deepgram, a service that charges per second of audio: one request per chunk.

https://developers.deepgram.com/reference/speech-to-text/listen-pre-recorded
"""

import io
import json
import math
import re
import wave
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from stepline.asr.engine import Heard, lacks
from stepline.asr.engines import KEYS, absent_key, key
from stepline.asr.languages import AUTO, ENGLISH, TAG, Spoken
from stepline.asr.transcript import Sentence, Word
from stepline.download import WorthRetryingError, may_pass, retried, retry_after, unreachable
from stepline.download.answers import checked, service_client, without_key
from stepline.errors import DownloadError, MissingError
from stepline.media.audio import RATE

if TYPE_CHECKING:
    from deepgram import DeepgramClient
    from deepgram.core.api_error import ApiError

PARAMETERS = {"punctuate": True, "utterances": True}
ATTEMPTS = 4
LONGEST_WAIT_S = 600.0
"""If the service requests a longer wait, the request is left to another run."""
TIMEOUT_S = 600.0
_NUMBER = {"type": "number", "minimum": 0}
_TEXT = {"type": "string"}
_SAID = {
    "type": "object",
    "required": ["start", "end", "confidence"],
    "properties": {
        "start": _NUMBER,
        "end": _NUMBER,
        "confidence": _NUMBER,
        "word": _TEXT,
        "punctuated_word": _TEXT,
        "transcript": _TEXT,
        "words": {"type": "array", "items": {"$ref": "#/$defs/said", "required": ["word"]}},
    },
}
ANSWER = {
    "$defs": {"said": _SAID},
    "type": "object",
    "required": ["results"],
    "properties": {
        "metadata": {"type": "object", "properties": {"duration": {"type": ["number", "null"], "minimum": 0}}},
        "results": {
            "type": "object",
            "required": ["utterances"],
            "properties": {
                "utterances": {"type": "array", "items": {"$ref": "#/$defs/said", "required": ["transcript", "words"]}},
                "channels": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "detected_language": {"type": ["string", "null"]},
                            "language_confidence": {"type": ["number", "null"], "minimum": 0},
                        },
                    },
                },
            },
        },
    },
}
"""The schema of an answer: what is read of it, in the service's own terms."""
VARIABLE = KEYS["deepgram"]


class Deepgram:
    """A recogniser. model: the service's name of it. url: its scheme and host. concurrency: parallel requests.

    language: a tag that the model knows, or ``auto``, which lets the service detect the language of each chunk.
    """

    def __init__(self, *, model: str, url: str, concurrency: int, language: str = ENGLISH) -> None:
        """Prepare the requests; nothing is sent yet. If all answers are cached, neither key nor network is needed."""
        asked = {"detect_language": True} if language == AUTO else {"language": language}
        self.parameters: dict[str, Any] = PARAMETERS | asked | {"model": model}
        self.concurrency = concurrency
        self._url = url.rstrip("/")

    def answer(self, samples: NDArray[np.int16]) -> bytes:
        """Return the service's answer. If it covers less than the audio, the service is asked once more.

        Raises DownloadError if the service cannot be reached, refuses the audio or sends an invalid answer, and
        MissingError if it refuses the key or there is no key.
        """
        _check_key()
        if reason := unreachable(self._url):
            raise DownloadError(reason)
        wav = _wav(samples)

        def ask() -> bytes:
            return retried(lambda: self._ask(wav), attempts=ATTEMPTS, longest_wait_s=LONGEST_WAIT_S, prefix=self._host)

        answer = ask()
        if lacks(self.heard(answer).covered_s, samples):
            answer = max(answer, ask(), key=lambda each: self.heard(each).covered_s)
        return answer

    @property
    def _host(self) -> str:
        return f"{urlsplit(self._url).hostname}: "

    def _ask(self, wav: bytes) -> bytes:
        from deepgram.core.api_error import ApiError
        from deepgram.core.jsonable_encoder import jsonable_encoder

        try:
            answer = self._client.listen.v1.media.transcribe_file(
                request=wav, request_options={"max_retries": 0}, **self.parameters
            )
            return json.dumps(without_key(jsonable_encoder(answer), key("deepgram"))).encode()
        except ApiError as error:
            self._refuse(error)

    @cached_property
    def _client(self) -> "DeepgramClient":
        from deepgram import DeepgramClient
        from deepgram.environment import DeepgramClientEnvironment

        return DeepgramClient(
            api_key=key("deepgram"),
            environment=DeepgramClientEnvironment(base=self._url, production="", agent="", agent_rest=""),
            timeout=TIMEOUT_S,
            httpx_client=service_client(ANSWER, timeout_s=TIMEOUT_S),
        )

    def _refuse(self, error: "ApiError") -> NoReturn:
        status = error.status_code or 0
        if status == 200:
            raise DownloadError(f"{self._host}the answer is invalid")
        body = error.body if isinstance(error.body, str) else json.dumps(error.body, separators=(",", ":"))
        said = " ".join(body.replace(key("deepgram"), "***").split())[:200]
        reason = f"HTTP {status}: {said}"
        if may_pass(status):
            raise WorthRetryingError(reason, retry_after(error.headers or {}))
        if status in (401, 403):
            raise MissingError(f"the key in {VARIABLE} is refused: {self._host}{reason}")
        raise DownloadError(f"{self._host}{reason}")

    def heard(self, answer: bytes) -> Heard:
        """Return one sentence per utterance, delimited by pauses of 0.8 s, with the service's confidences.

        The audio is covered to the end of the last utterance if that is after the length that the answer states.
        """
        found = checked(answer, ANSWER)
        said = [_sentence(utterance) for utterance in found["results"]["utterances"]]
        if any(span.end_s < span.start_s for span in Heard(said).spans()):
            raise DownloadError("the answer has text that ends before it starts")
        stated_s = found.get("metadata", {}).get("duration")
        covered_s = math.inf if stated_s is None else max([stated_s, *(sentence.end_s for sentence in said)])
        return Heard(said, _spoken(found["results"]), covered_s)


def _spoken(results: dict[str, Any]) -> Spoken | None:
    """Return the language that the service detected, with its confidence; None without speech or detection."""
    channel: dict[str, Any] = next(iter(results.get("channels", [])), {})
    language = channel.get("detected_language")
    if language is None or not TAG.fullmatch(language):
        return None
    probability = channel.get("language_confidence")
    return Spoken(language, None if probability is None else min(1.0, float(probability)))


def _sentence(utterance: dict[str, Any]) -> Sentence:
    words = tuple(Word(word.get("punctuated_word", word["word"]), *_span(word)) for word in utterance["words"])
    return Sentence(utterance["transcript"], *_span(utterance), words)


def _span(said: dict[str, Any]) -> tuple[float, float, float]:
    """Return start, end and confidence."""
    return float(said["start"]), float(said["end"]), float(said["confidence"])


def _check_key() -> None:
    if absent_key("deepgram"):
        raise MissingError(f"{VARIABLE} is not set: export {VARIABLE}=... and run the same command again")
    if not re.fullmatch("[!-~]+", key("deepgram")):
        raise MissingError(f"{VARIABLE} contains spaces or characters that no key has: copy it again")


def _wav(samples: NDArray[np.int16]) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    return buffer.getvalue()
