"""Mean average precision of article grounding in both evaluations, compared with plain Python, pair by pair."""

from collections import defaultdict
from functools import partial

import numpy as np
from measure import show, sized

from stepline.metrics.grounding import TIOUS, PredictedSegments, Reading, TrueSegments, article_grounding

VIDEOS, ACTIVITIES, STEPS, PREDICTED = *sized((600, 120), small=(20, 4)), 12, 200
READINGS: tuple[Reading, Reading] = ("official", "per_query")
ARTICLES = {
    activity * STEPS + step: (f"activity {activity:03}", "none")
    for activity in range(ACTIVITIES)
    for step in range(STEPS)
}

Segment = tuple[str, float, float, int]


def segments(per_video: tuple[int, int], seed: int) -> list[Segment]:
    """Return segments of videos of 6 min: video, start and end in seconds, step."""
    rng = np.random.default_rng(seed)
    found = []
    for video in range(VIDEOS):
        for _ in range(rng.integers(*per_video, endpoint=True)):
            start_s, step = rng.uniform(0, 345), video % ACTIVITIES * STEPS + rng.integers(STEPS)
            found.append((f"video {video:03}", float(start_s), float(start_s + rng.gamma(2, 8) + 1), int(step)))
    return found


def plain(true: list[Segment], predicted: list[Segment], scores: list[float], reading: Reading) -> list[list[float]]:
    """Return the average precisions of each activity; segments and scores must be unique."""
    used = {step for *_, step in true}
    truths, ranked = defaultdict(list), defaultdict(list)
    for segment in true:
        truths[ARTICLES[segment[3]]].append(segment)
    for _, segment in sorted(zip(scores, predicted, strict=True), reverse=True):
        if reading == "per_query" or segment[3] in used:
            ranked[ARTICLES[segment[3]]].append(segment)
    return [plain_ap(truths[article], ranked[article], reading) for article in sorted(truths)]


def plain_ap(true: list[Segment], ranked: list[Segment], reading: Reading) -> list[float]:
    """Return the average precision of an activity at each threshold, one prediction at a time."""
    by_key = defaultdict(list)
    for number, (video, start_s, end_s, step) in enumerate(true):
        by_key[video if reading == "official" else (video, step)].append((number, start_s, end_s))
    taken: list[set[int]] = [set() for _ in TIOUS]
    hits: list[list[int]] = [[] for _ in TIOUS]
    for place, (video, start_s, end_s, step) in enumerate(ranked, start=1):
        overlaps = []
        for number, other_start_s, other_end_s in by_key[video if reading == "official" else (video, step)]:
            shared = max(0.0, min(end_s, other_end_s) - max(start_s, other_start_s))
            overlaps.append((shared / (other_end_s - other_start_s + end_s - start_s - shared), number))
        overlaps.sort(reverse=True)
        for each, threshold in enumerate(TIOUS):
            for iou, number in overlaps:
                if iou < threshold:
                    break
                if number not in taken[each]:
                    taken[each].add(number)
                    hits[each].append(place)
                    break
    return [
        sum(max((later + 1) / hit[later] for later in range(first, len(hit))) for first in range(len(hit))) / len(true)
        for hit in hits
    ]


def main() -> None:
    """Print the table."""
    true, predicted = segments((3, 8), 0), segments((PREDICTED, PREDICTED), 1)
    scores = np.random.default_rng(2).permutation(len(predicted)).astype(float).tolist()
    arguments = (
        TrueSegments(*map(list, zip(*true, strict=True))),
        PredictedSegments(*map(list, zip(*predicted, strict=True)), scores),
        ARTICLES,
    )
    for reading in READINGS:
        calls = {
            "plain Python": partial(plain, true, predicted, scores, reading),
            "article_grounding": partial(article_grounding, *arguments, reading=reading),
        }
        found = article_grounding(*arguments, reading=reading).ap
        np.testing.assert_allclose(found, plain(true, predicted, scores, reading), rtol=0, atol=1e-12)
        show(f"{len(predicted):,} predicted and {len(true):,} true segments, {reading}", "plain Python", calls)


if __name__ == "__main__":
    main()
