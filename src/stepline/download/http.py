"""File downloads over http(s): complete and checked, or a one-line error."""

import os
import re
import shutil
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.download import hub
from stepline.download.host import leave_alone, shown, unreachable, within
from stepline.download.retry import EnoughError, WorthRetryingError, may_pass, retried, retry_after
from stepline.errors import DownloadError
from stepline.io import sha256_file, write_text

if TYPE_CHECKING:
    import httpx

ATTEMPTS = 3
STALL_S = 60.0
LONGEST_WAIT_S = 60.0
REDIRECTS = 10
"""The maximum number of redirects in a row."""
SLOWEST = 1000
"""Bytes per second. A transfer that is slower for ``STALL_S`` seconds counts as stalled."""
MOST_UNTOLD = 64 << 30
"""The maximum size in bytes of a file whose server does not state its length; also at most half of the free disk."""
CODINGS = {"gzip", "x-gzip", "deflate", "compress", "br", "zstd"}


class GoneError(DownloadError):
    """The site reports that the file no longer exists."""


class MismatchError(DownloadError):
    """The downloaded file is not the listed one."""


def fetch_file(url: str, path: Path, *, sha256: str = "", size: int = 0, rate: float = 0.0) -> None:
    """Download ``url`` to ``path``. An interrupted transfer is resumed, also in a later run.

    It restarts from the beginning if the server does not confirm by ETag or Last-Modified that the file is unchanged,
    or if it sends another part than the requested one. huggingface.co gets the token in ``HF_TOKEN``, and no host to
    which it redirects does.
    rate: maximum bytes per second; 0 for no limit.
    Raises GoneError if the server returns 404 or 410, MismatchError if the file has another length or sha256, and
    DownloadError if the host does not respond, refuses, sends an endless file, or repeatedly sends nothing for
    ``STALL_S`` seconds.
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
    except (DownloadError, OSError) as error:
        if isinstance(error, EnoughError):
            leave_alone(url, str(error))
        if not _known(part)[0]:  # no later run could resume it
            _discard(part)
        raise
    if sha256 and (got := sha256_file(part)) != sha256:
        _discard(part)
        raise MismatchError(f"{shown(url)}: wrong checksum: sha256 is {got}, expected {sha256}")
    settle(part, path, _version_of(part))


def settle(part: Path, path: Path, *about: Path) -> None:
    """Rename the complete download ``part`` to ``path`` and remove the files ``about`` it. A kill leaves one file."""
    with open(part, "rb") as file:
        os.fsync(file.fileno())
    for each in about:
        each.unlink(missing_ok=True)
    part.replace(path)


def _refuse(url: str, response: "httpx.Response") -> None:
    """Raise the error for a response without content: GoneError for 404 and 410, WorthRetryingError if it may pass.

    A compressed response is refused too: compression was not requested, and its length and parts would not match.
    """
    status = response.status_code
    if may_pass(status):
        raise WorthRetryingError(f"HTTP {status}", retry_after(response.headers))
    if status in (404, 410):
        raise GoneError(f"{shown(url)}: HTTP {status}")
    if status not in (200, 206):
        raise DownloadError(f"{shown(url)}: HTTP {status}{hub.advice(str(response.url), status)}")
    if (coding := response.headers.get("content-encoding", "").lower()) in CODINGS:
        raise DownloadError(f"{shown(url)}: the server sent it compressed ({coding}), which was not requested")


def _part_of(response: "httpx.Response") -> tuple[int, int]:
    """Return the start of the part in a response with status 206, or -1, and the length of the whole file, or 0.

    -1 and 0 mean that the response does not state them.
    """
    found = re.fullmatch(r"bytes (\d{1,19})-\d+/(\d{1,19}|\*)", response.headers.get("content-range", ""), re.ASCII)
    if not found:
        return -1, 0
    return int(found[1]), 0 if found[2] == "*" else int(found[2])


def _version_of(part: Path) -> Path:
    """Return the path of the file that records the server's version of ``part`` and the length of the whole file."""
    return part.with_suffix(".version")


def _known(part: Path) -> tuple[str, int]:
    """Return the server's version of ``part`` and the length of the whole file; "" and 0 if unknown."""
    if not (part.exists() and _version_of(part).exists()):
        return "", 0
    found = re.fullmatch("([ -~]+)\n([0-9]{1,20})", _version_of(part).read_text(errors="replace"))
    return (found[1], int(found[2])) if found else ("", 0)


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _version_of(part).unlink(missing_ok=True)


