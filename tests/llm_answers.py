"""What a language model's service answers, in the schema of OpenAI's chat completions."""

import json
from typing import Any

from tests.server import Reply, Request

KEY = "sk-loopback-0123456789abcdef"


def question(request: Request) -> str:
    """Return the last message of a request."""
    asked: str = request.json["messages"][-1]["content"]
    return asked


def completion(text: str | None) -> Reply:
    """Return the answer of this text."""
    message = {"role": "assistant", "content": text}
    answer: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "small-0125",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
    }
    return Reply(body=json.dumps(answer).encode())
