"""Segments of the user's videos: times and labels."""

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from stepline import paths
from stepline.availability import read_availability
from stepline.datasets import shards
from stepline.datasets.folder import named
from stepline.datasets.lines import lines
from stepline.errors import ConfigError


@dataclass(frozen=True)
class LabelledSpan:
    """The span [start_s, end_s) of a video, in seconds; label is "" if there is none."""

    start_s: float
    end_s: float
    label: str


ROUNDED_S = 1.0
"""Ends of segments up to this long after the end of the video count as rounded."""


def known_ends_s(dataset: str, shard: str = "*") -> dict[str, float]:
    """Return the ends of fetched videos in seconds, as their headers state them, of a shard or of all shards."""
    pattern = paths.availability(dataset, shard)
    read = [record for file in sorted(pattern.parent.glob(pattern.name)) for record in read_availability(file).values()]
    return {record.video: record.duration_s for record in read if record.duration_s}


def read_segments(
    dataset: str,
    file: str,
    videos: Container[str],
    *,
    key: str = "segments",
    ends_s: Mapping[str, float] = MappingProxyType({}),
    rounded: bool = False,
    say: Callable[[str], object] = print,
) -> dict[str, list[LabelledSpan]]:
    """Return the segments in the CSV ``file`` (video, start_s, end_s, optionally label) by video, sorted by time.

    videos: the ids of listed videos; the file may name a video by its id or its file. Segments of a video that is no
    longer listed are skipped. key: the configuration key of the file.
    ends_s: the ends of videos, where they are known. A segment that starts at the end of its video or later is left
    out, one that ends later is cut to it. ``say`` gets one line if there are any, except for segments that only end up
    to ``ROUNDED_S`` later; with ``rounded``, these are not cut either.
    Raises ConfigError with the file and line if the content is invalid.
    """
    found: dict[str, list[LabelledSpan]] = {}
    late: list[str] = []
    total = left_out = 0
    required = ("video", "start_s", "end_s")
    for number, line in lines(f"config: datasets.{dataset}.{key}", file, required=required, optional=("label",)):
        where, name = f"{file}, line {number}", line["video"]
        video = named(name, videos)
        if video is None and named(name, shards.read(paths.shards(dataset))):
            continue
        if video is None:
            raise ConfigError(f"{where}: {name!r} is not a video of {dataset}")
        try:
            start_s, end_s = float(line["start_s"]), float(line["end_s"])
        except ValueError:
            raise ConfigError(f"{where}: {line['start_s']!r}, {line['end_s']!r} are not two numbers") from None
        if not 0 <= start_s < end_s < math.inf:
            raise ConfigError(f"{where}: a segment must end after it starts, and start at 0 s or later")
        spans, last_s = found.setdefault(video, []), ends_s.get(video) or math.inf
        total += 1
        far = end_s > last_s + ROUNDED_S
        if far or start_s >= last_s:
            late.append(f"in line {number}: {video} ends at {last_s:.1f} s")
        if start_s >= last_s:
            left_out += 1
            continue
        kept_s = end_s if rounded and not far else min(end_s, last_s)
        spans.append(LabelledSpan(start_s, kept_s, line.get("label", "")))
    if late:
        say(
            f"{file}: {len(late)} of {total} {key} lie after the end of their video ({left_out} left out, "
            f"{len(late) - left_out} cut to its end), the first {late[0]}; times are in seconds"
        )
    return {video: sorted(spans, key=lambda span: (span.start_s, span.end_s)) for video, spans in found.items()}
