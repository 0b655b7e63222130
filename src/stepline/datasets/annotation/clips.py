"""The clips that annotators label: shots, which are shorter than steps (Spacewalk-18, Sec. 3.1)."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from stepline.availability import check_video_id
from stepline.datasets.lines import lines
from stepline.datasets.segments import ROUNDED_S
from stepline.errors import ConfigError, ReleaseError
from stepline.io import csv_text, read_table, write_text

Clips = dict[str, dict[int, tuple[float, float]]]
"""[start_s, end_s) by video and number, in temporal order."""
SEGMENT_S = 3600.0
"""The length of a recording's part that is labelled in one sitting (Appendix A.1)."""


def clips_of_shots(folder: Path, videos: Iterable[str]) -> Clips:
    """Return the shots of the videos that have any; folder: the data set's folder of shots."""
    found: Clips = {}
    for video in videos:
        if (path := folder / f"{video}.parquet").exists():
            rows = read_table(path, columns=["shot", "start_s", "end_s"]).to_pylist()
            found[video] = {row["shot"]: (row["start_s"], row["end_s"]) for row in rows}
    return found


def segments_of(clips: dict[int, tuple[float, float]], segment_s: float) -> list[int]:
    """Return the index of the part of the recording that contains the middle of each clip.

    The recording has round(duration / segment_s) equal parts, at least one.
    """
    duration_s = max(end_s for _, end_s in clips.values())
    n = max(1, round(duration_s / segment_s))
    return [int((start_s + end_s) / 2 / duration_s * n) for start_s, end_s in clips.values()]


def write_clips(path: Path, clips: Clips, segment_s: float = SEGMENT_S) -> None:
    """Write the list of clips for annotators; raise ConfigError if another list exists already."""
    rows = [
        (video, number, segment, *span)
        for video, numbered in clips.items()
        for segment, (number, span) in zip(segments_of(numbered, segment_s), numbered.items(), strict=True)
    ]
    content = csv_text(("video", "clip", "segment", "start_s", "end_s"), rows)
    if path.exists() and path.read_bytes() != content.encode():
        raise ConfigError(f"{path} lists other clips, and existing labels are only for those: move it away first")
    write_text(path, content)


def read_clips(file: Path, ends_s: Mapping[str, float] = MappingProxyType({})) -> Clips:
    """Return the clips in ``file``.

    ends_s: the ends of videos, where they are known. Raises ConfigError with file and line if a line is not a clip, if
    a video's clips are not in temporal order, or if clips end more than ``ROUNDED_S`` after the end of their video.
    """
    found: Clips = {}
    late: list[str] = []
    for number, line in lines(
        "--clips", str(file), required=("video", "clip", "start_s", "end_s"), optional=("segment",)
    ):
        where = f"{file}, line {number}"
        try:
            video = check_video_id(line["video"])
        except ReleaseError as error:
            raise ConfigError(f"{where}: {error}") from None
        if not line["clip"].isdecimal():
            raise ConfigError(f"{where}: clip {line['clip']!r} must be a whole number from 0")
        clips = found.setdefault(video, {})
        if int(line["clip"]) in clips:
            raise ConfigError(f"{where}: clip {line['clip']} of {video} is listed twice")
        try:
            start_s, end_s = float(line["start_s"]), float(line["end_s"])
        except ValueError:
            raise ConfigError(f"{where}: {line['start_s']!r}, {line['end_s']!r} are not two numbers") from None
        _, last_s = next(reversed(clips.values()), (0.0, 0.0))
        if not last_s <= start_s < end_s < math.inf:
            raise ConfigError(
                f"{where}: a clip must start at {last_s:g} s, the end of the last clip of {video}, or later, and end"
            )
        clips[int(line["clip"])] = start_s, end_s
        last_s = ends_s.get(video, math.inf)
        if end_s > last_s + ROUNDED_S:
            late.append(f"in line {number}: {video} ends at {last_s:.1f} s")
    if late:
        raise ConfigError(
            f"{file}: {len(late)} of {sum(map(len, found.values()))} clips end after the end of their video, "
            f"the first {late[0]}; times are in seconds"
        )
    if not found:
        raise ConfigError(f"{file} contains no clips")
    return found
