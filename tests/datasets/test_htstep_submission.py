import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepline.datasets.htstep_submission import Submission, read_submission, write_submission
from stepline.errors import ConfigError

HEADER = ",video-id,t-start,t-end,label,score\n"
TWO = Submission(["a", "b"], [0.1, -2.0], [1 / 3, 7.0], [5, 0], [0.25, -3e-17])


def refused(content: str) -> str:
    Path("found.csv").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        read_submission("found.csv", ["a", "b"], range(10))
    assert "\n" not in str(error.value)
    return str(error.value)


def test_predictions_are_written_in_the_form_of_the_challenge() -> None:
    write_submission("found.csv", *TWO)
    assert Path("found.csv").read_bytes().decode() == (
        f"{HEADER}0,a,0.1,0.3333333333333333,5,0.25\n1,b,-2.0,7.0,0,-3e-17\n"
    )
    assert read_submission("found.csv", {"a", "b"}, range(10)) == TWO


def test_arrays_are_written_as_lists_are() -> None:
    arrays = (np.array(column, dtype=np.float32) for column in ([0.1], [2.5], [7], [0.7]))
    write_submission("found.csv", ["a"], *arrays)
    expected = Submission(["a"], [float(np.float32(0.1))], [2.5], [7], [float(np.float32(0.7))])
    assert read_submission("found.csv", ["a"], [7]) == expected


def test_without_a_prediction_there_is_a_header() -> None:
    write_submission("found.csv", [], [], [], [], [])
    assert Path("found.csv").read_text() == HEADER
    assert read_submission("found.csv", [], []) == Submission([], [], [], [], [])


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=50, deadline=None)
@given(rows=st.lists(st.tuples(st.sampled_from("ab"), FINITE, FINITE, st.integers(0, 9), FINITE)))
def test_numbers_are_read_as_they_were(rows: list[tuple[str, float, float, int, float]]) -> None:
    kept = [row for row in rows if row[1] < row[2]]
    columns = Submission(*([row[column] for row in kept] for column in range(5)))  # type: ignore[arg-type]
    write_submission("found.csv", *columns)
    assert read_submission("found.csv", "ab", range(10)) == columns


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "found.csv: the first line must be ',video-id,t-start,t-end,label,score'"),
        ("video-id,t-start,t-end,label,score\na,0,1,5,1\n", "found.csv: the first line must be"),
        ("row,video-id,t-start,t-end,label,score\n", "found.csv: the first line must be"),
        (",video-id,t-start,t-end,score,label\n", "found.csv: the first line must be"),
        (f"{HEADER}0,a,0,1,5\n", "found.csv, row 0: there are 5 fields, not 6"),
        (f"{HEADER}0,a,0,1,5,1\n1,c,0,1,5,1\n", "found.csv, row 1: 'c' is not a video of the split"),
        (f"{HEADER}0,a,0,one,5,1\n", "found.csv, row 0: '0', 'one', '1' are not three numbers"),
        (f"{HEADER}0,a,0,nan,5,1\n", "row 0: the segment from 0.0 s to nan s does not end after it starts"),
        (f"{HEADER}0,a,0,inf,5,1\n", "row 0: the segment from 0.0 s to inf s does not end after it starts"),
        (f"{HEADER}0,a,-inf,1,5,1\n", "row 0: the segment from -inf s to 1.0 s does not end after it starts"),
        (f"{HEADER}0,a,1,1,5,1\n", "row 0: the segment from 1.0 s to 1.0 s does not end after it starts"),
        (f"{HEADER}0,a,2,1,5,1\n", "row 0: the segment from 2.0 s to 1.0 s does not end after it starts"),
        (f"{HEADER}0,a,0,1,5,nan\n", "row 0: the score nan is not finite"),
        (f"{HEADER}0,a,0,1,5,inf\n", "row 0: the score inf is not finite"),
        (f"{HEADER}0,a,0,1,5.0,1\n", "row 0: the label '5.0' is not the number of a step"),
        (f"{HEADER}0,a,0,1,-1,1\n", "row 0: the label '-1' is not the number of a step"),
        (f"{HEADER}0,a,0,1,10,1\n", "row 0: the label '10' is not the number of a step"),
        (f"{HEADER}0,a,0,1,٥,1\n", "row 0: the label '٥' is not the number of a step"),
        (f'{HEADER}0,"a,0,1,5,1\n', "found.csv is not a CSV file in UTF-8: "),
    ],
)
def test_what_is_no_submission_is_refused(content: str, reason: str) -> None:
    assert reason in refused(content)


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(ConfigError, match="found.csv cannot be read: No such file or directory"):
        read_submission("found.csv", [], [])
    Path("found.csv").write_bytes(HEADER.encode() + b"0,\xff,0,1,5,1\n")
    with pytest.raises(ConfigError, match="found.csv is not a CSV file in UTF-8: "):
        read_submission("found.csv", [], [])


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("end_s", 0.1, "row 0: the segment from 0.1 s to 0.1 s does not end after it starts"),
        ("start_s", float("nan"), "row 0: the segment from nan s"),
        ("score", float("inf"), "row 0: the score inf is not finite"),
    ],
)
def test_what_would_be_refused_is_not_written(column: str, value: float, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        write_submission("found.csv", *TWO._replace(**{column: [value, *getattr(TWO, column)[1:]]}))
    with pytest.raises(ValueError, match="shorter"):
        write_submission("found.csv", *TWO._replace(score=[1.0]))
    assert not Path("found.csv").exists()


def test_the_released_example_is_read(real_data: Path) -> None:
    folder = real_data / "htstep"
    videos = json.loads((folder / "video_splits.json").read_text())["val_seen"]
    found = read_submission(folder / "example_predictions_val_seen.csv", videos, range(5785))
    assert {*found.video} == {*videos}
    assert [found.video.count(video) for video in videos] == [5] * 600
    first = [column[0] for column in found]
    assert first == ["-25-1nbOki0", 333.57538, 381.52155, 513, 0.31910652]
    with pytest.raises(ConfigError, match="is not a video of the split"):
        read_submission(folder / "example_predictions_val_seen.csv", videos[1:], range(5785))
