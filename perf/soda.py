"""SODA-D of many videos at once, compared with plain Python, pair by pair."""

from itertools import pairwise

import numpy as np
from measure import show, sized

from stepline.metrics import soda_d_videos

VIDEOS, TRUE, PREDICTED = sized(10_000, small=100), 8, 30

Video = list[list[float]]


def videos(segments: int, seed: int) -> list[Video]:
    """Return videos of 300 s, cut into segments at random times, the segments in random order."""
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.uniform(0, 300, (VIDEOS, segments + 1)), axis=1).tolist()
    cut: list[Video] = [[list(times) for times in pairwise(each)] for each in edges]
    for video in cut:
        rng.shuffle(video)
    return cut


def plain(gt: list[Video], pred: list[Video]) -> list[float]:
    """Return the F1 of each video."""
    return [plain_f1(sorted(first), sorted(second)) for first, second in zip(gt, pred, strict=True)]


def plain_f1(gt: Video, pred: Video) -> float:
    """Return SODA-D's F1 of a video from the table of Eq. 5, one cell at a time."""
    above = [0.0] * (len(pred) + 1)
    for start, end in gt:
        row = [0.0]
        for j, (other_start, other_end) in enumerate(pred):
            shared = max(0.0, min(end, other_end) - max(start, other_start))
            union = (end - start) + (other_end - other_start) - shared
            row.append(max(above[j + 1], above[j] + shared / (union + 1e-8), row[j]))
        above = row
    return 2 * above[-1] / (len(gt) + len(pred))


def main() -> None:
    """Print the table."""
    gt, pred = videos(TRUE, 0), videos(PREDICTED, 1)
    gt_arrays, pred_arrays = [np.array(each) for each in gt], [np.array(each) for each in pred]
    for first, second in ((gt, pred), (gt_arrays, pred_arrays)):
        np.testing.assert_allclose(soda_d_videos(first, second).f1, plain(gt, pred), rtol=0, atol=1e-9)
    calls = {
        "plain Python": lambda: plain(gt, pred),
        "soda_d_videos, of lists": lambda: soda_d_videos(gt, pred),
        "soda_d_videos, of arrays": lambda: soda_d_videos(gt_arrays, pred_arrays),
    }
    show(f"SODA-D of {VIDEOS} videos, {TRUE} x {PREDICTED} segments", "plain Python", calls)


if __name__ == "__main__":
    main()
