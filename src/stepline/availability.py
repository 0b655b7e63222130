"""Availability as data: the status of every listed video, as a record with a reason."""

import re
import unicodedata
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from stepline.errors import ReleaseError, StoreError
from stepline.io import read_json, write_sealed

HEADERS = 2
"""The revision of the header fields in a record; 2: with the stream and the shape of pixels."""
Status = Literal["present", "gone", "failed", "mismatched", "missing"]


@dataclass(frozen=True, kw_only=True)
class Record:
    """The status of one video.

    status: ``present``; ``gone`` (according to the site, quoted in ``reason``); ``failed`` (any other refusal, a
        network error, or not a video); ``mismatched`` (another checksum or duration than listed); ``missing`` (no
        address, and neither in the mirror nor at its path).
    reason: why it is not present; if it is present, "" or a compromise that was made for it.
    source: the origin of the file (``mirror``, a path, an address), or empty.
    attempts: the number of runs, so far, that tried to download it.
    downloader: the program and its version, empty if nothing was downloaded. format: the site's id of the format.
    codec, width, height, fps, duration_s: from the file's header; empty and 0 if they are unknown.
    stream: the place of the stream that is read among the file's video streams.
    pixels: width and height of a stored pixel, such as ``2:1``; empty if they are unknown.
    kept: False if the file was downloaded, used and deleted.
    spans: [start_s, end_s) of the parts that are read, ascending and disjoint; empty if it is read whole.
    rotation: the clockwise rotation in degrees that makes a stored picture upright, plus 360 if it is mirrored.
    begin_s: the time of the first picture, if it is more than 0.5 s after the start of the audio; otherwise 0.
    headers: the value of ``HEADERS`` when the header was read; 0 if it was not read.
    stamp: size and modification time, as text, of the file in the user's folder or the mirror when it was read.
    """

    video: str
    status: Status
    reason: str = ""
    path: str = ""
    sha256: str = ""
    size: int = 0
    source: str = ""
    attempts: int = 0
    downloader: str = ""
    format: str = ""
    codec: str = ""
    width: int = 0
    height: int = 0
    fps: float = 0.0
    duration_s: float = 0.0
    stream: int = 0
    pixels: str = ""
    kept: bool = True
    spans: list[list[float]] = field(default_factory=list)
    rotation: int = 0
    begin_s: float = 0.0
    headers: int = 0
    stamp: str = ""

    @property
    def seen_s(self) -> float:
        """Return the number of seconds that are read: 0 if it is not present or its header states no length."""
        if self.status != "present":
            return 0.0
        return sum(end_s - start_s for start_s, end_s in self.spans) if self.spans else self.duration_s

    def identity(self, orientation: Literal["upright", "stored"]) -> str:
        """Return the identity of the file in cache keys.

        It is the file's sha256 with the header fields that change how it is read: ``<sha256>~1`` for its second video
        stream, ``<sha256>+90``, ``<sha256>@2.000``.
        orientation: of the pictures; with ``stored``, a video that has a rotation is ``<sha256>+0``.
        """
        turned = f"+{self.rotation if orientation == 'upright' else 0}" if self.rotation else ""
        stream = f"~{self.stream}" if self.stream else ""
        return f"{self.sha256}{stream}{turned}{f'@{self.begin_s:.3f}' if self.begin_s else ''}"


LONGEST_ID = 128
"""In bytes of UTF-8. A file name may have 255, which leaves space for suffixes and the prefix of temporary files."""
_ASCII = re.compile("[A-Za-z0-9_.-]").fullmatch
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
).match
"""Invisible letters and marks (Unicode's Default_Ignorable_Code_Point)."""


def is_of_id(character: str) -> bool:
    """Return whether an id may have ``character``: a visible letter, digit or mark of any script, or one of ``_.-``."""
    if character.isascii():
        return bool(_ASCII(character))
    category = unicodedata.category(character)
    return (category[0] in "LN" or category in ("Mn", "Mc")) and not _UNSEEN(character)


def check_video_id(video: str) -> str:
    """Return ``video`` in Unicode's form NFC if it is a valid file name; raise ReleaseError otherwise."""
    named = unicodedata.normalize("NFC", video)
    if not all(map(is_of_id, named)) or named.startswith(".") or not 0 < len(named.encode()) <= LONGEST_ID:
        raise ReleaseError(
            f"video id {video!r} is not allowed: use at most {LONGEST_ID} bytes of letters, digits, '_', '-' and '.'"
        )
    return named


def write_manifest(path: Path | str, videos: dict[str, dict[str, Any]], **more: Any) -> None:
    """Write a job's result for each of its videos: ``{"videos": {id: {"status": ..., "reason": ..., ...}}, ...}``."""
    write_sealed(path, {"videos": videos, **more})


def read_manifest(path: Path | str) -> dict[str, dict[str, Any]]:
    """Return the ``videos`` of a manifest; raise StoreError if it is damaged."""
    content = read_json(path)
    videos = content.get("videos") if isinstance(content, dict) else None
    if not isinstance(videos, dict) or not all(isinstance(v, dict) and "status" in v for v in videos.values()):
        raise StoreError(f"{path} is not a record of videos: remove it and run the same command again")
    try:
        for video in videos:
            check_video_id(video)  # it becomes part of paths
    except ReleaseError as error:
        raise StoreError(f"{path}: {error}: remove the file and run the same command again") from None
    return videos


def length_s(item: tuple[str, dict[str, Any]]) -> float:
    """Return the length of an item of a media manifest, a video and its entry, in seconds; 0 if it has none."""
    seconds_s: float = item[1].get("duration_s", 0.0)
    return seconds_s


def write_availability(path: Path | str, records: list[Record]) -> None:
    """Write the records of a shard, sorted by id."""
    write_manifest(path, {r.video: asdict(r) for r in sorted(records, key=lambda r: r.video)})


def read_availability(path: Path | str) -> dict[str, Record]:
    """Return the records of a shard by video id; raise StoreError if the file is damaged."""
    try:
        return {video: Record(**record) for video, record in read_manifest(path).items()}
    except TypeError:
        raise StoreError(f"{path} is not an availability record: remove it and run the same command again") from None
