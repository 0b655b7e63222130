import os
import socket
from collections import Counter
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.availability import Record, check_video_id, write_availability
from stepline.datasets import folder as own
from stepline.datasets import shards
from stepline.datasets.folder import IMAGES, SUFFIXES, ids, marked_id, named, shown_path, video_id, why_absent
from stepline.datasets.schema import BYTES_PER_S, Video
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
        ("a__Tag_1___Größe", f"{root}/a/Tag 1 – Größe.MOV"),
        ("b", f"{root}/b.mp4"),
    ]


def videos(*arguments: Any, **more: Any) -> tuple[Video, ...]:
    return own.videos(*arguments, **more)[0]


def left_out(*arguments: Any, **more: Any) -> str:
    return own.videos(*arguments, **more)[1]


def test_files_that_are_left_out_are_counted_by_suffix() -> None:
    root = put("a.mp4")
    assert left_out("mine", "clips") == ""
    put("b.GIF", "c/d.gif", "e.srt", "README", "f.a\x1b[31m", ".g.mp4", ".DS_Store", ".hidden/h.mp4")
    of = f"left out of {root}, no videos by their suffix"
    assert left_out("mine", "clips") == f"6 files {of}: gif 2, others 2, hidden 1, srt 1"
    assert left_out("mine", "clips/c/..", suffixes=(".gif",)).startswith("4 files left out")
    put(*(f"x.{letter}" for letter in "bcdefghijklmn"))
    assert left_out("mine", "clips").endswith("and 5 more suffixes")
    for file in Path("clips").rglob("*"):
        if file.is_file() and file.name != "e.srt":
            file.unlink()
    with pytest.raises(ConfigError, match=f"; 1 file {of}: srt 1$"):
        left_out("mine", "clips")


def test_every_suffix_counts_in_upper_and_lower_case() -> None:
    put(*(f"{n}{each.upper() if n % 2 else each}" for n, each in enumerate(SUFFIXES)))
    assert len(videos("mine", "clips")) == len(SUFFIXES) == 18


def test_images_are_listed_where_they_are_asked_for() -> None:
    root = put("b.mp4", "a.JPG", "a.png", "c/d.webp", "notes.txt")
    found = videos("mine", "clips", suffixes=IMAGES)
    assert [(video.id, video.file) for video in found] == [
        ("a", f"{root}/a.JPG"),
        (marked_id("a.png"), f"{root}/a.png"),
        ("c__d", f"{root}/c/d.webp"),
    ]
    assert [video.id for video in videos("mine", "clips")] == ["b"]
    Path("clips/c/d.webp").unlink()
    with pytest.raises(ConfigError, match=r"clips/c contains no image file \(bmp, jpeg, jpg, png, tif, tiff, webp\)$"):
        videos("mine", "clips/c", suffixes=IMAGES)


def test_linked_folders_are_followed_and_circles_end() -> None:
    put("a.mp4", folder="elsewhere")
    put("b.mp4")
    Path("clips/linked").symlink_to("../elsewhere")
    Path("elsewhere/back").symlink_to("../clips")
    assert [video.id for video in videos("mine", "clips")] == ["b", "linked__a"]


def test_outputs_of_a_work_folder_are_neither_listed_nor_counted() -> None:
    put("a.mp4", "datasets/own/b.mp4", "datasets/mine/c.mp4", "notes.txt")
    shown = left_out("mine", "clips")
    put(".stepline/last.json", "datasets/mine/videos/a.mp4", "logs/media/mine.000.log", "results/mine/d.mp4")
    shards.write("clips/datasets/mine/shards.csv", {"a": "000"})
    assert [video.id for video in videos("mine", "clips")] == ["a", "datasets__mine__c", "datasets__own__b"]
    assert left_out("mine", "clips") == shown
    assert [video.id for video in videos("mine", "clips/datasets/mine")] == ["c"]
    put("a.mp4", folder="datasets/mine/videos")
    assert "contains no video file" in refused("datasets")
    assert [video.id for video in videos("other", "datasets/mine/videos")] == ["a"]


