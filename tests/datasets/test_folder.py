import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.availability import check_video_id
from stepline.datasets.folder import SUFFIXES, video_id, videos
from stepline.datasets.schema import BYTES_PER_S
from stepline.errors import ConfigError


def put(*names: str, folder: str = "clips", size: int = 1) -> Path:
    for name in names:
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
    return Path(folder).absolute()


def refused(folder: str = "clips") -> str:
    with pytest.raises(ConfigError) as error:
        videos("mine", folder)
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix("config: datasets.mine.videos: ")


def test_all_video_files_below_a_folder_are_found_in_the_order_of_their_names() -> None:
    root = put("b.mp4", "a/Tag 1 – Größe.MOV", "a/2/x.y.webm", "notes.txt", "cover.jpg", "a.mp4.part")
    put(".hidden.mp4", ".trash/c.mp4", "a/._b.mp4")
    assert [(video.id, video.file) for video in videos("mine", "clips")] == [
        ("a__2__x.y", f"{root}/a/2/x.y.webm"),
        ("a__Tag_1___Gr__e", f"{root}/a/Tag 1 – Größe.MOV"),
        ("b", f"{root}/b.mp4"),
    ]


def test_every_suffix_counts_in_upper_and_lower_case() -> None:
    put(*(f"{n}{each.upper() if n % 2 else each}" for n, each in enumerate(SUFFIXES)))
    assert len(videos("mine", "clips")) == len(SUFFIXES) == 18


def test_linked_folders_are_followed_and_circles_end() -> None:
    put("a.mp4", folder="elsewhere")
    put("b.mp4")
    Path("clips/linked").symlink_to("../elsewhere")
    Path("elsewhere/back").symlink_to("../clips")
    assert [video.id for video in videos("mine", "clips")] == ["b", "linked__a"]


def test_a_link_to_nothing_is_a_video_and_what_is_no_file_is_none() -> None:
    put("a.mp4", "folder.mp4/b.txt")
    Path("clips/gone.mp4").symlink_to("elsewhere.mp4")
    Path("clips/round.mp4").symlink_to("round.mp4")
    os.mkfifo("clips/pipe.mp4")
    assert [video.id for video in videos("mine", "clips")] == ["a", "gone", "round"]


def test_unusual_spaces_and_line_breaks_are_no_obstacle() -> None:
    put("Screen Recording at 10.15\u202fAM.mov", "a\nb.mp4")
    assert [video.id for video in videos("mine", "clips")] == ["Screen_Recording_at_10.15_AM", "a_b"]


def test_composed_and_decomposed_names_are_one_video() -> None:
    assert video_id("Gr\u00fcn.mp4") == video_id("Gru\u0308n.mp4") == "Gr_n"


@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_an_id_is_fit_to_be_a_file_name(name: str) -> None:
    if not name.startswith("."):
        assert check_video_id(video_id(f"{name}.mp4")) == video_id(f"{name}.mp4")


def test_a_size_stands_for_a_length_that_is_not_known() -> None:
    put("a.mp4", size=3 * BYTES_PER_S)
    (video,) = videos("mine", "clips")
    assert (video.duration_s, video.length_s) == (None, 3.0)
    Path(video.file).unlink()
    assert video.length_s == 0.0


def test_two_files_with_one_id_are_named() -> None:
    root = put("a b.mp4", "a_b.mkv")
    assert refused() == f"{root}/a b.mp4 and {root}/a_b.mkv would both be the video a_b: rename one"


def test_a_folder_that_is_absent_or_empty_is_one_line() -> None:
    assert refused() == f"{Path('clips').absolute()} is not a folder"
    put("notes.txt")
    assert refused().startswith(f"{Path('clips').absolute()} holds no video file (mp4, m4v, mov, ")


def test_a_folder_that_may_not_be_read_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    root, scan = put("a.mp4", "closed/b.mp4"), os.scandir

    def closed(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", closed)
    assert refused() == f"{root}/closed: Permission denied: let this account read it"


def test_a_name_that_is_too_long_or_no_text_is_one_line() -> None:
    put(f"{'x' * 60}/{'y' * 70}.mp4")
    assert "shorten its name to 128 characters, with its folders" in refused()
    put("a.mp4", folder="bytes")
    os.rename(b"bytes/a.mp4", b"bytes/\xff.mp4")
    assert "'\\udcff.mp4' in" in refused("bytes")


def test_a_home_folder_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    put("a.mp4")
    assert [video.id for video in videos("mine", "~/clips")] == ["a"]
    assert refused("~nobody-here/clips") == f"{tmp_path}/~nobody-here/clips is not a folder"
