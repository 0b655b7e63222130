"""The retry policy of all clients: which errors are retried, the waits between attempts, and when to give up."""

import socket
import ssl
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from stepline.download.host import shown
from stepline.errors import DownloadError

Result = TypeVar("Result")
LONGEST = 500
"""Maximum number of characters of an error's text, which may repeat what a server sent."""
BACKOFF_S = 1.0
"""The wait before the second attempt; it doubles with each further attempt."""


class WorthRetryingError(Exception):
    """A failure that another attempt may avoid. wait_s: the wait that the server requests, or 0."""

    def __init__(self, reason: str, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class EnoughError(DownloadError):
    """The server requests a longer wait than the policy allows."""


def retried(
    attempt: Callable[[], Result],
    *,
    attempts: int,
    longest_wait_s: float,
    prefix: str = "",
    sleep: Callable[[float], bool | None] | None = None,
) -> Result:
    """Return the result of ``attempt``, which is called again after a lost connection or a WorthRetryingError.

    The wait is the one that the server requests, but at least ``BACKOFF_S``, which doubles. prefix: of the reason in
    errors. sleep: waits, and returns True to stop further attempts; ``time.sleep`` by default.
    Raises EnoughError if the server requests more than ``longest_wait_s`` seconds. Raises DownloadError after the last
    of ``attempts``, or at once for a permanent error: an invalid address or answer, endless redirects, an invalid
    certificate, or an unknown host name.
    """
    import httpx

    for number in range(1, attempts + 1):
        try:
            return attempt()
        except (httpx.InvalidURL, ValueError, RecursionError) as error:
            raise DownloadError(f"{prefix}{shown(str(error))[:LONGEST]}") from None
        except (httpx.RequestError, WorthRetryingError) as error:
            reason = f"{prefix}{shown(' '.join(str(error).split()))[:LONGEST] or type(error).__name__}"
            if _for_good(error):
                raise DownloadError(reason) from None
            asked_s = getattr(error, "wait_s", 0.0)
        if asked_s > longest_wait_s:
            raise EnoughError(f"{reason}, requests a wait of {asked_s:.0f} s")
        if number == attempts or (sleep or time.sleep)(max(asked_s, BACKOFF_S * 2 ** (number - 1))):
            break
    raise DownloadError(f"{reason} ({number} attempts)")


def _for_good(error: BaseException | None) -> bool:
    """Return whether the error is permanent for this request."""
    import httpx

    kinds = httpx.TooManyRedirects, httpx.UnsupportedProtocol, httpx.InvalidURL, ssl.SSLCertVerificationError
    while error is not None:
        if isinstance(error, kinds):
            return True
        if isinstance(error, socket.gaierror) and error.errno in (socket.EAI_NONAME, socket.EAI_NODATA):
            return True
        error = error.__cause__ or error.__context__
    return False


def may_pass(status: int) -> bool:
    """Return whether a status may change if the request is repeated, as in OpenAI's and Deepgram's own clients."""
    return status in (408, 409, 429) or status >= 500


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the wait that the server requests in seconds, or 0 (RFC 9110, 10.2.3)."""
    asked = headers.get("retry-after", "")
    if asked.isdecimal():
        return float(asked)
    try:
        return max(0.0, (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return 0.0
