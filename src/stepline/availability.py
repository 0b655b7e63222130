"""Availability is data: what became of every listed video, as a record with a reason."""

import re
import unicodedata
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from stepline.errors import ReleaseError, StoreError
from stepline.io import read_json, write_sealed

HEADERS = 1
"""Of what a record keeps of a video's header: another number has the headers of all videos read anew."""
Status = Literal["present", "gone", "failed", "mismatched", "missing"]


@dataclass(frozen=True, kw_only=True)
class Record:
    """What became of one video.

    status: ``present``; ``gone`` (the site says so, in ``reason``); ``failed`` (any other refusal, network, no header
        of a video); ``mismatched`` (another checksum or duration than listed); ``missing`` (no address, and not in the
        mirror or at its path).
    reason: why it is not present; where it is, "" or what was given up for it.
    source: where the file came from or was asked for (``mirror``, a path, an address), else empty.
    attempts: in how many runs, so far, the network was asked.
    downloader: the program and its version, empty where nothing was downloaded; format: the site's id of what came.
    codec, width, height, fps, duration_s: as the file's header says; empty and 0 where it does not or was not read.
    kept: False where the file came, was used and is deleted.
    spans: [start_s, end_s) of what is read of it, ascending and apart; none where that is the whole.
    rotation: by how many degrees, clockwise, a stored picture is turned to be upright; 360 more where it is mirrored.
    begin_s: when the first picture is shown, where that is more than 0.5 s after the sound begins; else 0.
    headers: the ``HEADERS`` by which the header was read; 0 where it was not.
    stamp: size and modification time of the file in the user's folder or the mirror, as text, when these bytes came.
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
    kept: bool = True
    spans: list[list[float]] = field(default_factory=list)
    rotation: int = 0
    begin_s: float = 0.0
    headers: int = 0
    stamp: str = ""

    @property
    def seen_s(self) -> float:
        """Return how many seconds of it are read: 0 where it is not present or its header says no length."""
        if self.status != "present":
            return 0.0
        return sum(end_s - start_s for start_s, end_s in self.spans) if self.spans else self.duration_s

    def identity(self, orientation: Literal["upright", "stored"]) -> str:
        """Return what all that is made from the file is known by.

        It is the file's sha256, with what of its header decides how it is read: ``<sha256>+90``, ``<sha256>@2.000``.
        orientation: in which pictures are read; one that is ``stored`` is not turned.
        """
        turned = f"+{self.rotation}" if self.rotation and orientation == "upright" else ""
        return f"{self.sha256}{turned}{f'@{self.begin_s:.3f}' if self.begin_s else ''}"


LONGEST_ID = 128
"""In bytes of UTF-8. A file name may have 255: suffixes, and what marks a file as temporary, stand around the id."""
_ASCII = re.compile("[A-Za-z0-9_.-]").fullmatch
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
).match
"""Letters and marks that show nothing (Unicode's Default_Ignorable_Code_Point)."""


def is_of_id(character: str) -> bool:
    """Return whether an id may have ``character``: a visible letter, digit or mark of any script, or one of ``_.-``."""
    if character.isascii():
        return bool(_ASCII(character))
    category = unicodedata.category(character)
    return (category[0] in "LN" or category in ("Mn", "Mc")) and not _UNSEEN(character)


def check_video_id(video: str) -> str:
    """Return ``video`` in Unicode's form NFC where it is fit to be a file name; raise ReleaseError otherwise."""
    named = unicodedata.normalize("NFC", video)
    if not all(map(is_of_id, named)) or named.startswith(".") or not 0 < len(named.encode()) <= LONGEST_ID:
        raise ReleaseError(
            f"video id {video!r} is not allowed: use at most {LONGEST_ID} bytes of letters, digits, '_', '-' and '.'"
        )
    return named


def write_manifest(path: Path | str, videos: dict[str, dict[str, Any]], **more: Any) -> None:
    """Write what a job made of each of its videos: ``{"videos": {id: {"status": ..., "reason": ..., ...}}, ...}``."""
    write_sealed(path, {"videos": videos, **more})


def read_manifest(path: Path | str) -> dict[str, dict[str, Any]]:
    """Return the ``videos`` of a manifest; raise StoreError where it is damaged."""
    content = read_json(path)
    videos = content.get("videos") if isinstance(content, dict) else None
    if not isinstance(videos, dict) or not all(isinstance(v, dict) and "status" in v for v in videos.values()):
        raise StoreError(f"{path} is no record of videos: remove it and run the same again")
    try:
        for video in videos:
            check_video_id(video)  # it becomes part of paths
    except ReleaseError as error:
        raise StoreError(f"{path}: {error}: remove the file and run the same again") from None
    return videos


def length_s(item: tuple[str, dict[str, Any]]) -> float:
    """Return the length of a video and what a manifest of media says of it; 0 where it says none."""
    seconds_s: float = item[1].get("duration_s", 0.0)
    return seconds_s


def write_availability(path: Path | str, records: list[Record]) -> None:
    """Write the records of a shard, in the order of their ids."""
    write_manifest(path, {r.video: asdict(r) for r in sorted(records, key=lambda r: r.video)})


def read_availability(path: Path | str) -> dict[str, Record]:
    """Return the records of a shard by video id; raise StoreError where the file is damaged."""
    try:
        return {video: Record(**record) for video, record in read_manifest(path).items()}
    except TypeError:
        raise StoreError(f"{path} is no record of availability: remove it and run the same again") from None
