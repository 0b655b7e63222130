import hashlib
from pathlib import Path

import pytest

from stepline.datasets.folder import marked_id
from stepline.datasets.schema import Split, Video
from stepline.datasets.segments import LabelledSpan, has_labels, read_segments, with_splits
from stepline.errors import ConfigError

VIDEOS = {"a__b_c", "d", "Gr\u00fcn", marked_id("d.mov")}


def read(content: str) -> dict[str, list[LabelledSpan]]:
    Path("segments.csv").write_text(content, encoding="utf-8")
    return read_segments("mine", "segments.csv", VIDEOS)


def test_segments_are_read_in_the_order_of_time() -> None:
    found = read("video,start_s,end_s,label\nd,5,6.5,stir\na/b c.MP4,0,1,\nd,0,5,pour\n")
    assert found == {
        "d": [LabelledSpan(0.0, 5.0, "pour"), LabelledSpan(5.0, 6.5, "stir")],
        "a__b_c": [LabelledSpan(0.0, 1.0, "")],
    }
    assert read("end_s,start_s,video\n1,0,d\n") == {"d": [LabelledSpan(0.0, 1.0, "")]}


def test_of_two_files_that_would_have_one_id_the_path_says_which() -> None:
    found = read("video,start_s,end_s\nd.mp4,0,1\nd.mov,1,2\nGru\u0308n.mp4,2,3\n")
    assert {video: spans[0].start_s for video, spans in found.items()} == {
        "d": 0.0, marked_id("d.mov"): 1.0, "Gr\u00fcn": 2.0
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("x,0,1", "'x' is not a video of mine"),
        ("d,zero,1", "'zero', '1' are not two numbers"),
        ("d,1,1", "a segment must end after it starts, and start at 0 s or later"),
        ("d,-1,1", "a segment must end after it starts, and start at 0 s or later"),
        ("d,0,inf", "a segment must end after it starts, and start at 0 s or later"),
        ("d,nan,1", "a segment must end after it starts, and start at 0 s or later"),
        ("d,0", "2 values for 3 columns"),
    ],
)
def test_a_wrong_line_is_named(line: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(f"video,start_s,end_s\nd,0,1\n{line}\n")
    assert str(error.value) == f"segments.csv, line 3: {problem}"


def test_an_absent_file_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^config: datasets.mine.segments: the file .*segments.csv does not exist$"):
        read_segments("mine", "segments.csv", VIDEOS)


def test_the_home_of_nobody_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"segments: the file .*/~nobody-here/s.csv does not exist$"):
        read_segments("mine", "~nobody-here/s.csv", VIDEOS)


def test_times_after_the_end_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("segments.csv").write_text(
        "video,start_s,end_s,label\nd,0,5,in\na/b c.mp4,70,80,its end is unknown\nd,11.5,13,rounded\nd,25,100,out\n"
        "d,4,300,cut\nd,12,12.5,at the end\n"
    )
    found = read_segments("mine", "segments.csv", VIDEOS, ends_s={"d": 12.0, "a__b_c": 0.0})
    assert found == {
        "d": [LabelledSpan(0, 5, "in"), LabelledSpan(4, 12, "cut"), LabelledSpan(11.5, 12, "rounded")],
        "a__b_c": [LabelledSpan(70, 80, "its end is unknown")],
    }
    assert capsys.readouterr().out == (
        "segments.csv: 3 of 6 segments lie after the end of their video (2 left out, 1 cut to its end), the first in "
        "line 5: d ends at 12.0 s; times are in seconds\n"
    )


