"""Clients of services that answer in JSON: an answer has a limit of length and of time, and names no key."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx

from stepline.errors import DownloadError

MOST_BYTES = 64 << 20
"""Of an answer."""


def service_client(*, timeout_s: float, **options: Any) -> httpx.Client:
    """Return a client that follows no redirects and waits so long for an answer, and as long for all of its body.

    Reading an answer raises DownloadError where it has more than ``MOST_BYTES`` or is compressed, httpx.ReadTimeout
    where it takes too long.
    """

    def bound(response: httpx.Response) -> None:
        if (coding := response.headers.get("content-encoding", "identity")) != "identity":
            raise DownloadError(f"{response.url.host}: the answer is compressed ({coding}), which was not asked for")
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
    """Return a JSON value in which ``***`` stands for the key, which a service may repeat.

    A key of less than 16 characters is a placeholder, as local services take it, and may stand in an answer by chance.
    """
    if len(key) < 16:
        return answer
    quoted = json.dumps(key)[1:-1]
    return json.loads(json.dumps(answer).replace(quoted, "***"))
