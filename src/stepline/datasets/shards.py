"""Shards: the videos of one job, recorded in a file."""

import csv
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from stepline.datasets.schema import Video
from stepline.errors import StoreError
from stepline.io import csv_text, write_text

MOST = 2000
"""The approximate maximum number of shards: planning 100 shards with six jobs each takes about 1 s of CPU time."""
HEADER = ["video", "shard"]


def assign(videos: Sequence[Video], *, hours: float, known: dict[str, str]) -> dict[str, str]:
    """Return the shard of every video: ``{video id: shard}``.

    known: shards from earlier runs, which do not change. A new video is added to the newest shard if the shard then has
    at most ``hours``, or the total length divided by ``MOST`` if that is more. Otherwise it starts the next shard, so a
    longer video is alone. The length is ``Video.length_s`` when the video is first seen.
    """
    shards = {video.id: known[video.id] for video in videos if video.id in known}
    if len(shards) == len(videos):
        return shards
    length_s = {video.id: video.length_s for video in videos}
    most_s = max(hours * 3600, sum(length_s.values()) / MOST)
    newest = max((int(shard) for shard in known.values()), default=0)
    filled = sum(length_s[video] for video, shard in shards.items() if shard == f"{newest:03d}")
    for video in [video for video in length_s if video not in shards]:
        if filled and filled + length_s[video] > most_s:
            newest, filled = newest + 1, 0.0
        shards[video] = f"{newest:03d}"
        filled += length_s[video]
    return shards


def read(path: Path | str) -> dict[str, str]:
    """Return the shards in ``path``; empty if the file does not exist; raise StoreError if it is damaged."""
    if not Path(path).exists():
        return {}
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        try:
            lines = csv.reader(file)
            header = next(lines, HEADER)
            column, other = header.index("video"), header.index("shard")
            shards = {line[column]: sys.intern(line[other]) for line in lines if line}
        except (csv.Error, ValueError, IndexError):
            shards = {"": ""}  # reported like a line without a video
    if "" in shards or not all(map(re.compile("[0-9]{3,9}").fullmatch, {*shards.values()})):
        raise StoreError(f"{path}: must have the columns video,shard and numbers such as 000: correct or remove it")
    return shards


def write(path: Path | str, shards: dict[str, str]) -> None:
    """Write ``video,shard`` lines."""
    write_text(path, csv_text(HEADER, shards.items()))
