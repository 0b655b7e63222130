"""Files over http(s): whole and checked, or an error of one line."""

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.download.host import leave_alone, shown, unreachable
from stepline.download.retry import EnoughError, WorthRetryingError, may_pass, retried, retry_after
from stepline.errors import DownloadError
from stepline.io import sha256_file, write_text

if TYPE_CHECKING:
    import httpx

ATTEMPTS = 3
STALL_S = 60.0
LONGEST_WAIT_S = 60.0


class GoneError(DownloadError):
    """A download that the site says it no longer has."""


class MismatchError(DownloadError):
    """A download that is another file than the one that is listed."""


def fetch_file(url: str, path: Path, *, sha256: str = "", size: int = 0, rate: float = 0.0) -> None:
    """Download ``url`` to ``path``; a cut transfer goes on where it stopped, also in a later run.

    It starts again where the server does not say that the file is still the same one, by ETag or Last-Modified.
    rate: most bytes per second; 0 for no limit.
    Raises GoneError where the server says 404 or 410, MismatchError where the file has another length or sha256,
    DownloadError where the host does not answer, refuses, or sends nothing for ``STALL_S`` seconds time and again.
    """
    if reason := unreachable(url):
        raise DownloadError(reason)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        retried(
            lambda: _transfer(url, part, size, rate),
            attempts=ATTEMPTS,
            longest_wait_s=LONGEST_WAIT_S,
            prefix=f"{shown(url)}: ",
        )
    except EnoughError as enough:
        leave_alone(url, str(enough))
        raise
    if sha256 and (got := sha256_file(part)) != sha256:
        part.unlink()
        _version_of(part).unlink()
        raise MismatchError(f"{shown(url)}: wrong checksum: sha256 is {got}, expected {sha256}")
    settle(part, path)
    _version_of(part).unlink()


def settle(part: Path, path: Path) -> None:
    """Make the whole download ``part`` the file ``path``; a kill leaves one of the two."""
    with open(part, "rb") as file:
        os.fsync(file.fileno())
    part.replace(path)


def refuse(url: str, response: "httpx.Response") -> None:
    """Raise what an answer without content is: GoneError for 404 and 410, WorthRetryingError where it may pass."""
    status = response.status_code
    if may_pass(status):
        raise WorthRetryingError(f"HTTP {status}", retry_after(response.headers))
    if status in (404, 410):
        raise GoneError(f"{shown(url)}: HTTP {status}")
    if status >= 400:
        raise DownloadError(f"{shown(url)}: HTTP {status}")


def _version_of(part: Path) -> Path:
    """Return the file that says of which version on the server ``part`` is a part."""
    return part.with_suffix(".version")


def _transfer(url: str, part: Path, size: int, rate: float) -> None:
    import httpx

    kept = _version_of(part).read_text() if part.exists() and _version_of(part).exists() else ""
    have = part.stat().st_size if kept else 0
    headers = {"Range": f"bytes={have}-", "If-Range": kept} if have else {}
    headers["Accept-Encoding"] = "identity"
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=STALL_S) as response:
        status, version = response.status_code, version_of(response)
        resumed = status == 206
        if status == 416 and response.headers.get("content-range") == f"bytes */{have}" and size in (0, have):
            return
        if status == 416 or (resumed and version not in ("", kept)):
            part.unlink(missing_ok=True)
            raise WorthRetryingError("the partial file does not fit the one on the server")
        refuse(url, response)
        if not resumed:
            part.unlink(missing_ok=True)
            write_text(_version_of(part), version)
        _save(response, part, rate)
        length = response.headers.get("content-length")
    expected = size or (int(length) + have * resumed if length else 0)
    got = part.stat().st_size
    if expected and got < expected:
        raise WorthRetryingError(f"truncated: {got} of {expected} bytes")
    if expected and got > expected:
        part.unlink()
        raise MismatchError(f"{shown(url)}: wrong length: {got} of {expected} bytes")


def _save(response: "httpx.Response", part: Path, rate: float) -> None:
    """Append the body to ``part`` as it comes, at no more than ``rate`` bytes per second."""
    began, came = time.monotonic(), 0
    with open(part, "ab") as file:
        for chunk in response.iter_bytes():
            file.write(chunk)
            came += len(chunk)
            if rate and (ahead_s := came / rate - (time.monotonic() - began)) > 0:
                time.sleep(ahead_s)


def version_of(response: "httpx.Response") -> str:
    """Return what tells this version of the file from others, fit for If-Range: RFC 9110, 13.1.5; "" where nothing."""
    tag = str(response.headers.get("etag", ""))
    return tag if re.fullmatch('"[!-~]*"', tag) else str(response.headers.get("last-modified", ""))
