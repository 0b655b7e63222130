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

from stepline.asr.engine import RecognitionError, lacks
from stepline.asr.engines import KEYS, absent_key, key
from stepline.asr.languages import AUTO, ENGLISH, TAG, Spoken
from stepline.asr.transcript import Sentence, Word
from stepline.download import WorthRetryingError, may_pass, retried, retry_after, unreachable
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

        Raises RecognitionError if the service cannot be reached or refuses the audio, and MissingError if it refuses
        the key or there is no key.
        """
        _check_key()
        if reason := unreachable(self._url):
            raise RecognitionError(reason)
        wav = _wav(samples)

        def ask() -> bytes:
            return retried(lambda: self._ask(wav), attempts=ATTEMPTS, longest_wait_s=LONGEST_WAIT_S, prefix=self._host)

        try:
            answer = ask()
            if lacks(self.covered_s(answer), samples):
                answer = max(answer, ask(), key=self.covered_s)
        except DownloadError as error:
            raise RecognitionError(str(error)) from None
        return answer

    @property
    def _host(self) -> str:
        return f"{urlsplit(self._url).hostname}: "

    def _ask(self, wav: bytes) -> bytes:
        from deepgram.core.api_error import ApiError
        from deepgram.core.jsonable_encoder import jsonable_encoder

        from stepline.download.answers import without_key

        try:
            answer = self._client.listen.v1.media.transcribe_file(
                request=wav, request_options={"max_retries": 0}, **self.parameters
            )
            return json.dumps(without_key(jsonable_encoder(answer), key("deepgram"))).encode()
        except ApiError as error:
            self._refuse(error)
        except RecursionError:
            raise RecognitionError(f"{self._host}the answer is not JSON") from None

    @cached_property
    def _client(self) -> "DeepgramClient":
        from deepgram import DeepgramClient
        from deepgram.environment import DeepgramClientEnvironment

        from stepline.download.answers import service_client

        return DeepgramClient(
            api_key=key("deepgram"),
            environment=DeepgramClientEnvironment(base=self._url, production="", agent="", agent_rest=""),
            timeout=TIMEOUT_S,
            httpx_client=service_client(timeout_s=TIMEOUT_S),
        )

    def _refuse(self, error: "ApiError") -> NoReturn:
        status = error.status_code or 0
        if status == 200:
            raise RecognitionError("the answer is not JSON")
        body = error.body if isinstance(error.body, str) else json.dumps(error.body, separators=(",", ":"))
        said = " ".join(body.replace(key("deepgram"), "***").split())[:200]
        reason = f"HTTP {status}: {said}"
        if may_pass(status):
            raise WorthRetryingError(reason, retry_after(error.headers or {}))
        if status in (401, 403):
            raise MissingError(f"the key in {VARIABLE} is refused: {self._host}{reason}")
        raise RecognitionError(f"{self._host}{reason}")

    def sentences(self, answer: bytes) -> list[Sentence]:
        """Return one sentence per utterance, delimited by pauses of 0.8 s, with the service's confidences."""
        try:
            utterances = json.loads(answer)["results"]["utterances"]
            said = [_sentence(utterance) for utterance in utterances]
        except (ValueError, KeyError, TypeError):
            raise RecognitionError("the answer holds no utterances") from None
        spans: list[Sentence | Word] = [*said, *(word for sentence in said for word in sentence.words)]
        if not all(0 <= span.start_s <= span.end_s < math.inf for span in spans):
            raise RecognitionError("the answer holds an utterance that ends before it starts")
        if not all(span.confidence is not None and span.confidence >= 0 for span in spans):
            raise RecognitionError("the answer holds a missing confidence or one below 0")
        return said

    def covered_s(self, answer: bytes) -> float:
        """Return the length of audio in seconds that an answer states, or the end of its last utterance if it is later.

        An answer that states no length counts as complete: infinity.
        """
        ends_s = [sentence.end_s for sentence in self.sentences(answer)]
        try:
            stated_s = json.loads(answer)["metadata"]["duration"]
        except (KeyError, TypeError):
            return math.inf
        stated = isinstance(stated_s, (int, float)) and stated_s >= 0
        return max([stated_s, *ends_s]) if stated else math.inf

    def spoken(self, answer: bytes) -> Spoken | None:
        """Return the language that the service detected, with its confidence; None without speech or detection."""
        try:
            channel = json.loads(answer)["results"]["channels"][0]
            language, probability = channel.get("detected_language"), channel.get("language_confidence")
        except (KeyError, IndexError, TypeError, AttributeError):
            return None
        if not isinstance(language, str) or not TAG.fullmatch(language):
            return None
        known = isinstance(probability, (int, float)) and 0 <= probability <= 1
        return Spoken(language, float(probability) if known else None)


def _sentence(utterance: dict[str, Any]) -> Sentence:
    words = tuple(
        Word(
            str(word.get("punctuated_word", word["word"])),
            float(word["start"]),
            float(word["end"]),
            float(word["confidence"]),
        )
        for word in utterance["words"]
    )
    start_s, end_s, confidence = (float(utterance[name]) for name in ("start", "end", "confidence"))
    return Sentence(str(utterance["transcript"]), start_s, end_s, confidence, words)


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
