"""One video: from the user's file, the mirror or the network into a folder, with a record of the outcome."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

from stepline.availability import HEADERS, Record, check_video_id, read_availability, write_availability
from stepline.datasets.folder import IMAGES, SUFFIXES, shown_path, why_absent
from stepline.datasets.schema import Video
from stepline.download.host import shown
from stepline.download.http import GoneError, MismatchError, fetch_file, settle
from stepline.download.options import DownloadOptions
from stepline.download.yt_dlp import fetch_page
from stepline.errors import DownloadError
from stepline.media.decode import MediaError, Probe
from stepline.media.spans import Spans
from stepline.mirror import Wanted, cached_sha256, find

OF_HEADER = "headers", "codec", "stream", "width", "height", "pixels", "fps", "duration_s", "rotation", "begin_s"
"""The fields of a record that come from the file's header."""


def fetch_video(
    video: Video,
    folder: Path,
    options: DownloadOptions,
    headers: Callable[[Path], Probe],
    *,
    spans: Spans = (),
    again: bool = False,
    stamp: str = "",
) -> Record:
    """Download ``video`` to ``folder/<id><suffix>``, or link the user's file or the mirror's, and return its record.

    The record is also written to ``folder/<id>.json``; the next run continues to count its attempts. A video that was
    deleted after use (``kept`` is False) is downloaded again only if ``again`` is set or the spans changed. headers:
    reads file headers, except for files whose bytes the record already describes. spans, stamp: of the record.
    Raises ReleaseError if the id is not a file name.
    """
    memory = folder / f"{check_video_id(video.id)}.json"
    before = read_availability(memory).get(video.id) if memory.exists() else None
    wanted = _Wanted(
        video,
        folder,
        options,
        headers,
        [list(span) for span in spans],
        before or Record(video=video.id, status="missing"),
        stamp,
    )
    record = _bring(wanted, again)
    if record != before:
        write_availability(memory, [record])
    return record


class _Wanted(NamedTuple):
    video: Video
    folder: Path
    options: DownloadOptions
    headers: Callable[[Path], Probe]
    spans: list[list[float]]
    before: Record
    stamp: str


def _bring(wanted: _Wanted, again: bool) -> Record:
    video, folder, spans, before = wanted.video, wanted.folder, wanted.spans, wanted.before
    record = Record(video=video.id, status="missing", attempts=before.attempts, spans=spans, stamp=wanted.stamp)
    absent = why_absent(video.file) if video.file else None
    held = None if absent else _held(video)
    if held is not None:
        path = folder / f"{video.id}{_suffix(held.name)}"
        _link(path, held.resolve())
        return _examined(wanted, path, replace(record, source=shown_path(video.file) or "mirror"))
    here = [path for path in _places(video, folder) if os.path.lexists(path)]
    for path in here:
        if path.is_symlink():
            path.unlink()
    if absent:
        return replace(record, status=absent[0], reason=absent[1])
    if not (before.kept or again) and video.sha256 in ("", before.sha256) and before.spans == spans:
        return before
    for path in here:
        if path.exists():
            reason = before.reason if before.status == "present" else ""
            came = replace(record, reason=reason, downloader=before.downloader, format=before.format)
            found = _examined(wanted, path, replace(came, source=shown(video.url)))
            if found.status != "failed" or not video.url:
                return found
    if not video.url:
        reason = f"not in the mirror at {video.path}" if video.path else "it is listed without an address"
        return replace(record, reason=reason)
    return _downloaded(wanted, replace(record, status="failed", attempts=before.attempts + 1))


def _held(video: Video) -> Path | None:
    """Return the file of ``video`` if it does not have to be downloaded."""
    if video.file:
        return Path(video.file)
    return find(Wanted(path=video.path))


def remove_leftovers(folder: Path, records: Sequence[Record]) -> None:
    """Remove partial downloads from ``folder`` that no later run resumes.

    A partial file is kept if the status of its record is ``failed``: the next run resumes it.
    """
    ended: list[str] = []
    for record in records:
        if record.status != "failed":
            parts = [f".{record.video}{suffix}" for suffix in SUFFIXES]
            ended += [f".{record.video}.yt-dlp", *(f"{part}.{kind}" for part in parts for kind in ("part", "version"))]
    for name in {each.name for each in os.scandir(folder) if each.name.startswith(".")}.intersection(ended):
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
        else:
            (folder / name).unlink()


