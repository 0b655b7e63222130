"""Spans of a video on a server: only the bytes they need are transferred, into a cut file."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from stepline.download.host import leave_alone, unreachable
from stepline.download.http import settle
from stepline.download.ranged import RangedFile
from stepline.download.retry import EnoughError
from stepline.errors import DownloadError
from stepline.media.cut import copy_spans
from stepline.media.decode import MediaError
from stepline.media.process import Limits, killable
from stepline.media.spans import Spans

SLOWEST = 25.0
"""How many times longer than decoding the transfer of spans may take, to allow for slow servers and rate limits."""


@dataclass(frozen=True, kw_only=True)
class Address:
    """A file of a video on a server, its name in errors, and the headers of its requests."""

    url: str
    name: str
    headers: dict[str, str] = field(default_factory=dict)


def fetch_spans(addresses: Sequence[Address], path: Path, spans: Spans, *, rate: float, limits: Limits) -> None:
    """Write a cut file ``path`` with ``spans`` of the video at ``addresses``: one file, or separate video and audio.

    rate: maximum bytes per second for each; 0 for no limit. The work runs in a process that can be killed, and a
    failure leaves no files. Raises WholeOnlyError if the server does not support range requests or the video cannot be
    cut, GoneError, EnoughError and DownloadError as ``fetch_file`` does, and MediaError if the data cannot be read.
    """
    for address in addresses:
        if reason := unreachable(address.url):
            raise DownloadError(reason)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.spans.mp4")
    length_s = sum(end_s - start_s for start_s, end_s in spans)
    try:
        for error in killable(_copy, addresses, part, spans, rate, limits=limits, duration_s=SLOWEST * length_s):
            if isinstance(error, EnoughError):
                leave_alone(addresses[0].url, str(error))
            raise error
        settle(part, path)
    finally:
        part.unlink(missing_ok=True)


def _copy(addresses: Sequence[Address], part: Path, spans: Spans, rate: float) -> Iterator[DownloadError | MediaError]:
    """Copy the spans. Yield the error of a failure that is not a decoding error."""
    with ExitStack() as stack:
        files = [stack.enter_context(RangedFile(a.url, a.name, headers=a.headers, rate=rate)) for a in addresses]
        errors: list[DownloadError | MediaError] = []
        try:
            copy_spans(files, part, spans)
        except (DownloadError, MediaError) as error:
            errors.append(error)
        yield from [*(file.error for file in files if file.error), *errors][:1]
