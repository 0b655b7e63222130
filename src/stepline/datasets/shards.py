"""Shards are a file, not a formula: which videos one job works on."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from stepline.datasets.schema import Video
from stepline.errors import StoreError
from stepline.io import csv_text, write_text


def assign(videos: Sequence[Video], *, hours: float, known: dict[str, str]) -> dict[str, str]:
    """Return the shard of every video: ``{video id: shard}``.

    known: shards that earlier runs gave; they stay. A new video fills the newest shard while that holds at most
    ``hours`` with it, else it opens the next one; so a video longer than ``hours`` is alone. What counts is
    ``Video.length_s``, at the time when the video is new.
    """
    shards = {video.id: known[video.id] for video in videos if video.id in known}
    newest = max((int(shard) for shard in known.values()), default=0)
    filled = sum(video.length_s for video in videos if shards.get(video.id) == f"{newest:03d}")
    for video in videos:
        if video.id in shards:
            continue
        if filled and filled + video.length_s > hours * 3600:
            newest, filled = newest + 1, 0.0
        shards[video.id] = f"{newest:03d}"
        filled += video.length_s
    return shards


def read(path: Path | str) -> dict[str, str]:
    """Return the shards in ``path``, or none where the file does not exist; raise StoreError where it is damaged."""
    if not Path(path).exists():
        return {}
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        try:
            shards = {row.get("video") or "": row.get("shard") or "" for row in csv.DictReader(file)}
        except csv.Error:
            shards = {"": ""}  # as wrong as a line without a video
    if not all(video and re.fullmatch(r"[0-9]{3,9}", shard) for video, shard in shards.items()):
        raise StoreError(f"{path}: must have the columns video,shard and numbers such as 000: correct or remove it")
    return shards


def write(path: Path | str, shards: dict[str, str]) -> None:
    """Write ``video,shard`` lines."""
    write_text(path, csv_text(["video", "shard"], shards.items()))
