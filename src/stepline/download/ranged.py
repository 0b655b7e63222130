"""A file on a server that is read by range requests, so that only the bytes read are transferred."""

import io
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from stepline.download.http import ATTEMPTS, LONGEST_WAIT_S, ask, client, part_of, refuse, version_of
from stepline.download.retry import WorthRetryingError, retried
from stepline.errors import DownloadError
from stepline.media.cut import WholeOnlyError

if TYPE_CHECKING:
    from httpx import Response

SKIPPED = 1 << 18
"""The number of bytes that are read and discarded instead of sending a new request."""


class RangedFile(io.RawIOBase):
    """The file at ``url``, read by range requests. A request stays open while reads are sequential.

    name: the file's name in errors. headers: of the requests. rate: maximum bytes per second; 0 for no limit. size: of
    the file; 0 before the first read.
    error: the error of a failed read; later reads return the end of the file.
    Interrupted transfers are resumed and requests are repeated, as in ``fetch_file``. Reading raises WholeOnlyError if
    the server does not support range requests, GoneError, EnoughError and DownloadError as ``fetch_file`` does, and
    DownloadError if the file has changed.
    """

    def __init__(self, url: str, name: str, *, headers: Mapping[str, str] | None = None, rate: float = 0.0) -> None:
        """Send no request yet."""
        self.size = 0
        self.error: DownloadError | WholeOnlyError | None = None
        self._url, self._name, self._rate = url, name, rate
        self._client = client(headers=headers)
        self._version = ""
        self._wanted = self._at = 0
        self._response: Response | None = None
        self._chunks: Iterator[bytes] = iter(())
        self._rest = b""
        self._due = 0.0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._wanted

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to another position."""
        if whence == io.SEEK_END and not self.size:
            self.read(1)
        self._wanted = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._wanted, io.SEEK_END: self.size}[whence]
        return self._wanted

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes, and at least one before the end of the file."""

        def attempt() -> bytes:
            try:
                return self._read(size)
            except Exception:
                self._hang_up()
                raise

        if self.error:
            return b""
        try:
            return retried(attempt, attempts=ATTEMPTS, longest_wait_s=LONGEST_WAIT_S, prefix=f"{self._name}: ")
        except (DownloadError, WholeOnlyError) as error:
            self.error = error
            raise

    def close(self) -> None:
        """Hang up."""
        self._hang_up()
        self._client.close()
        super().close()

    def _read(self, size: int) -> bytes:
        if self.size and self._wanted >= self.size:
            return b""
        if not (self._response and 0 <= self._wanted - self._at <= SKIPPED):
            self._hang_up()
            self._ask()
        while True:
            skipped = self._rest[: self._wanted - self._at]
            self._at, self._rest = self._at + len(skipped), self._rest[len(skipped) :]
            if self._rest:
                break
            self._rest = self._next()
        got, self._rest = (self._rest, b"") if size < 0 else (self._rest[:size], self._rest[size:])
        self._at += len(got)
        self._wanted = self._at
        return got

    def _ask(self) -> None:
        headers = {"Range": f"bytes={self._wanted}-", "Accept-Encoding": "identity"}
        if self._version:
            headers["If-Range"] = self._version
        self._response = response = ask(self._client, self._url, headers)
        refuse(self._name, response)
        start, size = part_of(response)
        if not self.size and (response.status_code != 206 or start != self._wanted or not size):
            raise WholeOnlyError("its server does not support range requests")
        version, another = version_of(response), size not in (0, self.size) and self.size != 0
        if response.status_code != 206 or another or self._version not in ("", version):
            raise DownloadError(f"{self._name}: the file changed while it was read")
        if start != self._wanted:
            raise WorthRetryingError("the server sent another part than the requested one")
        self.size, self._version = self.size or size, version
        self._at, self._rest, self._chunks = self._wanted, b"", response.iter_raw()

    def _next(self) -> bytes:
        chunk = next(self._chunks, b"")
        if not chunk:
            raise WorthRetryingError(f"truncated: {self._at} of {self.size} bytes")
        if self._rate:
            self._due = max(self._due, time.monotonic()) + len(chunk) / self._rate
            time.sleep(max(0.0, self._due - time.monotonic()))
        return chunk

    def _hang_up(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None