def _transfer(url: str, part: Path, size: int, rate: float) -> None:
    import httpx

    kept, length = _known(part)
    have = part.stat().st_size if kept else 0
    headers = {"Range": f"bytes={have}-", "If-Range": kept} if have else {}
    headers |= {"Accept-Encoding": "identity"} | hub.credentials(url)
    with ExitStack() as stack:
        client = httpx.Client(follow_redirects=True, max_redirects=REDIRECTS, timeout=STALL_S)
        request = stack.enter_context(client).build_request("GET", url, headers=headers)
        response = within(STALL_S, lambda: client.send(request, stream=True))  # its body is not yet read
        stack.callback(response.close)
        ends_here = response.headers.get("content-range") == f"bytes */{have}" and (size or length) in (0, have)
        if have and response.status_code == 416 and ends_here:
            return
        if (have and response.status_code == 416) or not _fits(response, have, kept, size or length):
            _discard(part)
            raise WorthRetryingError("the server sent another part than the requested one")
        _refuse(url, response)
        length = _length(response)
        if not have or response.status_code == 200:
            part.unlink(missing_ok=True)
            write_text(_version_of(part), f"{_validator(response)}\n{length}")
            have = 0
        try:
            _save(response, part, _most(url, part, have, size, length), rate)
        except DownloadError:
            _discard(part)
            raise
    expected, got = size or length, part.stat().st_size
    if got < expected or not got:
        raise WorthRetryingError(f"truncated: {got} of {expected} bytes" if expected else "the file is empty")


def _fits(response: "httpx.Response", have: int, kept: str, length: int) -> bool:
    """Return whether a response continues the partial file. A response with the whole file does."""
    if response.status_code != 206:
        return True
    start, of = _part_of(response)
    return start == have and (not have or _validator(response) in ("", kept)) and (not length or of in (0, length))


def _length(response: "httpx.Response") -> int:
    """Return the length of the whole file; 0 if the server does not state it."""
    if response.status_code == 206:
        return _part_of(response)[1]
    return 0 if "transfer-encoding" in response.headers else int(response.headers.get("content-length", 0))


def _most(url: str, part: Path, have: int, size: int, length: int) -> tuple[int, DownloadError]:
    """Return the maximum length of the partial file, and the error to raise beyond it."""
    disk = shutil.disk_usage(part.parent)
    if size:
        if length > size:
            raise MismatchError(f"{shown(url)}: wrong length: {length} of {size} bytes")
        return size, MismatchError(f"{shown(url)}: wrong length: more than {size} bytes")
    if length > disk.total:
        raise DownloadError(f"{shown(url)}: it has {length} bytes, more than the disk can hold")
    if length:
        return length, MismatchError(f"{shown(url)}: wrong length: more than {length} bytes")
    most = have + min(MOST_UNTOLD, disk.free // 2)
    return most, DownloadError(f"{shown(url)}: the server does not state its length and sent more than {most} bytes")


def _save(response: "httpx.Response", part: Path, most: tuple[int, DownloadError], rate: float) -> None:
    """Append the body to ``part`` as it arrives, at no more than ``rate`` bytes per second."""
    began, came, waited_s, meanwhile = time.monotonic(), 0, 0.0, 0
    with open(part, "ab") as file:
        asked = began
        chunks = response.iter_raw()
        while chunk := within(STALL_S, partial(next, chunks, b"")):
            waited_s, meanwhile = waited_s + time.monotonic() - asked, meanwhile + len(chunk)
            if file.tell() + len(chunk) > most[0]:
                raise most[1]
            file.write(chunk)
            if waited_s > STALL_S:
                if meanwhile < SLOWEST * waited_s:
                    raise WorthRetryingError(f"only {meanwhile} bytes in {waited_s:.0f} s")
                waited_s, meanwhile = 0.0, 0
            came += len(chunk)
            if rate and (ahead_s := came / rate - (time.monotonic() - began)) > 0:
                time.sleep(ahead_s)
            asked = time.monotonic()


def _validator(response: "httpx.Response") -> str:
    """Return a validator of this version of the file for If-Range (RFC 9110, 13.1.5), or ""."""
    tag, modified = (str(response.headers.get(name, "")) for name in ("etag", "last-modified"))
    if re.fullmatch('"[!-~]*"', tag):
        return tag
    return modified if re.fullmatch("[ -~]+", modified) else ""
