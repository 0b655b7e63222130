"""What of a prediction is an error."""

import pytest

from stepline.benchmark.timed import Timed, judge

TRUE = (Timed(0, 10, "cut"), Timed(20, 30, "fry"), Timed(40, 50, "mix"))


def verdicts(*said: Timed, **options: object) -> list[tuple[float, str, str]]:
    found = judge(TRUE, said, **{"labelled": True} | options)  # type: ignore[arg-type]
    assert found.truth == TRUE
    return [(each.start_s, each.label, each.verdict) for each in found.predicted]


def test_each_true_segment_is_found_once_and_what_is_not_found_is_a_miss() -> None:
    said = Timed(1, 10, "cut"), Timed(0, 9.5, "cut"), Timed(21, 30, "mix"), Timed(60, 70, "fry")
    assert verdicts(*said) == [
        (0, "cut", "hit"), (1, "cut", "false positive"), (21, "mix", "wrong label"), (40, "mix", "miss"),
        (60, "fry", "false positive"),
    ]  # fmt: skip


def test_what_begins_together_stands_by_its_end() -> None:
    said = Timed(5, 9), Timed(5, 7), Timed(1, 20)
    assert [each.end_s for each in judge((), said, labelled=False).predicted] == [20, 7, 9]
    assert judge(TRUE[::-1], (), labelled=False).truth == TRUE


def test_labels_agree_before_overlaps_are_compared() -> None:
    assert verdicts(Timed(20, 30, "cut"), Timed(22, 30, "fry"))[1:3] == [
        (20, "cut", "false positive"),
        (22, "fry", "hit"),
    ]


def test_without_labels_only_times_count() -> None:
    assert verdicts(Timed(1, 10), Timed(20, 24.9), labelled=False) == [
        (1, "", "hit"), (20, "", "false positive"), (20, "fry", "miss"), (40, "mix", "miss")
    ]  # fmt: skip


@pytest.mark.parametrize(("end_s", "verdict"), [(5, "hit"), (4.9, "false positive")])
def test_half_a_segment_is_enough(end_s: float, verdict: str) -> None:
    assert verdicts(Timed(0, end_s, "cut"))[0] == (0, "cut", verdict) or verdict != "hit"
    assert verdict in [each for _, _, each in verdicts(Timed(0, end_s, "cut"))]


def test_a_moment_finds_the_segment_that_it_lies_in() -> None:
    assert verdicts(Timed(29, 30, "fry"), Timed(30, 31, "fry"), least_iou=0)[1:3] == [
        (29, "fry", "hit"),
        (30, "fry", "false positive"),
    ]
