"""Segments of the user's videos: times and labels."""

import math
from collections.abc import Container
from dataclasses import dataclass

from stepline import paths
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


def read_segments(
    dataset: str, file: str, videos: Container[str], *, key: str = "segments"
) -> dict[str, list[LabelledSpan]]:
    """Return the segments in the CSV ``file`` (video, start_s, end_s, optionally label) by video, sorted by time.

    videos: the ids of listed videos; the file may name a video by its id or its file. Segments of a video that is no
    longer listed are skipped. key: the configuration key of the file.
    Raises ConfigError with the file and line if the content is invalid.
    """
    found: dict[str, list[LabelledSpan]] = {}
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
        found.setdefault(video, []).append(LabelledSpan(start_s, end_s, line.get("label", "")))
    return {video: sorted(spans, key=lambda span: (span.start_s, span.end_s)) for video, spans in found.items()}