def test_a_new_link_gives_no_file_another_id() -> None:
    put("b.mp4", folder="clips/z")
    Path("clips/a").symlink_to("z")
    Path("clips/y").mkdir()
    Path("clips/y/a").symlink_to("../z")
    assert [video.id for video in videos("mine", "clips")] == ["z__b"]


def test_what_cannot_be_read_is_listed_with_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    root = put("a.mp4", "folder.mp4/b.txt", "closed.mp4")
    Path("clips/gone.mp4").symlink_to("elsewhere.mp4")
    Path("clips/round.mp4").symlink_to("round.mp4")
    Path("clips/null.mp4").symlink_to("/dev/null")
    Path("clips/under.mp4").symlink_to("a.mp4/b.mp4")
    os.mkfifo("clips/pipe.mp4")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("clips/socket.mp4")
    opened = os.open

    def closed(path: str, *arguments: int) -> int:
        if str(path).endswith("closed.mp4"):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *arguments)

    monkeypatch.setattr(os, "open", closed)
    assert {video.id: why_absent(video.file) for video in videos("mine", "clips")} == {
        "a": None,
        "closed": ("failed", f"{root}/closed.mp4: Permission denied: let this account read it"),
        "gone": ("missing", f"{root}/gone.mp4: a link to elsewhere.mp4, which does not exist"),
        "null": ("failed", f"{root}/null.mp4: a device, not a file"),
        "pipe": ("failed", f"{root}/pipe.mp4: a pipe, not a file"),
        "round": ("missing", f"{root}/round.mp4: a link to round.mp4, which does not exist"),
        "socket": ("failed", f"{root}/socket.mp4: a socket, not a file"),
        "under": ("missing", f"{root}/under.mp4: a link to a.mp4/b.mp4, which does not exist"),
    }
    assert why_absent(f"{root}/folder.mp4") == ("failed", f"{root}/folder.mp4: a folder, not a file")


def test_unusual_spaces_and_line_breaks_are_no_obstacle() -> None:
    put("Screen Recording at 10.15\u202fAM.mov", "a\nb.mp4")
    assert [video.id for video in videos("mine", "clips")] == ["Screen_Recording_at_10.15_AM", "a_b"]


@pytest.mark.parametrize(
    ("name", "video"),
    [
        ("Urlaub 2024/Tag 1.MOV", "Urlaub_2024__Tag_1"),
        ("料理.mp4", "料理"),
        ("掃除/１.mp4", "掃除__１"),
        ("ต้มยำกุ้ง.mp4", "ต้มยำกุ้ง"),
        ("खाना.mp4", "खाना"),
        ("Gr\u00fcn.mp4", "Gr\u00fcn"),
        ("Gru\u0308n.mp4", "Gr\u00fcn"),
        ("❤\ufe0f!.mp4", "___"),
        ("a\u202eb\u200b.mp4", "a_b_"),
        ("Gr\udcfcn.mp4", "Gr_n"),
    ],
)
def test_an_id_keeps_letters_and_digits_of_all_scripts(name: str, video: str) -> None:
    assert video_id(name) == video


def test_a_long_name_is_cut_between_letters_and_says_what_it_was() -> None:
    beginning, one = "料" * 39, video_id(f"{'料' * 100}1.mp4")
    assert one == f"{beginning}-{sha256(('料' * 100 + '1').encode()).hexdigest()[:8]}"
    assert one != video_id(f"{'料' * 100}2.mp4")
    assert video_id("é" * 64) == "é" * 64


NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=90)
ALIKE = st.lists(st.sampled_from("aAä?!ǆßs"), min_size=1, max_size=3).map("".join)
FILES = st.builds("{}{}".format, ALIKE | NAMES, st.sampled_from([".mp4", ".mov", ".MP4"])).filter(lambda n: n[0] != ".")
FOLDERS = st.sets(FILES | st.builds("{}/{}".format, FILES, FILES), min_size=1, max_size=12).map(sorted)


