from pathlib import Path

import pytest

from stepline.datasets.annotation.steps import narration, read_split, read_steps, steps_item
from stepline.datasets.schema import Step
from stepline.errors import ConfigError

STEPS = Path("steps.csv")
SPLIT = Path("split.csv")
HEAD = "video,step,caption,animation_start_s,animation_end_s"
DURATIONS_S = {"a__b": 60.0, "c": 9.0}


def read(*lines: str) -> dict[str, list[Step]]:
    STEPS.write_text("\n".join([HEAD, *lines, ""]))
    return read_steps(STEPS, DURATIONS_S)


def test_steps_are_read_in_the_order_of_their_numbers() -> None:
    found = read("c,1,Open,0,9", "a/b.mp4,2,Shut,4.5,6", "a__b,1,Open,3,5", "a__b,0,A break.,,")
    irrelevant = {"caption": "Irrelevant", "animation_s": None}
    assert found == {
        "a__b": [
            Step(transcript="A break.", **irrelevant),
            Step(caption="Open", transcript="", animation_s=(3.0, 5.0)),
            Step(caption="Shut", transcript="", animation_s=(4.5, 6.0)),
        ],
        "c": [
            Step(transcript="None of the steps.", **irrelevant),
            Step(caption="Open", transcript="", animation_s=(0.0, 9.0)),
        ],
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("x,1,Open,0,1", "'x' is not one of the annotated videos: a__b, c"),
        ("c,one,Open,0,1", "step 'one' must be a whole number from 0"),
        ("c,-1,Open,0,1", "step '-1' must be a whole number from 0"),
        ("c,1,Shut,0,1", "step 1 of c is listed twice"),
        ("c,2,,0,1", "step 2 of c has no caption"),
        ("c,0,A break.,0,1", "step 0 of c is Irrelevant, which has no animation: leave its times empty"),
        ("c,2,Shut,,", "step 2 of c has no animation: give its start and end in seconds"),
        ("c,2,Shut,1,", "step 2 of c has no animation: give its start and end in seconds"),
        (
            "c,2,Shut,4,3",
            "step 2 of c: its animation must end after it starts, within the 9 s of the video, not 4 to 3",
        ),
        (
            "c,2,Shut,-1,3",
            "step 2 of c: its animation must end after it starts, within the 9 s of the video, not -1 to 3",
        ),
        (
            "c,2,Shut,5,9.1",
            "step 2 of c: its animation must end after it starts, within the 9 s of the video, not 5 to 9.1",
        ),
        (
            "c,2,Shut,5,x",
            "step 2 of c: its animation must end after it starts, within the 9 s of the video, not 5 to x",
        ),
    ],
)
def test_a_wrong_step_is_named(line: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        read("c,1,Open,0,1", line)
    assert str(error.value) == f"steps.csv, line 3: {problem}"


def test_steps_are_numbered_from_1() -> None:
    with pytest.raises(ConfigError, match="^steps.csv has no step of a__b$"):
        read("c,1,Open,0,1")
    with pytest.raises(ConfigError, match="^steps.csv: c has a step 3 but no step 2: number steps from 1$"):
        read("a__b,1,Open,0,1", "c,1,Open,0,1", "c,3,Shut,1,2")


SAID = [("We open.", 1.0, 2.0), ("Then", 2.0, 3.5), ("we shut.", 3.5, 4.0)]


def test_a_narration_is_every_sentence_that_overlaps_strictly() -> None:
    assert narration(SAID, (2.0, 3.5)) == "Then"
    assert narration(SAID, (1.9, 3.6)) == "We open. Then we shut."
    assert narration(SAID, (4.0, 5.0)) == ""


def test_steps_have_the_released_form() -> None:
    steps = [
        Step(caption="Irrelevant", transcript="A break.", animation_s=None),
        Step(caption="Open", transcript="", animation_s=(0.0, 3.0)),
    ]
    assert steps_item(steps, SAID) == [
        {"index": 0, "caption": "Irrelevant", "transcript": "A break."},
        {"index": 1, "caption": "Open", "transcript": "We open. Then", "animation_start": 0.0, "animation_end": 3.0},
    ]


def test_the_split_keeps_the_listed_order() -> None:
    SPLIT.write_text("split,video\ntest,c\ntrain,a/b.mp4\ntest,d\n")
    assert read_split(SPLIT, ["a__b", "c", "d", "e"]) == {"train": ["a__b"], "val": [], "test": ["c", "d"]}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("x,test", "'x' is not a video with clips"),
        ("c,val", "video c is listed twice"),
        ("d,dev", "split 'dev' is not one of train, val, test"),
        ("d,", "split '' is not one of train, val, test"),
    ],
)
def test_a_wrong_split_is_named(line: str, problem: str) -> None:
    SPLIT.write_text(f"video,split\nc,test\n{line}\n")
    with pytest.raises(ConfigError) as error:
        read_split(SPLIT, ["c", "d"])
    assert str(error.value) == f"split.csv, line 3: {problem}"


def test_a_split_of_nothing_is_one_line() -> None:
    SPLIT.write_text("video,split\n")
    with pytest.raises(ConfigError, match="^split.csv contains no videos$"):
        read_split(SPLIT, ["c"])
