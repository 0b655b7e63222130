import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.datasets.annotation.votes import Votes, majority, read_votes
from stepline.errors import ConfigError

CLIPS = {"a__b": {0: (0.0, 1.5), 1: (1.5, 3.0), 2: (3.0, 9.0)}, "c": {7: (0.0, 4.0)}}
HEAD = "video,clip,annotator,label"


def read(*files: str) -> Votes:
    paths = [Path(f"labels{number}.csv") for number in range(len(files))]
    for path, content in zip(paths, files, strict=True):
        path.write_text(content + "\n")
    return read_votes(paths, CLIPS, {"a__b": 2, "c": 1})


def test_votes_of_several_files() -> None:
    first = f"{HEAD}\na__b,0,ann,2\na/b.mp4,1,ann,Irrelevant\na__b,2,ann,"
    second = "label,annotator,end_s,start_s,segment,clip,video\nunsure,bo,1.45,0,0,0,a__b\n0,bo,,,,7,c"
    assert read(first, second) == {"a__b": {0: {"ann": 2, "bo": None}, 1: {"ann": 0}}, "c": {7: {"bo": 0}}}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("x,0,ann,1", "'x' is not one of the annotated videos: a__b, c"),
        ("a__b,3,ann,1", "a__b has no clip '3'; its 3 are 0 to 2"),
        ("a__b,first,ann,1", "a__b has no clip 'first'; its 3 are 0 to 2"),
        ("a__b,1,ann,3", "label '3' must be 1 to 2, 0 or irrelevant, or unsure"),
        ("c,7,ann,2", "label '2' must be 1 to 1, 0 or irrelevant, or unsure"),
        ("a__b,1,ann,-1", "label '-1' must be 1 to 2, 0 or irrelevant, or unsure"),
        ("a__b,1,ann,stir", "label 'stir' must be 1 to 2, 0 or irrelevant, or unsure"),
        ("a__b,1,,1", "the annotator is empty"),
        ("a__b,0,ann,1", "ann has already labelled clip 0 of a__b in labels0.csv, line 2"),
        ("a__b,0,ann", "3 values for 4 columns"),
    ],
)
def test_a_wrong_line_is_named(line: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(f"{HEAD}\na__b,0,ann,1\n{line}")
    assert str(error.value) == f"labels0.csv, line 3: {problem}"


@pytest.mark.parametrize("times", ["1.5,2.8", "1.3,3", "1.5,late"])
def test_labels_of_another_list_of_clips_are_refused(times: str) -> None:
    with pytest.raises(ConfigError, match=r"^labels0.csv, line 2: .* of clip 1 of a__b is .*another list of clips$"):
        read(f"{HEAD},start_s,end_s\na__b,1,ann,1,{times}")


def test_an_absent_file_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^--labels: the file .*nowhere.csv does not exist$"):
        read_votes([Path("nowhere.csv")], CLIPS, {"c": 1})


@pytest.mark.parametrize(
    ("votes", "labels"),
    [
        ([[2, 2, 1]], [2]),
        ([[], [1]], [-1, 1]),
        ([[2], [1, 2], [1]], [2, 2, 1]),  # the clip before
        ([[2], [], [1, 2], [1]], [2, -1, 2, 1]),  # the nearest before that has a label
        ([[3], [1, 2], [2]], [3, 2, 2]),  # the clip after, as the one before is neither
        ([[1, 2], [], [2]], [2, -1, 2]),
        ([[1, 2], [1, 2], [2]], [2, 2, 2]),  # a tie says nothing of what comes before it
        ([[3, 1]], [1]),  # the lowest step
        ([[0, 3]], [3]),  # Irrelevant last
        ([[0], [0, 3]], [0, 0]),
        ([[1, 1, 2, 2, 3], [2]], [2, 2]),  # 3 was chosen less often
        ([[2, 3], [3, 4], [3, 5]], [2, 3, 3]),  # what a tie gave counts for the next
        ([], []),
    ],
)
def test_majority_and_ties(votes: list[list[int]], labels: list[int]) -> None:
    assert majority(votes) == labels


many = st.lists(st.lists(st.integers(0, 4), max_size=5), max_size=10)


@given(many, st.randoms(use_true_random=False))
def test_the_order_of_votes_never_matters(votes: list[list[int]], stream: random.Random) -> None:
    assert majority([stream.sample(each, len(each)) for each in votes]) == majority(votes)


@given(many)
def test_a_label_is_one_that_no_other_was_chosen_more_often_than(votes: list[list[int]]) -> None:
    for each, label in zip(votes, majority(votes), strict=True):
        assert label == -1 if not each else each.count(label) == max(Counter(each).values())


@given(many)
def test_more_votes_for_the_label_change_nothing(votes: list[list[int]]) -> None:
    labels = majority(votes)
    again = [[*each, label] if each else [] for each, label in zip(votes, labels, strict=True)]
    assert majority(again) == labels
