from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stepline.datasets.annotation.clips import Clips, clips_of_shots, read_clips, segments_of, write_clips
from stepline.errors import ConfigError

PATH = Path("clips.csv")
HEAD = "video,clip,start_s,end_s"


def read(*lines: str) -> Clips:
    PATH.write_text("\n".join([HEAD, *lines, ""]))
    return read_clips(PATH)


def test_shots_are_the_clips() -> None:
    shots = {"shot": [0, 1], "start_s": [0.0, 1 / 3], "end_s": [1 / 3, 2.5]}
    pq.write_table(pa.table(shots | {"start_frame": [0, 10], "end_frame": [10, 75]}), "b.parquet")
    assert clips_of_shots(Path(), ["a", "b"]) == {"b": {0: (0.0, 1 / 3), 1: (1 / 3, 2.5)}}


def test_what_is_written_is_read_to_the_bit() -> None:
    clips = {"b": {0: (0.0, 1 / 3), 1: (1 / 3, 2.5)}, "a": {4: (0.04, 5000.1)}}
    write_clips(PATH, clips)
    write_clips(PATH, clips)
    assert read_clips(PATH) == clips
    assert list(read_clips(PATH)) == ["b", "a"]
    assert PATH.read_text().splitlines()[:2] == ["video,clip,segment,start_s,end_s", f"b,0,0,0.0,{1 / 3!r}"]


def test_labels_given_for_other_clips_are_not_taken_for_these() -> None:
    write_clips(PATH, {"a": {0: (0.0, 1.0)}})
    with pytest.raises(ConfigError, match=r"^clips.csv lists other clips, .*: move it away first$"):
        write_clips(PATH, {"a": {0: (0.0, 2.0)}})
    assert read_clips(PATH) == {"a": {0: (0.0, 1.0)}}


@pytest.mark.parametrize(
    ("ends_s", "segment_s", "segments"),
    [
        ([10, 20, 30, 40], 20, [0, 0, 1, 1]),
        ([10, 20, 30, 40], 3600, [0, 0, 0, 0]),
        ([10, 20, 30, 40], 25, [0, 0, 1, 1]),  # 1.6 parts are 2
        ([30, 40], 20, [0, 1]),  # the middle counts: 15 of 40, 35 of 40
    ],
)
def test_segments(ends_s: list[float], segment_s: float, segments: list[int]) -> None:
    clips = dict(enumerate(zip([0, *ends_s], ends_s, strict=False)))
    assert segments_of(clips, segment_s) == segments


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("../a,1,1,2", "video id '../a' is not allowed: use at most 128 bytes of letters, digits, '_', '-' and '.'"),
        ("a,one,1,2", "clip 'one' must be a whole number from 0"),
        ("a,-1,1,2", "clip '-1' must be a whole number from 0"),
        ("a,0,1,2", "clip 0 of a is listed twice"),
        ("a,1,x,2", "'x', '2' are not two numbers"),
        ("a,1,0.5,2", "a clip must start at 1 s, the end of the last clip of a, or later, and end"),
        ("a,1,2,2", "a clip must start at 1 s, the end of the last clip of a, or later, and end"),
        ("a,1,2,inf", "a clip must start at 1 s, the end of the last clip of a, or later, and end"),
        ("b,1,nan,2", "a clip must start at 0 s, the end of the last clip of b, or later, and end"),
    ],
)
def test_a_wrong_line_is_named(line: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        read("a,0,0,1", line)
    assert str(error.value) == f"clips.csv, line 3: {problem}"


def test_no_clips_are_one_line() -> None:
    with pytest.raises(ConfigError, match="^clips.csv contains no clips$"):
        read()


def test_clips_after_the_end_of_their_video_are_one_line() -> None:
    PATH.write_text(f"{HEAD}\na,0,0,9\na,1,9,12.9\na,2,12.9,14\na,3,25,100\nb,0,25,100\n")
    with pytest.raises(ConfigError) as error:
        read_clips(PATH, {"a": 12.0})
    assert str(error.value) == (
        "clips.csv: 2 of 5 clips end after the end of their video, the first in line 4: a ends at 12.0 s; "
        "times are in seconds"
    )
    assert read_clips(PATH, {"a": 99.5})["a"][3] == (25, 100)