@given(NAMES)
def test_an_id_is_fit_to_be_a_file_name(name: str) -> None:
    if not name.startswith("."):
        assert check_video_id(video_id(f"{name}.mp4")) == video_id(f"{name}.mp4")
        assert check_video_id(marked_id(f"{name}.mp4")) == marked_id(f"{name}.mp4")


@given(FOLDERS, st.randoms())
def test_ids_differ_and_stay_while_files_come_and_go(names: list[str], random: Random) -> None:
    found: dict[str, str] = {}
    known: dict[str, str] = {}

    def source(video: str) -> str:
        return shown_path(f"/clips/{known.get(video, '')}")

    for _ in range(3):
        some = sorted(random.sample(names, random.randint(1, len(names))))
        before, found = found, ids(some, known, source)
        assert found.keys() == {*some}
        alike = Counter(video.casefold() for video in found.values())
        assert all(alike[video.casefold()] == 1 for name, video in found.items() if known.get(video) != name)
        assert len({*found.values()}) == len(some)
        assert all(check_video_id(video) == video for video in found.values())
        again = {name for name in some if name in before}
        assert {name: found[name] for name in again} == {name: before[name] for name in again}
        assert all(named(name, found.values()) == video for name, video in found.items())
        known |= {video: name for name, video in found.items()}


@given(FOLDERS)
def test_a_file_that_is_alone_with_its_name_has_the_same_id_in_any_folder(names: list[str]) -> None:
    found = ids(names, (), lambda _: "")
    folded = [video_id(name).casefold() for name in names]
    for name, same in zip(names, folded, strict=True):
        if folded.count(same) == 1:
            assert found[name] == video_id(name)


def test_of_files_that_would_have_one_id_all_but_the_first_are_marked() -> None:
    put("a b.mp4", "a_b.mkv", "A_b.mp4", "Gr\u00fcn.mp4", "Gru\u0308n.mp4", "c.mp4")
    listed = videos("mine", "clips")
    assert {Path(video.file).name: video.id for video in listed} == {
        "A_b.mp4": "A_b",
        "Gru\u0308n.mp4": "Gr\u00fcn",
        "Gr\u00fcn.mp4": marked_id("Gr\u00fcn.mp4"),
        "a b.mp4": marked_id("a b.mp4"),
        "a_b.mkv": f"a_b-{sha256(b'a_b.mkv').hexdigest()[:8]}",
        "c.mp4": "c",
    }
    assert marked_id("a b.mp4") == f"a_b-{sha256(b'a b.mp4').hexdigest()[:8]}"


def test_a_file_keeps_its_id_when_another_one_comes_or_goes() -> None:
    def found() -> dict[str, str]:
        listed = videos("mine", "clips", known)
        known.update(video.id for video in listed)
        for video in listed:
            record = Record(video=video.id, status="present", source=shown_path(video.file))
            write_availability(f"datasets/mine/videos/{video.id}.json", [record])
        return {Path(video.file).name: video.id for video in listed}

    known: set[str] = set()
    root = put("b.mp4")
    assert found() == {"b.mp4": "b"}
    put("b.mov", "B.mp4")
    marked = {name: marked_id(name) for name in ("b.mov", "B.mp4")}
    assert found() == {"b.mp4": "b", **marked}
    (root / "b.mp4").unlink()
    assert found() == marked
    put("b.avi")
    assert found() == {"b.avi": "b", **marked}


def test_two_ids_that_both_exist_may_differ_only_in_case() -> None:
    assert ids(["A.mp4", "a.mp4"], {"A", "a"}, lambda video: f"/clips/{video}.mp4") == {"A.mp4": "A", "a.mp4": "a"}


