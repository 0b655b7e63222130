"""A folder of anyone's own videos."""

import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from stepline.datasets.schema import Video
from stepline.errors import ConfigError

SUFFIXES = (
    *(".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".ts", ".mts", ".m2ts", ".mpg", ".mpeg", ".vob", ".mxf"),
    *(".flv", ".wmv", ".3gp", ".ogv", ".y4m"),
)
"""What a video file's name ends in, in lower or upper case."""
LONGEST_ID = 128


def video_id(name: str) -> str:
    """Return the id of the file at ``name`` in its folder: no suffix, ``__`` between folders, ``_`` for the unusual."""
    stem, suffix = os.path.splitext(name)
    known = unicodedata.normalize("NFC", stem if suffix.lower() in SUFFIXES else name)
    return re.sub(r"[^A-Za-z0-9_.-]", "_", known.replace("/", "__"))


def videos(dataset: str, folder: str) -> tuple[Video, ...]:
    """Return the video files in ``folder`` and below, in the order of their names. Hidden files are left out.

    A link to nothing counts: what it stands for is ``missing``.
    Raises ConfigError where there is no such folder, no video in it, a folder may not be read, or two files would have
    one id.
    """
    root = Path(os.path.abspath(os.path.expanduser(folder)))
    key = f"config: datasets.{dataset}.videos"
    if not root.is_dir():
        raise ConfigError(f"{key}: {root} is not a folder")
    found: dict[str, Path] = {}
    try:
        files = sorted(_files(root))
    except OSError as error:
        raise ConfigError(f"{key}: {error.filename}: {error.strerror}: let this account read it") from None
    for path in files:
        name = path.relative_to(root).as_posix()
        video = video_id(name)
        if video in found:
            raise ConfigError(f"{key}: {found[video]} and {path} would both be the video {video}: rename one")
        if len(video) > LONGEST_ID:
            raise ConfigError(f"{key}: {path}: shorten its name to {LONGEST_ID} characters, with its folders")
        if name != name.encode(errors="replace").decode():
            raise ConfigError(f"{key}: {name!r} in {root} holds characters that are not UTF-8 text: rename it")
        found[video] = path
    if not found:
        raise ConfigError(f"{key}: {root} holds no video file ({', '.join(each[1:] for each in SUFFIXES)})")
    return tuple(Video(id=video, file=str(path)) for video, path in found.items())


def _files(root: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise error

    seen: set[str] = set()
    for folder, folders, files in os.walk(root, onerror=refuse, followlinks=True):
        real = os.path.realpath(folder)
        folders[:] = [] if real in seen else [name for name in folders if not name.startswith(".")]
        if real not in seen:
            paths = (Path(folder, name) for name in files if not name.startswith("."))
            named = (path for path in paths if path.suffix.lower() in SUFFIXES)
            yield from (path for path in named if path.is_file() or not path.exists())
        seen.add(real)
