"""Where a video is played: in the page, or elsewhere, with the reason."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from stepline.availability import Record
from stepline.download.host import shown

CONTAINERS = {".mp4": "MP4", ".m4v": "MP4", ".mov": "QuickTime", ".webm": "WebM", ".mkv": "Matroska", ".ogv": "Ogg"}
"""Those that at least one of the common browsers plays."""
CODECS = {"", "h264", "hevc", "vp8", "vp9", "av1", "theora"}
"""The same; "" is not known."""


@dataclass(frozen=True)
class Player:
    """source: of the video, as seen from the page; "" where it cannot be played. why: the reason, and what to do.

    convert: a command that writes a copy beside the page, which every browser plays; "" where there is no file.
    address: what opens the video at a time elsewhere: before and after the seconds; () where nothing does.
    """

    source: str
    why: str
    convert: str
    address: tuple[str, ...]


def player(record: Record | None, page: Path, url: str) -> Player:
    """Return how a page plays a video.

    record: None where the video was not looked for. url: where the video is listed to be, "" where it is nowhere.
    """
    copy, address = page.with_suffix(".mp4"), _address(url)
    if copy.exists():
        return Player(quote(copy.name), "", "", address)
    if record is None or not record.path:
        return Player("", "the video is not here", "", address)
    file = Path(record.path)
    if not file.is_file():
        gone = "the video was deleted after use (media.keep: none)" if not record.kept else f"{file} is gone"
        return Player("", f"{gone}; the pictures follow the time", "", address)
    options = "-c:v libx264 -pix_fmt yuv420p -c:a aac -movflags +faststart"
    convert = f"ffmpeg -i {shlex.quote(str(file))} {options} {shlex.quote(str(copy))}"
    if file.suffix.lower() not in CONTAINERS or record.codec not in CODECS:
        kind = CONTAINERS.get(file.suffix.lower(), file.suffix.lstrip(".").upper())
        codec = f" ({record.codec})" if record.codec else ""
        return Player("", f"browsers do not play {kind}{codec}; the pictures follow the time", convert, address)
    return Player(quote(os.path.relpath(file, page.parent)), "", convert, address)


def _address(url: str) -> tuple[str, ...]:
    if not url.startswith(("http://", "https://")) or shown(url) != url:
        return ()
    if (urlsplit(url).hostname or "").endswith(("youtube.com", "youtu.be")):
        return f"{url}{'&' if '?' in url else '?'}t=", "s"
    return f"{url}#t=", ""
