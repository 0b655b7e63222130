"""Clients of JSON services. Answers are limited in length and time, checked, and API keys are removed from them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import httpx

from stepline.config.check import first_error
from stepline.download.host import within
from stepline.errors import DownloadError

MOST_BYTES = 64 << 20
"""The maximum length of a response."""


def service_client(schema: Mapping[str, Any], *, timeout_s: float, **options: Any) -> httpx.Client:
    """Return a client that follows no redirects and waits ``timeout_s`` for a whole response.

    A request raises DownloadError if the response has more than ``MOST_BYTES``, is compressed, or is a success that
    ``checked`` refuses; httpx.ReadTimeout if it takes too long.
    """

    def bound(response: httpx.Response) -> None:
        try:
            if (coding := response.headers.get("content-encoding", "").lower()) not in ("", "identity"):
                raise DownloadError(f"the response is compressed ({coding}), which was not requested")
            response.stream = _Bounded(response.stream)  # type: ignore[arg-type]
            response.read()
            response.encoding = "utf-8"  # a server may name any of Python's codecs, such as zlib
            if response.is_success:
                checked(response.content, schema)
        except DownloadError as error:
            raise DownloadError(f"{response.url.host}: {error}") from None

    headers = {"Accept-Encoding": "identity"} | options.pop("headers", {})
    return _Client(headers=headers, timeout=timeout_s, event_hooks={"response": [bound]}, **options)


class _Client(httpx.Client):
    def send(self, *arguments: Any, **options: Any) -> httpx.Response:
        assert self.timeout.read is not None
        return within(self.timeout.read, lambda: super(_Client, self).send(*arguments, **options))


class _Bounded(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        came = 0
        for chunk in self._stream:
            came += len(chunk)
            if came > MOST_BYTES:
                raise DownloadError(f"the answer has more than {MOST_BYTES} bytes")
            yield chunk

    def close(self) -> None:
        self._stream.close()


def checked(answer: bytes, schema: Mapping[str, Any] | None = None) -> Any:
    """Return the JSON value of an answer; nothing else is cached or used.

    Raises DownloadError, which repeats no part of the answer, if it is not JSON in UTF-8, contains NaN, infinity or a
    lone surrogate, or does not fit ``schema``, in which numbers are finite.
    """
    try:
        value = json.loads(answer.decode(), parse_constant=_refused)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise DownloadError(f"the answer is not JSON: {error}") from None
    if schema and (first := first_error(value, schema)):
        raise DownloadError(f"the answer is invalid at {first.json_path} ({first.validator}: {first.validator_value})")
    return value


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def without_key(answer: Any, key: str) -> Any:
    """Return a JSON value in which ``***`` replaces the key, because a service may repeat it.

    A key of less than 16 characters is a placeholder for a local service. It is kept, as it may occur by chance.
    """
    if len(key) < 16:
        return answer
    quoted = json.dumps(key)[1:-1]
    return json.loads(json.dumps(answer).replace(quoted, "***"))
