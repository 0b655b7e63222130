"""Segments of the user's videos: times and labels."""

import hashlib
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from stepline import paths
from stepline.availability import read_availability
from stepline.datasets import shards
from stepline.datasets.folder import named
from stepline.datasets.lines import lines
from stepline.datasets.schema import SPLITS, Split, Video
from stepline.errors import ConfigError
from stepline.printable import printable


@dataclass(frozen=True)
class LabelledSpan:
    """The span [start_s, end_s) of a video, in seconds; label is "" if there is none. split: that of its video."""

    start_s: float
    end_s: float
    label: str
    split: Split | None = None


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
    """Return the segments in the CSV ``file`` (video, start_s, end_s, optionally label, split), sorted, by video.

    videos: the ids of listed videos; the file may name a video by its id or its file. Segments of a video that is no
    longer listed are skipped. key: the configuration key of the file.
    ends_s: the ends of videos, where they are known. A segment that starts at the end of its video or later is left
    out, one that ends later is cut to it. ``say`` gets one line if there are any, except for segments that only end up
    to ``ROUNDED_S`` later; with ``rounded``, these are not cut either.
    Raises ConfigError with the file and line if the content is invalid.
    """
    found: dict[str, list[LabelledSpan]] = {}
    splits: dict[str, Split] = {}
    labelled: dict[tuple[str, LabelledSpan], int] = {}
    late: list[str] = []
    total = left_out = 0
    for number, line in _lines(dataset, file, key):
        where, name = f"{file}, line {number}", line["video"]
        video = named(name, videos)
        if video is None and named(name, shards.read(paths.shards(dataset))):
            continue
        if video is None:
            raise ConfigError(f"{where}: {name!r} is not a video of {dataset}")
        span = _span(where, line)
        if span.label and (first := labelled.setdefault((video, span), number)) != number:
            raise ConfigError(f"{where}: the same segment is already in line {first}: remove one")
        if span.split and splits.setdefault(video, span.split) != span.split:
            raise ConfigError(f"{where}: {video} is in split {splits[video]} and in split {span.split}: give it one")
        spans, last_s = found.setdefault(video, []), ends_s.get(video) or math.inf
        total += 1
        far = span.end_s > last_s + ROUNDED_S
        if far or span.start_s >= last_s:
            late.append(f"in line {number}: {video} ends at {last_s:.1f} s")
        if span.start_s >= last_s:
            left_out += 1
            continue
        spans.append(span if rounded and not far else replace(span, end_s=min(span.end_s, last_s)))
    if late:
        say(
            f"{file}: {len(late)} of {total} {key} lie after the end of their video ({left_out} left out, "
            f"{len(late) - left_out} cut to its end), the first {late[0]}; times are in seconds"
        )
    return {video: sorted(spans, key=lambda span: (span.start_s, span.end_s)) for video, spans in found.items()}


def _span(where: str, line: Mapping[str, str]) -> LabelledSpan:
    """Return the segment of a line; raise ConfigError if a value is not valid."""
    try:
        start_s, end_s = float(line["start_s"]), float(line["end_s"])
    except ValueError:
        raise ConfigError(f"{where}: {line['start_s']!r}, {line['end_s']!r} are not two numbers") from None
    if not 0 <= start_s < end_s < math.inf:
        raise ConfigError(f"{where}: a segment must end after it starts, and start at 0 s or later")
    label, split = line.get("label", ""), line.get("split", "")
    if printable(label) != label:
        raise ConfigError(f"{where}: the label {label!r} contains a control character: remove it")
    if split not in ("", *SPLITS):
        raise ConfigError(f"{where}: split {split!r} is not one of {', '.join(SPLITS)}, or empty")
    return LabelledSpan(start_s, end_s, label, next((each for each in SPLITS if each == split), None))


def has_labels(dataset: str, file: str) -> bool:
    """Return whether a line of a file of segments has a label; raise ConfigError as ``read_segments`` does."""
    return any(line.get("label") for _, line in _lines(dataset, file, "segments"))


def _lines(dataset: str, file: str, key: str) -> Iterator[tuple[int, dict[str, str]]]:
    columns = {"required": ("video", "start_s", "end_s"), "optional": ("label", "split")}
    return lines(f"config: datasets.{dataset}.{key}", file, **columns)


def with_splits(dataset: str, file: str, videos: Sequence[Video]) -> tuple[Video, ...]:
    """Return the videos with their splits: those of their segments in the CSV ``file``, or else their own.

    If there are labels, only videos with a label have a split. If none of these states one, they are divided in the
    order of the sha256 of their ids: the first fifth, rounded down but at least one, is test, the next fifth val, and
    the rest train; of fewer than three, all are test.
    Raises ConfigError if the file is not valid, or if only some of the labelled videos have a split.
    """
    found = read_segments(dataset, file, {video.id for video in videos})
    splits = {
        each.id: next((span.split for span in found.get(each.id, ()) if span.split), each.split) for each in videos
    }
    if labelled := [video for video, spans in found.items() if any(span.label for span in spans)]:
        splits = {video: splits[video] for video in labelled}
        without = [video for video, split in splits.items() if not split]
        if 0 < len(without) < len(splits):
            raise ConfigError(f"{file}: {without[0]} has labels and no split, as other videos have: give it one")
        if without:
            order = sorted(splits, key=lambda video: hashlib.sha256(video.encode()).hexdigest())
            fifth = max(1, len(order) // 5) if len(order) > 2 else len(order)
            splits.update(dict.fromkeys(order, "train"))
            splits.update(dict.fromkeys(order[fifth : 2 * fifth], "val"))
            splits.update(dict.fromkeys(order[:fifth], "test"))
    return tuple(replace(video, split=splits.get(video.id)) for video in videos)
