"""What docs/spacewalk.md says of the released files and their samples."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.datasets.schema import SPLITS, Recording, Segment
from tests.benchmarks.spacewalk.conftest import real_inputs

RELEASES = ("v0", "v1", "v2")


def steps(release: str) -> SpacewalkInputs:
    return real_inputs("2a-random", release)


def segments_of(inputs: SpacewalkInputs) -> list[Segment]:
    return [segment for recording in inputs.annotation.recordings.values() for segment in recording.segments]


@pytest.mark.parametrize(("release", "labelled"), [("v0", 3753), ("v1", 3753), ("v2", 3744)])
def test_hours_and_segments(in_spacewalk: Path, release: str, labelled: int) -> None:
    inputs = steps(release)
    recordings, segments = inputs.annotation.recordings.values(), segments_of(inputs)
    assert sum(segment.label >= 0 for segment in segments) == labelled
    seconds = [sum(s.end_s - s.start_s for s in segments if s.label >= least) for least in (-1, 0, 1)]
    assert [round(each / 3600, 1) for each in seconds] == [156.0, 96.4, 70.0]
    assert [round(each / 60 / 455, 1) for each in seconds[1:]] == [12.7, 9.2]
    assert len(recordings) == 18
    captions = [len({step.caption for step in each.steps[1:]}) < each.n_steps for each in recordings]
    assert sum(captions) == 6
    assert max(map(gaps, recordings)) == 2


def gaps(recording: Recording) -> int:
    labels = [segment.label for segment in recording.segments]
    inside = "".join("-" if label < 0 else "+" for label in labels).strip("-")
    return inside.count("-")


@pytest.mark.parametrize(("release", "per_s"), [("v0", 30), ("v1", 29.97), ("v2", 29.97)])
def test_frames_are_times_by_one_rate(in_spacewalk: Path, release: str, per_s: float) -> None:
    assert max(abs(each.start_frame - each.start_s * per_s) for each in segments_of(steps(release))) < 1 + 1e-5


def test_labels_that_change_from_release_to_release(in_spacewalk: Path) -> None:
    labels = {
        (release, split): [item.label for items in steps(release).items(split).values() for item in items]
        for release in RELEASES
        for split in SPLITS
    }
    changed = {
        split: [int(np.not_equal(labels[a, split], labels[b, split]).sum()) for a, b in pairwise(RELEASES)]
        for split in SPLITS
    }
    assert changed == {"train": [73, 1013], "val": [0, 0], "test": [13, 11]}
    assert [len(labels["v0", split]) for split in SPLITS] == [20_000, 4_000, 12_000]


@pytest.mark.parametrize("release", RELEASES)
def test_one_frame_of_all_is_sampled_twice(in_spacewalk: Path, release: str) -> None:
    inputs = steps(release)
    counts = Counter((v, item) for split in SPLITS for v, all_ in inputs.items(split).items() for item in frames(all_))
    assert [(video, n) for (video, _), n in counts.items() if n > 1] == [("12022021", 2)]


def frames(items: Sequence[Item]) -> list[int]:
    return [item.frame for item in items]


@pytest.mark.parametrize(
    ("release", "shared", "irrelevant", "quoted"),
    [("v0", [39, 50, 58, 74, 86, 92], 3.8, True), ("v1", [0, 0, 0, 40, 73, 85], 8.4, False)],
)
def test_windows_of_query_and_candidates_share_footage(
    in_spacewalk: Path, release: str, shared: list[int], irrelevant: float, quoted: bool
) -> None:
    """quoted: whether the query of Appendix E.5 is among the samples."""
    inputs = real_inputs("2b-random", release)
    items = inputs.items("test")
    assert {len(found) for found in items.values()} == {2000}
    distances_s = np.array([abs(each.t_s - each.candidates_s[0]) for found in items.values() for each in found])
    windows_s = (10, 20, 30, 60, 120, 180)
    assert [round(100 * float((distances_s < length_s).mean())) for length_s in windows_s] == shared
    labels = []
    for video, found in items.items():
        segments = inputs.annotation.recordings[video].segments
        starts = [segment.start_frame for segment in segments]
        labels += [segments[i].label for i in np.searchsorted(starts, frames(found), side="right") - 1]
    assert round(100 * labels.count(0) / len(labels), 1) == irrelevant
    assert (654395 in frames(items["09122021"])) is quoted


def test_words_of_windows(in_spacewalk: Path) -> None:
    inputs = steps("v2")
    for length_s, words in ((60, 89), (300, 413)):
        texts = (next(inputs.text(v).windows(items, length_s)) for v, items in inputs.items("test").items())
        assert round(np.mean([len(text.split()) for each in texts for text in each])) == words
