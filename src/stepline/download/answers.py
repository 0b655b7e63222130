"""Clients of JSON services. Responses are limited in length and time, and API keys are removed from them."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx

from stepline.errors import DownloadError

MOST_BYTES = 64 << 20
"""The maximum length of a response."""


def service_client(*, timeout_s: float, **options: Any) -> httpx.Client:
    """Return a client that follows no redirects and waits ``timeout_s`` for a response, and as long for its body.

    Reading a response raises DownloadError if it has more than ``MOST_BYTES`` or is compressed, and httpx.ReadTimeout
    if it takes too long.
    """

    def bound(response: httpx.Response) -> None:
        if (coding := response.headers.get("content-encoding", "identity")) != "identity":
            raise DownloadError(f"{response.url.host}: the response is compressed ({coding}), which was not requested")
        response.stream = _Bounded(response.stream, time.monotonic() + timeout_s, response.url.host)  # type: ignore[arg-type]

    headers = {"Accept-Encoding": "identity"} | options.pop("headers", {})
    return httpx.Client(headers=headers, timeout=timeout_s, event_hooks={"response": [bound]}, **options)


class _Bounded(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream, until: float, host: str) -> None:
        self._stream, self._until, self._host = stream, until, host

    def __iter__(self) -> Iterator[bytes]:
        came = 0
        for chunk in self._stream:
            came += len(chunk)
            if came > MOST_BYTES:
                raise DownloadError(f"{self._host}: the answer has more than {MOST_BYTES} bytes")
            if time.monotonic() > self._until:
                raise httpx.ReadTimeout("the answer does not end")
            yield chunk

    def close(self) -> None:
        self._stream.close()


def without_key(answer: Any, key: str) -> Any:
    """Return a JSON value in which ``***`` replaces the key, because a service may repeat it.

    A key of less than 16 characters is a placeholder for a local service. It is kept, as it may occur by chance.
    """
    if len(key) < 16:
        return answer
    quoted = json.dumps(key)[1:-1]
    return json.loads(json.dumps(answer).replace(quoted, "***"))