def test_a_record_that_has_the_name_unescaped_keeps_the_id() -> None:
    root = put("\x7f.mp4", ":.mp4")
    record = Record(video="_", status="present", source=f"{root.absolute()}/\x7f.mp4")
    write_availability("datasets/mine/videos/_.json", [record])
    assert [video.id for video in videos("mine", "clips", {"_"})] == [marked_id(":.mp4"), "_"]


def test_a_name_that_is_another_files_mark_is_no_obstacle() -> None:
    longer = marked_id("a.mp4", 9)
    assert ids(["a.mov", "a.mp4", f"{marked_id('a.mp4')}.mp4"], (), lambda _: "") == {
        "a.mov": "a", "a.mp4": longer, f"{marked_id('a.mp4')}.mp4": marked_id("a.mp4")
    }  # fmt: skip


def test_a_video_is_named_by_its_id_or_by_its_file_however_that_is_composed() -> None:
    videos = {"a", marked_id("a.mov"), "Gr\u00fcn", marked_id("Gru\u0308n.mov"), "x__Tag_1"}
    assert named("a", videos) == named("a.mp4", videos) == "a"
    assert named("a.mov", videos) == named(marked_id("a.mov"), videos) == marked_id("a.mov")
    assert named("Gr\u00fcn.mp4", videos) == named("Gru\u0308n", videos) == "Gr\u00fcn"
    assert named("Gr\u00fcn.mov", videos) == marked_id("Gru\u0308n.mov")
    assert named("x/Tag 1.mp4", videos) == "x__Tag_1"
    assert named("b.mp4", videos) is None


def test_a_name_that_is_no_text_is_a_video_too() -> None:
    put("a.mp4")
    os.rename(b"clips/a.mp4", b"clips/Gr\xfcn.mp4")
    (video,) = videos("mine", "clips")
    assert (video.id, why_absent(video.file)) == ("Gr_n", None)
    assert shown_path(video.file) == f"{Path('clips').absolute()}/Gr%FCn.mp4"
    assert shown_path("a\x1b[2J\nmade:\udcff") == r"a\x1b[2J\nmade:%FF"


def test_a_size_stands_for_a_length_that_is_not_known() -> None:
    put("a.mp4", size=3 * BYTES_PER_S)
    (video,) = videos("mine", "clips")
    assert (video.duration_s, video.length_s) == (None, 3.0)
    Path(video.file).unlink()
    assert video.length_s == 0.0


def test_a_folder_that_is_absent_or_empty_is_one_line() -> None:
    clips = Path("clips").absolute()
    assert refused() == f"the folder {clips} does not exist: name the folder with your videos"
    put("notes.txt")
    with pytest.raises(
        ConfigError, match=r"notes.txt is a file: name its folder, or set `kind: list` for a CSV file of URLs$"
    ):
        videos("mine", "clips/notes.txt")
    assert refused().startswith(f"{Path('clips').absolute()} contains no video file (mp4, m4v, mov, ")


def test_a_folder_that_may_not_be_read_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    root, listed, opened = put("a.mp4", "closed/b.mp4"), os.listdir, os.open

    def refuse(path: str) -> None:
        if str(path).endswith("closed") or os.path.abspath(path) == str(closed):
            raise PermissionError(13, "Permission denied", str(path))

    closed: Path | None = None
    monkeypatch.setattr(os, "listdir", lambda path: refuse(path) or listed(path))
    monkeypatch.setattr(os, "open", lambda path, *arguments: refuse(path) or opened(path, *arguments))
    assert {video.id: why_absent(video.file) for video in videos("mine", "clips")} == {
        "a": None,
        "closed": ("failed", f"{root}/closed: Permission denied: let this account read it"),
    }
    closed = root
    assert refused() == f"{root}: Permission denied: let this account read it"


def test_a_home_folder_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    put("a.mp4")
    assert [video.id for video in videos("mine", "~/clips")] == ["a"]
    assert refused("~nobody-here/clips") == (
        f"the folder {tmp_path}/~nobody-here/clips does not exist: name the folder with your videos"
    )
