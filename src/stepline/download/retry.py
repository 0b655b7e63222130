"""The retry rule of all clients: what is tried again, how long is waited before, and when there is an end."""

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
BACKOFF_S = 1.0
"""Wait before the second attempt; it doubles with each."""


class WorthRetryingError(Exception):
    """A failure after which another attempt may succeed, in ``wait_s`` seconds where the server asks for them."""

    def __init__(self, reason: str, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class EnoughError(DownloadError):
    """A request to a server that asks to be left alone for longer than anyone waits."""


def retried(
    attempt: Callable[[], Result],
    *,
    attempts: int,
    longest_wait_s: float,
    prefix: str = "",
    sleep: Callable[[float], bool | None] | None = None,
) -> Result:
    """Return what ``attempt`` returns; after a lost connection or a WorthRetryingError it is called again.

    What the server asks to wait is waited, and never less than ``BACKOFF_S``, which doubles. prefix: of the reason in
    errors. sleep: waits, True where there shall be no other attempt; ``time.sleep`` by default.
    Raises EnoughError where the server asks for more than ``longest_wait_s`` seconds, DownloadError after the last of
    ``attempts``, or at once where another would fail too: an address that is none, redirects without end, a
    certificate that is not valid, a name that does not exist.
    """
    import httpx

    for number in range(1, attempts + 1):
        try:
            return attempt()
        except httpx.InvalidURL as error:
            raise DownloadError(f"{prefix}{shown(str(error))}") from None
        except (httpx.RequestError, WorthRetryingError) as error:
            reason = f"{prefix}{shown(' '.join(str(error).split())) or type(error).__name__}"
            if _for_good(error):
                raise DownloadError(reason) from None
            asked_s = getattr(error, "wait_s", 0.0)
        if asked_s > longest_wait_s:
            raise EnoughError(f"{reason}, asks to wait {asked_s:.0f} s")
        if number == attempts or (sleep or time.sleep)(max(asked_s, BACKOFF_S * 2 ** (number - 1))):
            break
    raise DownloadError(f"{reason} ({number} attempts)")


def _for_good(error: BaseException | None) -> bool:
    """Return whether the same request would fail in the same way a moment later."""
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
    """Return whether the same request may have another answer later; OpenAI's and Deepgram's own clients agree."""
    return status in (408, 409, 429) or status >= 500


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the wait that the server asks for, in seconds; 0 where it asks for none. RFC 9110, 10.2.3."""
    asked = headers.get("retry-after", "")
    if asked.isdecimal():
        return float(asked)
    try:
        return max(0.0, (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return 0.0
