"""Locks on a file system that has none, at each place that takes one."""

import errno
import fcntl
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepline import cli, devices, llm
from stepline.download.host import unreachable
from stepline.errors import StoreError
from stepline.features.text import encode_texts
from stepline.io import write_text
from stepline.leftovers import remove
from stepline.lock import acquire
from stepline.overview.running import held
from stepline.turns import all_videos, one_video


@pytest.fixture(params=["ENOLCK", "ENOSYS", "EOPNOTSUPP"])
def why(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The reason with which the system refuses every lock."""
    number = getattr(errno, request.param)

    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    for call in ("flock", "lockf"):
        monkeypatch.setattr(fcntl, call, refuse)
    return os.strerror(number)


def decode_all() -> None:
    with all_videos(Path("features/.locks/mine.000.lock")):
        pass


def decode_one() -> None:
    with one_video(Path("features/.locks/mine.000.lock")):
        pass


def lease() -> None:
    devices._lease(["0"], 1)


def delete() -> None:
    write_text("features/.locks/mine.000.lock", "")
    remove([])


def answer() -> None:
    with llm._opened(Path("answers/llm.sqlite")):
        raise sqlite3.OperationalError("database is locked")


@pytest.mark.parametrize(
    ("take", "file"),
    [
        (decode_all, "features/.locks/mine.000.all.lock"),
        (decode_one, "features/.locks/mine.000.all.lock"),
        (delete, "features/.locks/mine.000.lock"),
        (lambda: unreachable("http://example.org"), ".stepline/probes.lock"),
        (lambda: encode_texts([], None, Path("features/texts/a"), what="a"), "features/texts/a.lock"),  # type: ignore[arg-type]
        (lease, "tmp/stepline-gpus/host.0.0.lock"),
        (answer, "answers/llm.sqlite"),
    ],
)
def test_one_line_names_the_file(
    take: Callable[[], None], file: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    with pytest.raises(StoreError) as error:
        take()
    line = str(error.value)
    assert line.startswith(f"{tmp_path / file}: {why}: its file system has no locks")
    assert line.endswith("or have this one mounted with locks (Lustre: flock)")


@pytest.mark.usefixtures("why")
def test_files_and_logs_are_written_without_locks() -> None:
    write_text("a", "a")
    cli._log_to(Path("b.log"))
    assert sorted(path.name for path in Path().iterdir()) == ["a", "b.log"]
    assert not held(Path("b.log"))


def test_a_lock_is_released() -> None:
    for _ in range(2):
        with acquire("a.lock", timeout=0):
            pass
