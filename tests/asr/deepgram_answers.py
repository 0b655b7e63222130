"""What Deepgram's service answers, in its schema."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from stepline.media.audio import RATE
from tests.server import Reply, Request

KEY = "0123456789abcdef-loopback-key"

Said = Iterable[tuple[str, float, float]]


def keyed(reply: Callable[[Request], Reply]) -> Callable[[Request], Reply]:
    """Refuse requests with another key, and state the length of the audio where an answer states none."""

    def answer(request: Request) -> Reply:
        given = reply(request)
        if request.headers["Authorization"] == f"Token {KEY}":
            stated = f'"duration": {len(pcm(request)) / 2 / RATE}'.encode()
            told = isinstance(given.body, bytes)
            return replace(given, body=given.body.replace(b'"duration": null', stated)) if told else given
        return Reply(401, b'{"err_code":"INVALID_AUTH","err_msg":"Invalid credentials.","request_id":"1"}')

    return answer


def pcm(request: Request) -> bytes:
    """Return the samples of the WAV file that was sent."""
    return request.body[44:]


def listened(said: Said, duration_s: float | None = None) -> Reply:
    """Return the answer where ``said`` (text, start and end in s) is heard. duration_s: stated; None: the whole."""
    return Reply(body=json.dumps(response(said, duration_s)).encode())


def response(said: Said, duration_s: float | None = None) -> dict[str, Any]:
    """Return the same as JSON."""
    utterances = []
    for number, (text, start_s, end_s) in enumerate(said):
        spoken = text.split()
        each_s = (end_s - start_s) / len(spoken)
        words = [
            {
                "word": re.sub(r"[^a-z']", "", word.lower()),
                "start": round(start_s + i * each_s, 3),
                "end": round(start_s + (i + 1) * each_s, 3),
                "confidence": 0.99,
                "punctuated_word": word,
            }
            for i, word in enumerate(spoken)
        ]
        utterance = {"start": start_s, "end": end_s, "confidence": 0.99, "channel": 0, "transcript": text}
        utterances.append(utterance | {"words": words, "id": f"00000000-0000-4000-8000-{number:012d}"})
    heard = {
        "transcript": " ".join(u["transcript"] for u in utterances),
        "confidence": 0.99,
        "words": [word for u in utterances for word in u["words"]],
    }
    return {
        "metadata": {
            "transaction_key": "deprecated",
            "request_id": "00000000-0000-4000-8000-000000000000",
            "sha256": "0" * 64,
            "created": "2026-01-01T00:00:00.000Z",
            "duration": duration_s,
            "channels": 1,
            "models": ["1"],
            "model_info": {"1": {"name": "general-nova-3", "version": "1", "arch": "nova-3"}},
        },
        "results": {"channels": [{"alternatives": [heard]}], "utterances": utterances},
    }