def remove_video(folder: Path, record: Record) -> None:
    """Remove the file or link that a record names in ``folder``, if it is named after the record's video."""
    path = folder / Path(record.path).name
    if path in [folder / f"{check_video_id(record.video)}{suffix}" for suffix in (*SUFFIXES, *IMAGES)]:
        path.unlink(missing_ok=True)


def _link(path: Path, to: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not (path.is_symlink() and path.resolve() == to):
        path.unlink(missing_ok=True)
        path.symlink_to(to)


def _downloaded(wanted: _Wanted, record: Record) -> Record:
    video = wanted.video
    name = PurePosixPath(unquote(re.sub("^https?://[^/?#]*|[?#].*", "", video.url))).name
    direct = Path(name).suffix.lower() in SUFFIXES
    program = "httpx" if direct else "yt-dlp"
    record = replace(record, source=shown(video.url), downloader=f"{program} {version(program)}")
    try:
        if direct:
            path = wanted.folder / f"{video.id}{_suffix(name)}"
            fetch_file(video.url, path, sha256=video.sha256, rate=wanted.options.rate)
        else:
            path, record = _of_page(wanted, record)
    except GoneError as error:
        return replace(record, status="gone", reason=str(error))
    except MismatchError as error:
        return replace(record, status="mismatched", reason=str(error))
    except (DownloadError, ValueError) as error:  # ValueError: yt-dlp found an invalid address
        return replace(record, reason=str(error))
    return _examined(wanted, path, record)


def _of_page(wanted: _Wanted, record: Record) -> tuple[Path, Record]:
    """Download the video of a page; return its path, and ``record`` with its format and what could not be used."""
    video, folder = wanted.video, wanted.folder
    part = folder / f".{video.id}.yt-dlp"
    came, format_, lacks = fetch_page(video.url, part, wanted.options)
    path = folder / f"{video.id}{_suffix(came.name)}"
    settle(came, path)
    shutil.rmtree(part)
    return path, replace(record, format=format_, reason=lacks)


def _examined(wanted: _Wanted, path: Path, record: Record) -> Record:
    """Return ``record`` with the facts of the file at ``path``. If it is a video, other files of the id are removed."""
    video, before = wanted.video, wanted.before
    known = before.status == "present" and before.headers == HEADERS and not before.spans  # see ``read_header``
    sha256 = cached_sha256(path) if known else ""
    if known and sha256 == before.sha256:
        record = replace(record, **{name: getattr(before, name) for name in OF_HEADER})
    else:
        try:
            probe = wanted.headers(path)
        except MediaError as error:
            return replace(record, status="failed", reason=str(error))
        record = replace(record, headers=HEADERS, **{name: getattr(probe, name) for name in OF_HEADER[1:]})
    for other in _places(video, path.parent):
        if other != path:
            other.unlink(missing_ok=True)
    record = replace(
        record,
        status="present",
        path=str(path),
        sha256=sha256 or cached_sha256(path),
        size=path.stat().st_size,
    )
    if video.sha256 and record.sha256 != video.sha256:
        reason = f"wrong checksum: sha256 is {record.sha256}, expected {video.sha256}"
        return replace(record, status="mismatched", reason=reason)
    listed_s = video.duration_s
    duration_s = record.duration_s
    if duration_s and listed_s and abs(duration_s - listed_s) > max(2.0, 0.01 * listed_s):
        reason = f"wrong duration: {duration_s:.1f} s, listed with {listed_s:.1f} s"
        return replace(record, status="mismatched", reason=reason)
    return record


def _places(video: Video, folder: Path) -> list[Path]:
    suffixes = IMAGES if Path(video.file or "").suffix.lower() in IMAGES else SUFFIXES
    return [folder / f"{video.id}{suffix}" for suffix in sorted(suffixes)]


def _suffix(name: str) -> str:
    """Return the lower-case suffix of a file ``name``; ``.mp4`` if it is not that of a video or an image."""
    suffix = Path(name).suffix.lower()
    return suffix if suffix in (*SUFFIXES, *IMAGES) else ".mp4"
