import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stepline import aside
from stepline.aside import ABANDONED_S, OLD, PREFIX, folder_beside, sweep
from stepline.io import atomic_dir, atomic_path, write_text

WRITER = """
import os, signal, sys
from stepline.io import {context}
with {context}("{name}") as part:
    {write}
    {end}
"""
DIES = "os.kill(os.getpid(), signal.SIGKILL)"
WAITS = "print('half', flush=True); sys.stdin.read()"


def kill_within(context: str, name: str, write: str) -> None:
    """Let a writer die when half is written."""
    code = WRITER.format(context=context, name=name, write=write, end=DIES)
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode < 0


def hidden(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith(PREFIX)]


@pytest.fixture(autouse=True)
def _first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a process that has swept nothing."""
    monkeypatch.setattr(aside, "_swept", set())


WRITERS = [("atomic_path", 'part.write_text("half")'), ("atomic_dir", '(part / "rows").write_text("half")')]


@pytest.mark.parametrize(("context", "write"), WRITERS)
def test_the_next_writer_in_the_folder_removes_what_a_killed_one_left(context: str, write: str) -> None:
    kill_within(context, "lost", write)
    (left,) = hidden(Path())
    with atomic_path("other") as part:
        assert [path.name for path in hidden(Path())] == [part.name]
        assert left.name != part.name
    assert hidden(Path()) == []


@pytest.mark.parametrize(("context", "write"), WRITERS)
def test_what_a_living_writer_writes_stays(context: str, write: str) -> None:
    code = WRITER.format(context=context, name="a", write=write, end=WAITS)
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half\n"
        (living,) = hidden(Path())
        write_text("b", "b")
        assert hidden(Path()) == [living]
        writer.stdin.close()
    assert writer.returncode == 0
    assert Path("a").exists()
    assert hidden(Path()) == []


KILLED_BETWEEN = """
import os, signal, sys
from stepline.io import atomic_dir
renames = []
def kill(event, arguments):
    if event == "os.rename":
        renames.append(arguments)
        if len(renames) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
with atomic_dir("store") as part:
    (part / "rows").write_text("new")
    sys.addaudithook(kill)
"""


def test_an_old_folder_that_was_moved_aside_is_put_back() -> None:
    with atomic_dir("store") as part:
        (part / "rows").write_text("old")
    assert subprocess.run([sys.executable, "-c", KILLED_BETWEEN], check=False).returncode < 0
    assert not Path("store").exists()
    aside._swept.clear()
    sweep(Path())
    assert Path("store/rows").read_text() == "old"
    assert [path.name for path in Path().iterdir()] == ["store"]


def test_an_old_folder_does_not_replace_a_new_one_and_one_that_never_got_its_lock_is_removed() -> None:
    Path(f"{PREFIX}{aside._HOST[0]}-{aside._HOST[1]}-x").mkdir()
    kill_within("atomic_dir", "store", f'(part.parent / "{OLD}" / "store").mkdir()')
    Path("store").mkdir()
    Path("store/rows").write_text("new")
    sweep(Path())
    assert Path("store/rows").read_text() == "new"
    assert hidden(Path()) == []


@pytest.mark.parametrize(("age_s", "kept"), [(0, True), (ABANDONED_S - 60, True), (ABANDONED_S + 60, False)])
def test_what_another_host_writes_stays_until_it_has_not_changed_for_a_day(
    age_s: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_within("atomic_dir", "a", '(part / "rows").write_text("half")')
    (left,) = hidden(Path())
    then = time.time() - age_s
    for path in [left, *left.rglob("*")]:
        os.utime(path, (then, then))
    monkeypatch.setattr(aside, "_HOST", ["000000", "111111"])
    sweep(Path())
    assert hidden(Path()) == ([left] if kept else [])


@pytest.mark.parametrize(("umask", "file", "folder"), [(0o002, 0o664, 0o775), (0o077, 0o600, 0o700)])
def test_the_umask_says_who_may_read_and_write(umask: int, file: int, folder: int) -> None:
    before = os.umask(umask)
    try:
        write_text("a", "a")
        with atomic_dir("store") as part:
            assert stat.S_IMODE(part.parent.stat().st_mode) == folder
            (part / "rows").write_text("rows")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(Path(path).stat().st_mode) for path in ("a", "store/rows", "store")]
    assert modes == [file, file, folder]


def test_an_error_without_a_file_names_what_is_written() -> None:
    with pytest.raises(OSError, match="No space left on device: 'store'"), folder_beside(Path("store")):
        raise OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space left on device: 'a.json'"), atomic_path("a.json") as part:
        raise OSError(28, "No space left on device", str(part))
