"""A list of videos with addresses: a CSV file."""

import math
import re
from collections.abc import Callable

from stepline.availability import check_video_id
from stepline.datasets.lines import lines
from stepline.datasets.schema import SPLITS, Video
from stepline.errors import ConfigError, ReleaseError


def _is_length(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


CHECKS: dict[str, tuple[Callable[[str], object], str]] = {
    "url": (re.compile(r"https?://[^/\s]\S*").fullmatch, "an address that starts with http:// or https://"),
    "sha256": (re.compile("[0-9a-fA-F]{64}|").fullmatch, "64 hexadecimal digits"),
    "duration_s": (lambda text: text == "" or _is_length(text), "a number of seconds"),
    "split": (("", *SPLITS).__contains__, f"one of {', '.join(SPLITS)}, or empty"),
}


def videos(dataset: str, file: str) -> tuple[Video, ...]:
    """Return the videos in the CSV ``file`` with the columns video, url and optionally sha256, duration_s, split.

    Raises ConfigError with file and line if it is absent, empty or has an invalid line.
    """
    found: dict[str, int] = {}
    listed = []
    for number, line in lines(
        f"config: datasets.{dataset}.videos", file, required=("video", "url"), optional=tuple(CHECKS)[1:]
    ):
        try:
            video = check_video_id(line["video"])
        except ReleaseError as error:
            raise ConfigError(f"{file}, line {number}: {error}") from None
        if video in found:
            raise ConfigError(f"{file}, line {number}: video {video} is already in line {found[video]}")
        for column, (holds, wanted) in CHECKS.items():
            if column in line and not holds(line[column]):
                raise ConfigError(f"{file}, line {number}: {column} {line[column]!r} is not {wanted}")
        found[video] = number
        listed.append(
            Video(
                id=video,
                split=line.get("split") or None,  # type: ignore[arg-type]
                duration_s=float(line["duration_s"]) if line.get("duration_s") else None,
                url=line["url"],
                path=f"{dataset}/videos/{video}.mp4",
                sha256=line.get("sha256", "").lower(),
            )
        )
    if not listed:
        raise ConfigError(f"config: datasets.{dataset}.videos: {file} contains no videos")
    return tuple(listed)
