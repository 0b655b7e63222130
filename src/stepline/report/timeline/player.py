"""Playback of a video: in the page, or elsewhere with the reason."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from stepline.availability import Record
from stepline.download.host import YOUTUBE, shown

CONTAINERS = {".mp4": "MP4", ".m4v": "MP4", ".mov": "QuickTime", ".webm": "WebM", ".mkv": "Matroska", ".ogv": "Ogg"}
"""Containers that at least one common browser plays."""
CODECS = {"", "h264", "hevc", "vp8", "vp9", "av1", "theora"}
"""Codecs that at least one common browser plays; "" means unknown."""


@dataclass(frozen=True)
class Player:
    """source: URL of the video relative to the page, "" if it cannot be played. why: the reason.

    convert: a command that writes a copy next to the page that every browser plays; "" if there is no file. address:
    the parts before and after the seconds of a URL that opens the video at a time; () if there is none.
    """

    source: str
    why: str
    convert: str
    address: tuple[str, ...]


def player(record: Record | None, page: Path, url: str) -> Player:
    """Return how a page plays a video.

    record: None if the video has not been fetched. url: the listed URL of the video, "" if there is none.
    """
    copy, address = page.with_suffix(".mp4"), _address(url)
    if copy.exists():
        return Player(quote(copy.name), "", "", address)
    if record is None or not record.path:
        return Player("", "there is no video file", "", address)
    file = Path(record.path)
    if not file.is_file():
        gone = "the video was deleted after use (media.keep: none)" if not record.kept else f"{file} no longer exists"
        return Player("", f"{gone}; thumbnails are shown instead", "", address)
    options = "-c:v libx264 -pix_fmt yuv420p -c:a aac -movflags +faststart"
    convert = f"ffmpeg -i {shlex.quote(str(file))} {options} {shlex.quote(str(copy))}"
    if file.suffix.lower() not in CONTAINERS or record.codec not in CODECS:
        kind = CONTAINERS.get(file.suffix.lower(), file.suffix.lstrip(".").upper())
        codec = f" ({record.codec})" if record.codec else ""
        return Player("", f"browsers do not play {kind}{codec}; thumbnails are shown instead", convert, address)
    return Player(quote(os.path.relpath(file, page.parent)), "", convert, address)


def _address(url: str) -> tuple[str, ...]:
    if not url.startswith(("http://", "https://")) or shown(url) != url:
        return ()
    if YOUTUBE.match(url):
        return f"{url}{'&' if '?' in url else '?'}t=", "s"
    return f"{url}#t=", ""
