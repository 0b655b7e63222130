"""Retrieval samples in closed form, compared with trying every frame as the query."""

import itertools
import random

from measure import show, sized

from stepline.benchmarks.spacewalk.samples import _Geometry, retrieval
from stepline.datasets.schema import Recording, Release, Segment, Step

MIN_DISTANCE, BOUNDARY = 899, 449
SAMPLES, SEGMENTS = sized((2000, 200), small=(20, 10))


def made_up(n_segments: int) -> Release:
    """Return a recording with as many segments as a long recording, from half a second to 15 minutes long."""
    rng, segments, at = random.Random(0), [], 0
    for number in range(n_segments):
        end = at + int(10 ** rng.uniform(1.2, 4.4))
        label = number % 20
        segments.append(Segment(start_s=at / 30, end_s=end / 30, start_frame=at, end_frame=end, label=label))
        at = end
    steps = (Step(caption="", transcript="", animation_s=None),) * 20
    recording = Recording(video="v", split="train", duration_s=at / 30, segments=tuple(segments), steps=steps)
    return Release(
        study="demo", name="demo", fps=30, recordings={"v": recording}, splits={"train": ("v",), "val": (), "test": ()}
    )


def try_all(own: int, other: int) -> list[int]:
    """Return the allowed queries of a pair of segments, frame by frame."""
    return [
        x
        for x in range(own)
        if x + BOUNDARY < own
        and max(MIN_DISTANCE, own + BOUNDARY - x) <= min(x - BOUNDARY, own + other - 1 - x - BOUNDARY)
    ]


def main() -> None:
    """Print the table."""
    release = made_up(SEGMENTS)
    lengths = [s.end_frame - s.start_frame for s in release.recordings["v"].segments]
    pairs = [pair for a, b in itertools.pairwise(lengths) for pair in ((a, b), (b, a))]
    for own, other in pairs:
        assert list(_Geometry(own, other, MIN_DISTANCE, BOUNDARY).queries()) == try_all(own, other)
    show(
        f"{SAMPLES:,} retrieval samples of one recording with {SEGMENTS} segments",
        "every frame tried, nothing drawn",
        {
            "every frame tried, nothing drawn": lambda: [try_all(*pair) for pair in pairs],
            "stepline, samples drawn": lambda: retrieval(
                release, n=SAMPLES, min_distance=MIN_DISTANCE, boundary=BOUNDARY
            ),
        },
    )


if __name__ == "__main__":
    main()
