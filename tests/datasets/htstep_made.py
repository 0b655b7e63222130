"""Synthetic annotation for HT-Step, with the released form, taxonomy and videos and statistics close to the paper's.

Steps and times are drawn at random and say nothing about any video. No number computed from it is a result.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from stepline.datasets.htstep import SPLITS, articles, split_videos

MATCH = {"key": "match", "full": "full", "partial": "partial"}
"""The keys of full and partial matches, for ``load``."""
VIDEOS_PER_SEEN = 5
"""The number of videos per activity in val_seen and in test_seen."""
UNSEEN, SHARED = 32 / 433, 63 / 120
"""The fraction of activities that are not in train, and of test_seen's activities that are also in val_seen."""


def make_annotations(
    seed: int, splits: Sequence[str] = SPLITS, *, durations: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """Return the records of the videos of these splits in the form of ``annotations.json``, in the released order.

    durations: known durations in seconds; others are drawn. Each record has ``made`` and its ``duration``. The result
    depends only on the seed, not on which other splits are requested. Raises ReleaseError if ``v1`` is not fetched.
    """
    steps_of, videos, article_of = articles(), split_videos(), _articles_of_videos(seed)
    found = {}
    for split in splits:
        for video in videos[split]:
            random, article = Random(f"{seed} {video}"), article_of[video]
            drawn_s = round(min(max(random.lognormvariate(5.82, 0.52), 45.0), 1800.0), 2)
            duration_s = (durations or {}).get(video, drawn_s)
            found[video] = {
                "subset": split,
                "activity": article[0],
                "made": True,
                "duration": duration_s,
                "annotations": _segments(random, steps_of[article], duration_s),
            }
    return found


def _articles_of_videos(seed: int) -> dict[str, tuple[str, str]]:
    """Return the activity and variation of each video, for all splits."""
    random, videos = Random(f"{seed}"), split_videos()
    variations: dict[str, list[str]] = {}
    for activity, variation in articles():
        variations.setdefault(activity, []).append(variation)
    activities = [*variations]
    random.shuffle(activities)
    n_unseen = max(1, round(UNSEEN * len(activities)))
    unseen, seen = activities[:n_unseen], activities[n_unseen:]
    n_val, n_test = (-(-len(videos[split]) // VIDEOS_PER_SEEN) for split in ("val_seen", "test_seen"))
    first = max(0, n_val - round(SHARED * n_test))
    spread = {
        "train": _spread(random, seen, len(videos["train"]), least=4, most=150),
        "val_seen": _spread(random, seen[:n_val], len(videos["val_seen"]), least=VIDEOS_PER_SEEN, most=VIDEOS_PER_SEEN),
        "val_unseen": _spread(random, unseen, len(videos["val_unseen"]), least=10, most=70),
        "test_seen": _spread(
            random, seen[first:][:n_test], len(videos["test_seen"]), least=VIDEOS_PER_SEEN, most=VIDEOS_PER_SEEN
        ),
        "test_unseen": _spread(random, unseen, len(videos["test_unseen"]), least=17, most=70),
    }
    return {
        video: (activity, random.choice(variations[activity]))
        for split in SPLITS
        for video, activity in zip(videos[split], spread[split], strict=True)
    }


def _spread(random: Random, activities: Sequence[str], n: int, *, least: int, most: int) -> list[str]:
    """Return n activities in random order with uneven frequencies: ``least`` to ``most`` times each, if n allows."""
    each = n // len(activities)
    counts = Counter(dict.fromkeys(activities, min(least, each)))
    weights = [random.lognormvariate(0, 0.6) for _ in activities]
    while (left := n - counts.total()) > 0:
        for activity in random.choices(activities, weights, k=left):
            counts[activity] += counts[activity] < max(most, each + 1)
    found = [*counts.elements()]
    random.shuffle(found)
    return found


def _segments(random: Random, article: Sequence[int], duration_s: float) -> list[dict[str, Any]]:
    """Return the non-overlapping segments of a video, sorted by start."""
    shown = [step for step in article if random.random() < 0.407] or [random.choice(article)]
    sequence = [step for step in shown for _ in range(1 + min(int(random.expovariate(1.0)), 6))]
    places = [place + random.gauss(0, 2.85) for place in range(len(sequence))]
    sequence = [step for _, step in sorted(zip(places, sequence, strict=True))]
    lengths = [min(max(random.lognormvariate(-3.71, 0.95) * duration_s, 1.0), 240.0) for _ in sequence]
    scale = min(1.0, 0.9 * duration_s / sum(lengths))
    gaps = [random.expovariate(1) for _ in (*sequence, None)]
    spare = (duration_s - scale * sum(lengths)) / sum(gaps)
    full = {step: random.random() < 0.265 for step in shown}
    found, now = [], 0.0
    for step, length, gap in zip(sequence, lengths, gaps, strict=False):
        now += spare * gap
        end = now + scale * length
        is_full = full[step] != (random.random() < 0.02)
        match = MATCH["full" if is_full else "partial"]
        found.append({"id": step, "segment": [round(now, 2), round(end, 2)], MATCH["key"]: match})
        now = end
    return found
