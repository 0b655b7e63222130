"""Samples of both tasks, byte for byte equal to the released files."""

import itertools
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stepline.datasets.schema import SPLITS, Recording, Release, Segment, Split
from stepline.datasets.studies import STEP_RECOGNITION, Study
from stepline.io import write_bytes

SEED = 43
"""Seed of the released retrieval samples: one random stream for train, val and test."""
IRRELEVANT_ODDS = 100
"""A pair with an Irrelevant segment is drawn with probability 1 / IRRELEVANT_ODDS."""

Items = dict[str, list[dict[str, Any]]]


def write_samples(study: Study, release: Release, task: str, split: Split, path: Path) -> None:
    """Write one split's samples of ``task``, equal to the release's.

    If the samples of a release cannot be generated again (v0 used no seed), its own files are copied.
    """
    if release.name in study.as_released:
        write_bytes(path, study.release_file(release.name, f"tasks/{task}/{split}.json").read_bytes())
        return
    if task == STEP_RECOGNITION:
        items = step_recognition(release, split, n=study.samples_per_video)
    else:
        items = retrieval(
            release,
            n=study.samples_per_video,
            min_distance=int(study.min_distance_s * release.fps),
            boundary=int(study.boundary_s * release.fps),
        )[split]
    write_bytes(path, json.dumps(items, indent=4).encode())


def step_recognition(release: Release, split: Split, *, n: int) -> Items:
    """Return ``n`` samples per recording, balanced over the labels 0..K (paper Sec. 4.1).

    Quotas are assigned round-robin to labels that have frames left. A label's samples are equally spaced over all of
    its frames in time order. Samples are sorted by frame; ``id`` is the rank.
    """
    return {video: _balanced(release.recordings[video], release.fps, n) for video in release.splits[split]}


def _balanced(recording: Recording, fps: float, n: int) -> list[dict[str, Any]]:
    pools = [
        np.concatenate([np.arange(s.start_frame, s.end_frame) for s in recording.segments if s.label == label])
        for label in range(len(recording.steps))
    ]
    quotas = _deal(n, [len(pool) for pool in pools])
    frames = [
        (int(pool[int((len(pool) - 1) * j / (quota + 1))]), label)
        for label, (pool, quota) in enumerate(zip(pools, quotas, strict=True))
        for j in range(1, quota + 1)
    ]
    frames.sort(key=lambda pair: pair[0])
    return [
        {"timestamp": frame / fps, "frame_index": frame, "label": label, "id": rank}
        for rank, (frame, label) in enumerate(frames)
    ]


def _deal(n: int, limits: Sequence[int]) -> list[int]:
    quotas = [0] * len(limits)
    while n > 0 and any(quota < limit for quota, limit in zip(quotas, limits, strict=True)):
        for i, limit in enumerate(limits):
            if n > 0 and quotas[i] < limit:
                quotas[i] += 1
                n -= 1
    return quotas


def retrieval(release: Release, *, n: int, min_distance: int, boundary: int) -> dict[Split, Items]:
    """Return ``n`` samples per recording of every split, from one seeded random stream.

    A query and its positive are in one labelled segment; the negative is in the adjacent segment, at the same distance.
    All three are at least ``boundary`` frames from a segment boundary, and the candidates at least ``min_distance``
    frames from the query. (The paper, Sec. 4.2, only requires that one candidate shows another step.)
    """
    stream = random.Random(SEED)
    return {
        split: {
            video: _pairs(release.recordings[video].segments, n, min_distance, boundary, stream)
            for video in release.splits[split]
        }
        for split in SPLITS
    }


@dataclass(frozen=True)
class _Geometry:
    """A query segment of ``own`` frames next to one of ``other`` frames; x counts from the query segment's far end."""

    own: int
    other: int
    min_distance: int
    boundary: int

    def queries(self) -> range:
        """Return all x with at least one allowed distance."""
        if 2 * self.boundary > self.other - 1:
            return range(0)
        low = max(self.min_distance, (self.own + 1) // 2) + self.boundary
        high = min(self.own - 1, self.own + self.other - 1 - self.min_distance) - self.boundary
        return range(low, high + 1)

    def distance(self, x: int, stream: random.Random) -> int:
        """Draw a distance from the range that x allows."""
        least = max(self.min_distance, self.own + self.boundary - x)
        greatest = min(x, self.own + self.other - 1 - x) - self.boundary
        return stream.randint(least, greatest)


def _pairs(
    segments: Sequence[Segment], n: int, min_distance: int, boundary: int, stream: random.Random
) -> list[dict[str, Any]]:
    pairs, caps = [], []
    for former, latter in itertools.pairwise(segments):
        if min(former.label, latter.label) < 0:
            continue
        lengths = former.end_frame - former.start_frame, latter.end_frame - latter.start_frame
        forward = _Geometry(*lengths, min_distance, boundary)
        backward = _Geometry(*lengths[::-1], min_distance, boundary)
        if cap := 2 * min(len(forward.queries()), len(backward.queries())):
            pairs.append((former, latter, forward, backward))
            caps.append(cap)

    quotas = [0] * len(pairs)
    while n > 0 and any(caps):
        for i, (former, latter, _, _) in enumerate(pairs):
            if n > 0 and caps[i] > 0:
                irrelevant = 0 in (former.label, latter.label)
                if not irrelevant or stream.randint(1, IRRELEVANT_ODDS) == 1:
                    quotas[i] += 1
                    caps[i] -= 1
                    n -= 1

    triples: list[tuple[int, int, int]] = []
    for (former, latter, forward, backward), quota in zip(pairs, quotas, strict=True):
        start, end = former.start_frame, latter.end_frame - 1
        triples += [(start + x, start + x - d, start + x + d) for x, d in _draw(forward, quota // 2, stream)]
        triples += [(end - x, end - x + d, end - x - d) for x, d in _draw(backward, quota - quota // 2, stream)]

    items = []
    for rank, (query, positive, negative) in enumerate(triples):
        label = stream.randint(0, 1)
        candidates = [negative, positive] if label else [positive, negative]
        items.append({"query_frame_index": query, "candidate_frame_indices": candidates, "label": label, "id": rank})
    return items


def _draw(geometry: _Geometry, n: int, stream: random.Random) -> list[tuple[int, int]]:
    queries = geometry.queries()
    return [(x, geometry.distance(x, stream)) for x in (queries[len(queries) * i // n] for i in range(n))]
