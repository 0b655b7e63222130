"""A folder of the user's own videos."""

import errno
import hashlib
import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Container
from contextlib import suppress
from heapq import heappop, heappush
from itertools import chain
from pathlib import Path
from typing import Literal

from stepline import paths
from stepline.availability import LONGEST_ID, is_of_id, read_availability
from stepline.datasets.schema import Video
from stepline.datasets.shards import HEADER
from stepline.errors import ConfigError
from stepline.io import csv_text
from stepline.printable import printable

SUFFIXES = (
    *(".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".ts", ".mts", ".m2ts", ".mpg", ".mpeg", ".vob", ".mxf"),
    *(".flv", ".wmv", ".3gp", ".ogv", ".y4m"),
)
"""Suffixes of video files, in lower or upper case."""
IMAGES = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
"""Suffixes of image files, each of which is read as a video of one frame."""
SHOWN = 12
"""Maximum number of suffixes in a line about files that are left out."""
NO_FILES = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def videos(
    dataset: str, folder: str, known: Container[str] = (), suffixes: Collection[str] = SUFFIXES
) -> tuple[tuple[Video, ...], str]:
    """Return the video files in ``folder`` and its subfolders, in the order of their names, without hidden files.

    The second value is one line that counts the other files, or "".

    Unreadable entries with a video's name, such as a broken link or a pipe, and unreadable subfolders are listed too;
    ``why_absent`` explains what is wrong. known: the ids of earlier runs, see ``ids``. suffixes: ``SUFFIXES`` or
    ``IMAGES``. Raises ConfigError if the folder does not exist, is not readable or contains no video, and StoreError if
    the record of one of several files with the same id is damaged.
    """
    root = Path(os.path.abspath(os.path.expanduser(folder)))
    key = f"config: datasets.{dataset}.videos"
    if os.path.isfile(root):
        raise ConfigError(
            f"{key}: {shown_path(root)} is a file: name its folder, or set `kind: list` for a CSV file of URLs"
        )
    if not os.path.isdir(root):
        raise ConfigError(f"{key}: the folder {shown_path(root)} does not exist: name the folder with your videos")
    try:
        files, others = _files(root, suffixes, os.path.realpath(paths.videos(dataset)))
    except OSError as error:
        raise ConfigError(f"{key}: {shown_path(root)}: {error.strerror}: let this account read it") from None
    names = sorted(files, key=lambda name: name.split("/"))
    left_out = _left_out(root, others, "images" if suffixes == IMAGES else "videos")
    if not names:
        raise ConfigError(
            f"{key}: {shown_path(root)} contains no {'image' if suffixes == IMAGES else 'video'} file "
            f"({', '.join(each[1:] for each in suffixes)}){f'; {left_out}' if left_out else ''}"
        )
    found = ids(names, known, lambda video: _source(dataset, video))
    return tuple(Video(id=found[name], file=os.path.join(root, name)) for name in names), left_out


def _files(root: Path, suffixes: Collection[str], links: str) -> tuple[list[str], Counter[str]]:
    """Return the paths, relative to ``root``, of files with one of the suffixes and of unreadable folders.

    The second value is the number of other files by suffix, and of hidden files with one of the suffixes. Links to
    folders come last, in the order of their paths, so that a new link does not change the path of any file. links: the
    folder to which Stepline links the files, which is left out.
    """
    files: list[str] = []
    others: Counter[str] = Counter()
    seen = {links}
    waiting = [(False, "")]
    while waiting:
        _, folder = heappop(waiting)
        place = os.path.join(root, folder)
        real = os.path.realpath(place)
        if real in seen:
            continue
        seen.add(real)
        try:
            names = _names(place)
        except OSError:
            if not folder:
                raise
            files.append(folder)
            continue
        for name in names:
            path, suffix = os.path.join(place, name), os.path.splitext(name)[1].lower()
            if name.startswith("."):
                others["hidden"] += suffix in suffixes
            elif os.path.isdir(path):
                heappush(waiting, (os.path.islink(path), os.path.join(folder, name)))
            elif suffix in suffixes:
                files.append(os.path.join(folder, name))
            else:
                others[suffix[1:] if re.fullmatch("[.][a-z0-9]{1,8}", suffix) else "others"] += 1
    return files, +others


def _names(folder: str) -> set[str]:
    """Return the names of the entries of a folder, without Stepline's outputs in a work folder."""
    names = {*os.listdir(folder)}
    if ".stepline" in names:
        names -= paths.OUTPUTS
    listing = os.path.join(folder, "shards.csv")
    if "shards.csv" in names and os.path.isfile(listing):
        with suppress(OSError), open(listing, "rb") as file:
            names -= paths.OF_DATASET if file.readline() == csv_text(HEADER, []).encode() else set()
    return names


def _left_out(root: Path, others: Counter[str], kind: str) -> str:
    """Return one line with the number of the files that are left out, the most frequent suffixes first, or ""."""
    if not others:
        return ""
    counts = [f"{suffix} {count}" for suffix, count in sorted(others.items(), key=lambda item: (-item[1], item[0]))]
    rest = [f"and {len(counts) - SHOWN} more suffixes"] if len(counts) > SHOWN else []
    files = f"{others.total()} files" if others.total() > 1 else "1 file"
    return f"{files} left out of {shown_path(root)}, no {kind} by their suffix: {', '.join([*counts[:SHOWN], *rest])}"


def why_absent(file: str) -> tuple[Literal["missing", "failed"], str] | None:
    """Return the status and the reason to record for a user's file that cannot be read, or None. It never blocks."""
    try:
        kind = stat.S_IFMT(os.stat(file).st_mode)
        if kind in NO_FILES:
            return "failed", f"{shown_path(file)}: {NO_FILES[kind]}, not a file"
        os.close(os.open(file, os.O_RDONLY))
        return None if kind == stat.S_IFREG else ("failed", f"{shown_path(file)}: a folder, not a file")
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            where = f"a link to {shown_path(os.readlink(file))}, which does not exist" if os.path.islink(file) else ""
            return "missing", f"{shown_path(file)}: {where or 'no such file'}"
        advice = ": let this account read it" if isinstance(error, PermissionError) else ""
        return "failed", f"{shown_path(file)}: {error.strerror}{advice}"


def shown_path(path: Path | str) -> str:
    """Return a path as ``printable`` text: each byte that is not UTF-8 becomes ``%`` and its two hex digits."""
    return printable(re.sub("[\\udc80-\\udcff]", lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", str(path)))


# Ids


def video_id(name: str) -> str:
    """Return the id of the file at ``name`` in its folder: no suffix, ``__`` for ``/``, ``_`` for special characters.

    A long name is cut and a part of its sha256 is added. ``check_video_id`` accepts the id unless ``name`` is hidden.
    """
    text = _text(name)
    return text if len(text.encode()) <= LONGEST_ID else _marked(text, text)


def marked_id(name: str, digits: int = 8) -> str:
    """Return the id of the file at ``name`` if another file has its ``video_id``: with a part of the name's sha256."""
    return _marked(_text(name), name, digits)


def ids(names: Collection[str], known: Container[str], source: Callable[[str], str]) -> dict[str, str]:
    """Return the id of each file by its name: its ``video_id``, or ``marked_id`` for all but one if several share it.

    Ids that differ only in case count as equal, because many file systems treat such files as the same. Two of them
    that both exist already are kept: their file system distinguishes them. A file keeps its id while other files are
    added and removed. known: the existing ids. source: returns the ``shown_path`` of the file with an existing id, or
    "". If no file had the id before, the first name gets it.
    """
    found = {name: marked_id(name) for name in names if marked_id(name) in known}
    same: dict[str, list[str]] = {}
    for name in names:
        if name not in found:
            same.setdefault(video_id(name).casefold(), []).append(name)
    taken = {video.casefold() for video in found.values()}
    for folded, files in same.items():
        held = [name for name in files if len(files) > 1 and source(video_id(name)).endswith(f"/{shown_path(name)}")]
        found |= {name: video_id(name) for name in held or files[:1] if folded not in taken}
    taken |= same.keys()
    for name in names:
        if name not in found:
            found[name] = next(
                video for digits in range(8, 65) if (video := marked_id(name, digits)).casefold() not in taken
            )
            taken.add(found[name].casefold())
    return found


def named(name: str, videos: Container[str]) -> str | None:
    """Return the id in ``videos`` that a user names by id or by the file's path in the folder; None if absent."""
    forms = [name, *(unicodedata.normalize(form, name) for form in ("NFC", "NFD"))]
    candidates = chain(forms, map(marked_id, forms), map(video_id, [name]))
    return next((video for video in candidates if video in videos), None)


def _text(name: str) -> str:
    stem, suffix = os.path.splitext(name)
    text = unicodedata.normalize("NFC", stem if suffix.lower() in (*SUFFIXES, *IMAGES) else name).replace("/", "__")
    if text.isascii():
        return re.sub("[^A-Za-z0-9_.-]", "_", text)
    return "".join(character if is_of_id(character) else "_" for character in text)


def _marked(text: str, name: str, digits: int = 8) -> str:
    mark = f"-{hashlib.sha256(os.fsencode(name)).hexdigest()[:digits]}"
    return text.encode()[: LONGEST_ID - len(mark)].decode(errors="ignore") + mark


def _source(dataset: str, video: str) -> str:
    record = paths.videos(dataset) / f"{video}.json"
    known = read_availability(record).get(video) if record.exists() else None
    return shown_path(known.source) if known else ""  # earlier versions wrote control characters as they are
