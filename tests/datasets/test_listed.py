from pathlib import Path

import pytest

from stepline.datasets.listed import videos
from stepline.datasets.schema import LENGTH_S, Video
from stepline.errors import ConfigError

SHA = "0" * 64


def write(content: str) -> None:
    Path("list.csv").write_text(content, encoding="utf-8")


def refused() -> str:
    with pytest.raises(ConfigError) as error:
        videos("mine", "list.csv")
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_list_is_read() -> None:
    write(f"\ufeffvideo, url ,sha256,duration_s,split\na,https://x.org/a.mp4,{SHA},12.5,val\n\nb, http://x.org/b ,,,\n")
    assert videos("mine", "list.csv") == (
        Video(
            id="a",
            url="https://x.org/a.mp4",
            sha256=SHA,
            duration_s=12.5,
            split="val",
            path="mine/videos/a.mp4",
        ),
        Video(id="b", url="http://x.org/b", path="mine/videos/b.mp4"),
    )
    assert [video.length_s for video in videos("mine", "list.csv")] == [12.5, LENGTH_S]


def test_an_id_is_composed() -> None:
    write("video,url\nGru\u0308n,http://x\n料理,http://y\n")
    assert [video.id for video in videos("mine", "list.csv")] == ["Gr\u00fcn", "料理"]
    write("video,url\nGru\u0308n,http://x\nGr\u00fcn,http://y\n")
    assert refused() == "list.csv, line 3: video Gr\u00fcn is already in line 2"


def test_a_checksum_may_be_in_upper_case() -> None:
    write(f"video,url,sha256\na,http://x,{'AB' * 32}\n")
    assert videos("mine", "list.csv")[0].sha256 == "ab" * 32


WRONG = {
    "": "list.csv, line 1: the columns must be video, url and, optionally, sha256, duration_s, split, with commas",
    "video;url\na;http://x\n": "line 1: the columns must be",
    "video,url,fps\n": "line 1: the columns must be",
    "video,video,url\n": "line 1: the columns must be",
    "video,url\n": "config: datasets.mine.videos: list.csv contains no videos",
    "video,url\na\n": "list.csv, line 2: 1 values for 2 columns",
    "video,url\na b,http://x\n": "list.csv, line 2: video id 'a b' is not allowed",
    "video,url\na,x.mp4\n": "list.csv, line 2: url 'x.mp4' is not an address that starts with http:// or https://",
    "video,url\na,http://x\na,http://y\n": "list.csv, line 3: video a is already in line 2",
    "video,url,sha256\na,http://x,ABC\n": "list.csv, line 2: sha256 'ABC' is not 64 hexadecimal digits",
    "video,url,duration_s\na,http://x,0\n": "list.csv, line 2: duration_s '0' is not a number of seconds",
    "video,url,duration_s\na,http://x,nan\n": "list.csv, line 2: duration_s 'nan' is not a number of seconds",
    f"video,url,duration_s\na,http://x,{'9' * 309}\n": "9' is not a number of seconds",
    "video,url,duration_s\na,http://x,-1\n": "list.csv, line 2: duration_s '-1' is not a number of seconds",
    "video,url,split\na,http://x,dev\n": "list.csv, line 2: split 'dev' is not one of train, val, test, or empty",
    'video,url\na,"http://x\n': "list.csv, line 2: ",
}


@pytest.mark.parametrize("content", WRONG)
def test_a_wrong_line_is_named(content: str) -> None:
    write(content)
    assert WRONG[content] in refused()


def test_a_list_that_cannot_be_read_is_one_line() -> None:
    assert refused() == f"config: datasets.mine.videos: the file {Path('list.csv').absolute()} does not exist"
    with pytest.raises(ConfigError, match="is a folder: name a CSV file$"):
        videos("mine", ".")
    Path("list.csv").write_bytes(b"\xff\xfe")
    assert refused().endswith("list.csv: not UTF-8")
