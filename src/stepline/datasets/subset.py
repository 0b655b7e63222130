"""Subsets of a data set's videos: by name, by fraction or by hours; seeded."""

import random
from collections.abc import Sequence
from typing import Any

from stepline.datasets.schema import SPLITS, Video
from stepline.errors import ConfigError


def select(videos: Sequence[Video], subset: dict[str, Any] | None) -> tuple[str, ...]:
    """Return the ids of the chosen videos, in the listed order.

    subset: None (all), ``{"videos": [...]}``, ``{"fraction": f, "seed": s}`` or ``{"hours": h, "seed": s}``. Fractions
    and hours are drawn within each split, at least one video each; the hours of a split are proportional to its length.
    Raises ConfigError if a named video is not listed, or if no videos are listed.
    """
    if subset is None:
        return tuple(video.id for video in videos)
    if not videos:
        raise ConfigError("config: subset: no videos are listed to choose from; remove it")
    if "videos" in subset:
        if unknown := sorted(set(subset["videos"]) - {video.id for video in videos}):
            raise ConfigError(
                f"config: subset.videos: {unknown[0]!r} is not listed; choose from {', '.join(v.id for v in videos)}"
            )
        return tuple(video.id for video in videos if video.id in subset["videos"])
    chosen: set[str] = set()
    total_s = sum(video.length_s for video in videos)
    for split in SPLITS:
        members = [video for video in videos if video.split == split]
        order = random.Random(f"{subset['seed']}-{split}").sample(members, len(members))
        split_s = sum(video.length_s for video in members)
        budget_s = subset["fraction"] * split_s if "fraction" in subset else subset["hours"] * 3600 * split_s / total_s
        taken_s = 0.0
        for video in order:
            if taken_s and taken_s + video.length_s > budget_s + 1e-3:  # float sums depend on the order
                break
            chosen.add(video.id)
            taken_s += video.length_s
    return tuple(video.id for video in videos if video.id in chosen)


def describe(subset: dict[str, Any] | None) -> str:
    """Return a short description for tables; "" for all videos."""
    if subset is None:
        return ""
    if "videos" in subset:
        return f"{len(subset['videos'])} named videos"
    amount = f"{subset['fraction']:g} of each split" if "fraction" in subset else f"{subset['hours']:g} hours"
    return f"{amount}, seed {subset['seed']}"
