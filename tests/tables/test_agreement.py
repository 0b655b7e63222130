import math

import pytest

from stepline.datasets.annotation.build import Labelled, covered, merged
from stepline.tables.agreement import Annotated, histogram, rows


def recording(votes: dict[int, dict[str, int | None]], labels: list[int]) -> Annotated:
    clips = {number: (float(number), number + 1.0) for number in range(len(labels))}
    return Annotated(clips, votes, labels, merged(covered(clips.values(), labels)), [(0.0, 1.0)])


def test_clips_without_a_label_count_for_no_accuracy_and_unsure_is_wrong() -> None:
    votes = {0: {"ann": 1, "bo": 1}, 1: {"ann": None, "bo": None}, 2: {"ann": 0, "bo": None}}
    line, whole = rows({"a": recording(votes, [1, -1, 0])})
    assert (line.undecided, line.unsure, line.annotations, line.clips) == (1, 0.5, 6, 3)
    assert line.human_accuracy == (1 + 1 / 2) / 2
    assert (line.segments, line.labelled_s, line.in_animation) == (2, 2.0, 1)
    assert math.isnan(line.alpha)
    assert math.isnan(whole.alpha)


def test_in_the_line_of_all_one_recordings_steps_are_not_anothers() -> None:
    agree = {0: {"ann": 1, "bo": 1}, 1: {"ann": 2, "bo": 2}}
    differ = {0: {"ann": 1, "bo": 2}, 1: {"cy": 2, "bo": 1}}
    a, b, whole = rows({"a": recording(agree, [1, 2]), "b": recording(differ, [1, 2])})
    assert (a.alpha, b.alpha) == pytest.approx((1, 1 - 1 / (2 / 3)))
    assert whole.alpha == (a.alpha + b.alpha) / 2
    assert (whole.annotators, whole.clips, whole.pairwise, whole.unanimous) == (3, 4, 0.5, 0.5)
    # Eq. 4 is of annotators, each over all that he labelled: ann 3 of 3, bo 2 of 4, cy 1 of 1.
    assert whole.human_accuracy == (1 + 0.5 + 1) / 3


def test_nothing_labelled_gives_no_numbers() -> None:
    line, _ = rows({"a": recording({}, [-1, -1])})
    assert (line.clips, line.least, line.segments) == (0, 0, 0)
    assert all(map(math.isnan, (line.unsure, line.pairwise, line.human_accuracy, line.mean_clip_s)))


def test_bins_are_half_open() -> None:
    assert histogram([0.0, 0.99, 1.0, 2.0, 4999.9, 5000.0, 90000.0]) == [2, 1, 1, *[0] * 8, 1, 2]


def test_segments_are_what_the_table_counts() -> None:
    assert recording({}, [1, 1, 0]).segments == [Labelled(0.0, 2.0, 1), Labelled(2.0, 3.0, 0)]
