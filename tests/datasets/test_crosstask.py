from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from stepline.datasets import crosstask
from stepline.datasets.crosstask import Task, load
from stepline.datasets.oepp import Step
from stepline.errors import ReleaseError

ROOT = "crosstask_release/"
FILES = {
    f"{ROOT}tasks_primary.txt": (
        "53193\nMake a Latte\nhttps://example.org/latte\n3\nadd coffee,press coffee,pour water\n\n"
        "77721\nMake Irish Coffee\nhttps://example.org/irish\n2\npour alcohol,stir mixture\n\n"
    ),
    f"{ROOT}tasks_related.txt": "9\nA Related Task\nhttps://example.org\n1\nwait\n\n",
    f"{ROOT}videos.csv": "53193,a-1,https://example.org/a\n77721,a-1,u\n9,c,u\n53193,none,u\n53193,val_1,u\n",
    f"{ROOT}videos_val.csv": "53193,val_1,https://example.org/v\n",
    f"{ROOT}annotations/53193_a-1.csv": "3,10.25,12.5\n1,4,5.75\n",
    f"{ROOT}annotations/77721_a-1.csv": "2,1,2\n",
    f"{ROOT}annotations/53193_val_1.csv": "1,0,1\n",
    f"{ROOT}annotations/9_c.csv": "nothing to read\n",
}


def archive(files: dict[str, str | bytes]) -> Path:
    path = Path("crosstask_release.zip")
    with ZipFile(path, "w", ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return path


def release(**changed: str) -> dict[str, bytes]:
    """Return the files of CrossTask's release; changed: their contents by their paths without the suffix."""
    names = {name.removeprefix(ROOT).partition(".")[0]: name for name in FILES}
    made = archive({**FILES, **{names[name]: content for name, content in changed.items()}})
    return {made.name: made.read_bytes()}


@pytest.mark.parametrize("root", [ROOT, "", "a/b/"])
def test_the_steps_of_primary_tasks_are_read_in_the_order_of_their_files(root: str) -> None:
    found = load(archive({name.replace(ROOT, root): content for name, content in FILES.items()}))
    assert list(found.tasks.values()) == [
        Task(id="53193", title="Make a Latte", actions=("add coffee", "press coffee", "pour water")),
        Task(id="77721", title="Make Irish Coffee", actions=("pour alcohol", "stir mixture")),
    ]
    assert found.listed == (("53193", "a-1"), ("77721", "a-1"), ("53193", "none"), ("53193", "val_1"))
    assert found.validation == (("53193", "val_1"),)
    assert list(found.videos) == [("53193", "a-1"), ("77721", "a-1"), ("53193", "val_1")]
    assert found.videos["53193", "a-1"] == (
        Step(action="pour water", start_s=10.25, end_s=12.5),
        Step(action="add coffee", start_s=4.0, end_s=5.75),
    )


def test_a_segment_that_ends_before_it_starts_is_left_out() -> None:
    found = load(archive(FILES | {f"{ROOT}annotations/53193_a-1.csv": "1,3,2\n1,2,2\n2,3.5,3.25\n"}))
    assert found.videos["53193", "a-1"] == (Step(action="add coffee", start_s=2.0, end_s=2.0),)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tasks_primary.txt", None, "it contains 0 files tasks_primary.txt"),
        ("tasks_primary.txt", "1\nTitle\nu\n2\none\n\n", "tasks_primary.txt: the lines from 1 are not a task"),
        ("tasks_primary.txt", "1\nTitle\nu\n1\none\n2\n", "tasks_primary.txt: the lines from 1 are not a task"),
        ("tasks_primary.txt", "1\nTitle\nu\n1\n", "tasks_primary.txt: the lines from 1 are not a task"),
        ("tasks_primary.txt", b"\xff\n", "tasks_primary.txt is not UTF-8"),
        ("videos.csv", None, "no item named 'crosstask_release/videos.csv'"),
        ("videos.csv", "53193,a-1\n", "videos.csv: '53193,a-1' does not have 3 fields"),
        ("annotations/53193_a-1.csv", "4,1,2\n", "'Make a Latte' has no step '4'"),
        ("annotations/53193_a-1.csv", "0,1,2\n", "'Make a Latte' has no step '0'"),
        ("annotations/53193_a-1.csv", "-1,1,2\n", "'Make a Latte' has no step '-1'"),
        ("annotations/53193_a-1.csv", "1,1\n", "53193_a-1.csv: '1,1' does not have 3 fields"),
        ("annotations/53193_a-1.csv", "1,-1,2\n", "53193_a-1.csv: the segment -1.0, 2.0 of 'add coffee' is not valid"),
        ("annotations/53193_a-1.csv", "1,x,2\n", "53193_a-1.csv: could not convert string to float: 'x'"),
        ("annotations/53193_a-1.csv", "1,nan,2\n", "the segment nan, 2.0"),
    ],
)
def test_damage_is_one_line(name: str, content: str | bytes | None, message: str) -> None:
    files: dict[str, str | bytes] = {**FILES}
    files.pop(ROOT + name)
    with pytest.raises(ReleaseError, match=message) as raised:
        load(archive(files | ({} if content is None else {ROOT + name: content})))
    assert str(raised.value).startswith("crosstask_release.zip is not CrossTask's release: ")
    assert "\n" not in str(raised.value)


def test_an_id_that_is_a_path_is_refused_and_nothing_is_written() -> None:
    outside = {"../evil.csv": "1,2,3\n", "/evil.csv": "1,2,3\n"}
    path = archive(FILES | outside)
    assert len(load(path).videos) == 3
    assert [each.name for each in Path().iterdir()] == [path.name]
    with pytest.raises(ReleaseError, match=r"video id '\.\./a' is not allowed"):
        load(archive(FILES | {f"{ROOT}videos.csv": "53193,../a,u\n"}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_that_stands_twice_is_refused() -> None:
    path = archive({**FILES})
    with ZipFile(path, "a") as more:
        more.writestr(f"{ROOT}videos.csv", "")
    with pytest.raises(ReleaseError, match="it contains the same file twice"):
        load(path)
    with pytest.raises(ReleaseError, match="it contains 2 files tasks_primary.txt"):
        load(archive({**FILES, "copy/tasks_primary.txt": ""}))


def test_an_archive_that_is_cut_or_changed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive({**FILES})
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[len(f"{ROOT}tasks_primary.txt") + 40] ^= 255
    for content in (b"", b"text", whole[:-30], bytes(changed)):
        path.write_bytes(content)
        with pytest.raises(ReleaseError, match=r"^crosstask_release.zip is not CrossTask's release: [^\n]+$"):
            load(path)
    path.write_bytes(whole)
    monkeypatch.setattr(crosstask, "MOST_BYTES", 100)
    with pytest.raises(ReleaseError, match="tasks_primary.txt has more than 100 bytes"):
        load(path)
