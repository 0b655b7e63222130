import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from stepline import remembered as module
from stepline.remembered import FOLDER, remembered

MEMORY = FOLDER / "some.json"


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were written just now count as settled."""
    monkeypatch.setattr(module, "SETTLED_S", -1.0)
    monkeypatch.setenv("STEPLINE_RUN", "1")


def read(*files: str) -> tuple[list[str], int]:
    """Return what the files hold, and how many of them were opened for that."""
    opened = []

    def contents() -> list[str]:
        there = [Path(file) for file in files if Path(file).exists()]
        opened.extend(there)
        return [path.read_text() for path in there]

    return remembered("some", files, contents), len(opened)


def test_what_did_not_change_is_read_once() -> None:
    Path("a").write_text("1")
    assert read("a", "b") == (["1"], 1)
    assert read("a", "b") == (["1"], 0)


def test_only_runs_of_the_workflow_write_it_and_one_that_cannot_reads_on(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a").write_text("1")
    monkeypatch.delenv("STEPLINE_RUN")
    assert (read("a"), FOLDER.exists()) == ((["1"], 1), False)
    monkeypatch.setenv("STEPLINE_RUN", "1")
    FOLDER.parent.write_text("in the way")
    assert read("a") == read("a") == (["1"], 1)


def in_place() -> None:
    with open("a", "r+") as file:
        file.write("2")


def with_its_old_time() -> None:
    before = os.stat("a").st_mtime_ns
    in_place()
    os.utime("a", ns=(before, before))


def renamed() -> None:
    Path("other").write_text("2")
    os.replace("other", "a")


@pytest.mark.parametrize("change", [in_place, with_its_old_time, renamed])
def test_a_file_of_the_same_length_is_read_again_however_it_changed(change: Callable[[], None]) -> None:
    Path("a").write_text("1")
    before = os.stat("a").st_ctime_ns
    read("a")
    while os.stat("a").st_ctime_ns == before:  # until the clock of the file system ticks
        change()
    assert read("a") == (["2"], 1)


def test_files_that_come_and_go_are_noticed() -> None:
    Path("a").write_text("1")
    read("a", "b")
    Path("b").write_text("2")
    assert read("a", "b") == (["1", "2"], 2)
    Path("a").unlink()
    assert read("a", "b") == (["2"], 1)
    Path("b").unlink()
    assert read("a", "b") == ([], 0)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"seen": "", "found": ["3"]}', "\xff"])
def test_a_damaged_memory_is_replaced(content: str) -> None:
    Path("a").write_text("1")
    read("a")
    MEMORY.write_text(content, encoding="latin-1")
    assert read("a") == (["1"], 1)
    assert read("a") == (["1"], 0)
    assert json.loads(MEMORY.read_bytes())["found"] == ["1"]


def test_what_changed_just_now_is_not_kept_and_what_cannot_be_read_is_an_error_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SETTLED_S", 3600.0)
    Path("a").write_text("1")
    assert read("a") == read("a") == (["1"], 1)
    assert not MEMORY.exists()
    monkeypatch.setattr(module, "SETTLED_S", -1.0)
    for _ in range(2):
        with pytest.raises(ValueError, match="1"):
            remembered("some", ["a"], lambda: int("x1"))