def test_what_is_rounded_is_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("segments.csv").write_text("video,start_s,end_s\nd,0,13\n")
    assert read_segments("mine", "segments.csv", VIDEOS, ends_s={"d": 12.04}) == {"d": [LabelledSpan(0, 12.04, "")]}
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("d,0,1,st\x1bir,test", "the label 'st\\x1bir' contains a control character: remove it"),
        ("d,0,1,\u202ereversed,test", "the label '\\u202ereversed' contains a control character: remove it"),
        ("d,0,1,stir,dev", "split 'dev' is not one of train, val, test, or empty"),
        ("d,0,1,stir,val", "d is in split test and in split val: give it one"),
    ],
)
def test_a_label_is_one_line_and_a_video_is_in_one_split(line: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(f"video,start_s,end_s,label,split\nd,0,1,pour,test\n{line}\n")
    assert str(error.value) == f"segments.csv, line 3: {problem}"


def test_a_labelled_segment_that_is_there_twice_is_one_line_and_empty_lines_are_none() -> None:
    content = "video,start_s,end_s,label\nx,0,1,pour\nx,0,1,stir\n,,,\nx,1,2,\nx,1,2,\n"
    Path("segments.csv").write_text(content)
    assert len(read_segments("mine", "segments.csv", {"x"})["x"]) == 4
    Path("segments.csv").write_text(content + "x,0,1.0,pour\n")
    with pytest.raises(ConfigError, match=r"^segments.csv, line 7: the same segment is already in line 2: remove one$"):
        read_segments("mine", "segments.csv", {"x"})


def test_a_label_in_any_script_is_read() -> None:
    (span,) = read("video,start_s,end_s,label\nd,0,1,\u0645\u06cc\u200c\u062e\u0648\u0631\u062f\n")["d"]
    assert span.label == "\u0645\u06cc\u200c\u062e\u0648\u0631\u062f"


class TestSplits:
    def of(self, content: str, *splits: Split | None, names: str = "abcdefghijk") -> dict[str, Split | None]:
        """Return the splits of videos. splits: their own."""
        Path("segments.csv").write_text(content)
        own = [*splits, *[None] * len(names)]
        listed = [Video(id=name, split=split) for name, split in zip(names, own, strict=False)]
        return {video.id: video.split for video in with_splits("mine", "segments.csv", listed)}

    def labels(self, names: str) -> str:
        return "video,start_s,end_s,label\n" + "".join(f"{name},0,1,pour\n" for name in names)

    def test_by_video_the_order_is_that_of_the_sha256_of_ids(self) -> None:
        order = sorted("abcdefghijk", key=lambda name: hashlib.sha256(name.encode()).hexdigest())
        found = self.of(self.labels("abcdefghijk"))
        assert [found[name] for name in order] == ["test", "test", "val", "val", *["train"] * 7]
        assert self.of(self.labels("kjihgfedcba")) == found

    @pytest.mark.parametrize(
        ("names", "splits"), [("a", ["test"]), ("ab", ["test", "test"]), ("abc", ["test", "train", "val"])]
    )
    def test_each_split_has_a_video_if_there_are_three(self, names: str, splits: list[str]) -> None:
        found = self.of(self.labels(names))
        assert sorted(filter(None, found.values())) == splits
        assert {name for name, split in found.items() if split} == {*names}

    def test_the_column_of_the_file_comes_first_then_that_of_the_list(self) -> None:
        content = "video,start_s,end_s,label,split\na,0,1,pour,\na,1,2,stir,val\nb,0,1,pour,\nc,0,1,,train\n"
        assert self.of(content, "train", "test", "val", names="abcd") == {"a": "val", "b": "test", "c": None, "d": None}

    def test_without_labels_nothing_is_divided(self) -> None:
        assert self.of("video,start_s,end_s\na,0,1\n", "val", names="ab") == {"a": "val", "b": None}
        content = "video,start_s,end_s,split\na,0,1,test\n"
        assert self.of(content, "val", "val", names="abc") == {"a": "test", "b": "val", "c": None}

    def test_a_split_for_some_is_one_line(self) -> None:
        with pytest.raises(ConfigError, match="^segments.csv: b has labels and no split, as other videos have: g"):
            self.of(self.labels("abc"), "test")


@pytest.mark.parametrize(
    ("content", "there"),
    [
        ("video,start_s,end_s\nx,0,1\n", False),
        ("label,video,start_s,end_s\n ,x,0,1\n", False),
        ("video,start_s,end_s,label\nx,0,1,\nx,0,1,a\n", True),
    ],
)
def test_a_file_has_labels_if_a_line_has_one(content: str, there: bool) -> None:
    Path("segments.csv").write_text(content)
    assert has_labels("mine", "segments.csv") is there
