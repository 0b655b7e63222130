"""Reading the headers of many files in one process that can be killed."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from stepline.media.decode import MediaError, Probe, read_header
from stepline.media.process import Decoder, Limits


class Headers:
    """Reads headers, one after the other, each within the limits."""

    def __init__(self, limits: Limits) -> None:
        """Keep the limits; the process starts with the first file."""
        self._decoder = Decoder(limits)

    def __enter__(self) -> Self:
        """Return this reader."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()

    def __call__(self, path: Path) -> Probe:
        """Return the header of ``path``; raise MediaError as ``read_header`` does, or if it cannot be read."""
        [header] = self._decoder(_read, path.absolute(), duration_s=0)
        return header  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the process."""
        self._decoder.close()


def reads_first_streams(paths: Iterable[Path], limits: Limits) -> bool:
    """Return whether all files can be read, and the first video stream of each is the one that is read."""
    with Headers(limits) as headers:
        try:
            return all(headers(path).stream == 0 for path in paths)
        except MediaError:
            return False


def _read(path: Path) -> Iterator[Probe]:
    yield read_header(path)
