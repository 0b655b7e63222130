"""Headers of many files, read in one process that can be killed."""

from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from stepline.media.cut import Header, read_header
from stepline.media.decode import MediaError
from stepline.media.process import Limits, killable

FILES = 1000
"""How many files a process reads: the limit of time is of all of them."""


class Headers:
    """Reads headers, one after the other, within the limits; a process that has to be killed is followed by another."""

    def __init__(self, limits: Limits) -> None:
        """Start nothing yet."""
        self.limits = limits
        self._found: Iterator[Any] | None = None
        self._n_files = 0

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()

    def __call__(self, path: Path) -> Header:
        """Return the header of ``path``; raise MediaError where it has no video stream or cannot be read."""
        if self._found is None or self._n_files == FILES:
            self.close()
            self._n_files = 0
            asked, self._asking = get_context("spawn").Pipe(duplex=False)
            self._found = killable(_read, asked, limits=self.limits, duration_s=0)
        self._n_files += 1
        self._asking.send(path.absolute())
        try:
            found = next(self._found)
        except MediaError:
            self.close()
            raise
        if isinstance(found, MediaError):
            raise found
        assert isinstance(found, Header)
        return found

    def close(self) -> None:
        """End the process."""
        if self._found is not None:
            self._found.close()  # type: ignore[attr-defined]
            self._asking.close()
            self._found = None


def _read(asked: Connection) -> Iterator[Header | MediaError]:
    while True:
        try:
            yield read_header(asked.recv())
        except MediaError as error:
            yield error
