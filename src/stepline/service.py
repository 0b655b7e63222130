"""The service of a language model: its requests, its needs, and the cache key of its answers.

The workflow imports this: nothing heavy is imported.
"""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stepline.config import Config
from stepline.io import canonical_json
from stepline.needs import Need

KEY = "OPENAI_API_KEY"
"""The environment variable with the service's key, if it requires one. The key is never written anywhere."""
Content = str | list[dict[str, Any]]
"""Text, or parts in order: ``{"type": "text", "text": ...}`` and ``{"type": "image_url", "image_url": {"url": ...}}``
with a picture as a data URI."""
Conversation = list[dict[str, Content]]
"""Messages with ``role`` (system, user or assistant) and ``content``."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """A model and the address of its service.

    url: the part before ``/chat/completions``. model: the service's name of it. max_tokens: of an answer, at
    temperature 0 (Spacewalk-18, Appendix E.5). None sends neither, as reasoning models accept neither. concurrency: the
    number of parallel requests.
    """

    url: str
    model: str
    max_tokens: int | None
    concurrency: int

    def request(self, conversation: Conversation) -> dict[str, Any]:
        """Return the body of a request."""
        limit = {} if self.max_tokens is None else {"temperature": 0, "max_tokens": self.max_tokens}
        return {"model": self.model, "messages": conversation, **limit}

    def identity(self, conversation: Conversation) -> str:
        """Return the sha256 of the request, with its pictures, and of its address.

        The address is included because two services may use the same name for different models.
        """
        asked = [self.url.rstrip("/"), self.request(conversation)]
        return hashlib.sha256(canonical_json(asked).encode()).hexdigest()


def api_key() -> str:
    """Return the service's key from the environment, or "" if it is not set."""
    return os.environ.get(KEY, "").strip()


def is_openai(url: str) -> bool:
    """Return whether ``url`` is OpenAI's own service, which requires a key."""
    return urlsplit(url).hostname == "api.openai.com"


def missing(study: str, options: Config, made: Iterable[Path]) -> list[Need]:
    """Return the needs of a study for a model name and a key.

    options: its block ``llm``. made: the predictions that need answers; if all of them exist, no key is needed.
    """
    model = [] if options["model"] else [Need("config", f"{study}.llm.model", "NAME")]
    unpaid = is_openai(options["url"]) and not api_key() and not all(path.exists() for path in made)
    return [*model, *([Need("key", KEY)] if unpaid else [])]


def record(options: Config) -> dict[str, Any]:
    """Return the part of the block ``llm`` that determines answers: all but the number of parallel requests."""
    return {name: value for name, value in options.items() if name != "concurrency"}
