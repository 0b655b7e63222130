import errno
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import yaml
from pyarrow import parquet
from safetensors.numpy import load_file, save_file

from stepline.errors import StoreError
from stepline.features import store
from stepline.features.store import Recorded
from stepline.io import (
    atomic_dir,
    atomic_path,
    canonical_json,
    read_json,
    read_table,
    read_yaml,
    sha256_file,
    write_arrays,
    write_bytes,
    write_json,
    write_table,
    write_tensors,
    write_text,
)
from tests.conftest import unavailable

WRITER = """
import sys, time
from stepline.io import {context}
with {context}("{name}") as part:
    {write}
    print("half", flush=True)
    time.sleep(60)
"""


def kill_within(context: str, name: str, write: str) -> None:
    """Start a writer and kill it when half is written."""
    code = WRITER.format(context=context, name=name, write=write)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half\n"
        writer.send_signal(signal.SIGKILL)


def test_a_file_appears_whole_with_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "scores.parquet"
    with atomic_path(path) as part:
        assert part.suffix == ".parquet"
        assert part.parent == path.parent
        part.write_text("half")
        assert not path.exists()
        part.write_text("whole")
    assert path.read_text() == "whole"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_an_error_or_a_kill_leaves_the_old_file_and_no_new_one(tmp_path: Path) -> None:
    write_text("a", "old")
    for name in ("a", "new"):
        with pytest.raises(RuntimeError), atomic_path(name) as part:  # noqa: PT012
            part.write_text("half")
            raise RuntimeError
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old"}
    kill_within("atomic_path", "a", 'part.write_text("new")')
    assert Path("a").read_text() == "old"
    write_text("a", "new")
    assert Path("a").read_text() == "new"


def test_an_error_or_a_kill_leaves_the_old_folder(tmp_path: Path) -> None:
    with atomic_dir("store") as part:
        (part / "rows").write_text("old")
    with pytest.raises(RuntimeError), atomic_dir("store") as part:  # noqa: PT012
        (part / "rows").write_text("half")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    assert Path("store/rows").read_text() == "old"
    kill_within("atomic_dir", "store", '(part / "rows").write_text("new")')
    assert Path("store/rows").read_text() == "old"


KILLED_WHILE_REMOVING = """
import os, signal, sys
from stepline.io import atomic_dir
with atomic_dir("store") as part:
    (part / "a").write_text("new")
    (part / "b").write_text("new")
    removed = []
    def kill(event, arguments):
        if event == "os.remove":
            removed.append(arguments)
            if len(removed) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(kill)
"""


def test_a_kill_while_the_old_folder_is_removed_leaves_the_new_one() -> None:
    with atomic_dir("store") as part:
        (part / "a").write_text("old")
        (part / "b").write_text("old")
    done = subprocess.run([sys.executable, "-c", KILLED_WHILE_REMOVING], check=False)
    assert done.returncode == -signal.SIGKILL
    assert {path.name: path.read_text() for path in Path("store").iterdir()} == {"a": "new", "b": "new"}


def test_a_folder_is_replaced_wholly(tmp_path: Path) -> None:
    with atomic_dir(tmp_path / "store") as part:
        (part / "old").write_text("1")
    with atomic_dir(tmp_path / "store") as part:
        (part / "deep").mkdir()
        (part / "deep" / "new").write_text("2")
        assert (tmp_path / "store" / "old").exists()
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "store",
        "store/deep",
        "store/deep/new",
    ]


def test_equal_values_have_equal_canonical_json() -> None:
    assert (
        canonical_json({"b": [1, 2.5, None], "a": {"d": True, "c": "é"}}) == '{"a":{"c":"é","d":true},"b":[1,2.5,null]}'
    )
    assert canonical_json({"a": 1, "b": 2}) == canonical_json({"b": 2, "a": 1})
    assert canonical_json([1, 2]) != canonical_json([2, 1])


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": object()}, {1: 2, "a": 3}, {1, 2}])
def test_what_has_no_canonical_json_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        canonical_json(value)


def test_json_comes_back_and_damaged_json_is_named(tmp_path: Path) -> None:
    value = {"steps": ["Öffnen", None, 1.5], "n": 3}
    write_json(tmp_path / "a.json", value)
    write_json(tmp_path / "b.json", dict(reversed(value.items())))
    assert read_json(tmp_path / "a.json") == value
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    for content in (b"", b'{"files": {"a', b"\xff\xfe\x00"):
        Path("release.json").write_bytes(content)
        with pytest.raises(StoreError, match="release.json is not JSON"):
            read_json("release.json")


def test_sha256_of_a_file(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a", b"abc")
    assert sha256_file(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@contextmanager
def small(folder: Path, *, size: str) -> Iterator[Path]:
    """Mount a file system of a few pages on ``folder``; skip where this account may not, except in CI."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        unavailable(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_tensors_follow_the_umask_and_stay_in_the_locked_file(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        write_tensors(tmp_path / "a.safetensors", {"rows": np.arange(3.0)}, save_file)
    finally:
        os.umask(old)
    assert (tmp_path / "a.safetensors").stat().st_mode & 0o777 == 0o644
    assert load_file(tmp_path / "a.safetensors")["rows"].tolist() == [0, 1, 2]


def test_a_full_disk_is_one_line_and_the_run_goes_on_afterwards(tmp_path: Path) -> None:
    with small(tmp_path / "small", size="64k") as folder:
        # The folders of a work folder take no space of their own; the ballast leaves one page.
        ballast = folder / "ballast"
        ballast.write_bytes(b"x" * 60 * 1024)
        mirror = tmp_path / "mirror" / "demo" / "release"
        mirror.mkdir(parents=True)
        for name in ("annotation", "steps", "split"):
            (mirror / f"{name}.json").write_text(json.dumps(["x" * 3000, "x" * 3000]))
        command = [sys.executable, "-m", "stepline", "--log", "fetch.log", "fetch", "demo/demo"]
        environment = os.environ | {"STEPLINE_MIRROR": str(tmp_path / "mirror")}

        def fetch() -> subprocess.CompletedProcess[str]:
            return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

        full = fetch()
        assert full.returncode == 2
        assert full.stderr.count("\n") == 1
        assert full.stderr.startswith("error: the disk is full")
        assert "free some space and run the same command again" in full.stderr
        files = {path.name for path in (folder / "datasets").rglob("*") if path.is_file()}
        assert files <= {"annotation.json", "steps.json"}
        for path in folder.rglob("datasets/**/*.json"):
            assert path.read_bytes() == (mirror / path.name).read_bytes()

        ballast.unlink()
        done = fetch()
        assert (done.returncode, done.stderr) == (0, "")
        assert {path.name for path in (folder / "datasets/demo/demo").rglob("*.json")} == {
            "annotation.json",
            "steps.json",
            "split.json",
            "release.json",
        }


WRITERS: dict[str, Callable[[Path], object]] = {
    "json": lambda path: write_json(path, ["x" * 40_000]),
    "parquet": lambda path: write_table(path, pyarrow.table({"x": np.random.default_rng(0).random(10_000)})),
    "npz": lambda path: write_arrays(path, rows=np.zeros(10_000)),
    "safetensors": lambda path: write_tensors(path, {"rows": np.zeros(10_000)}, save_file),
    "features": lambda path: store.write(path, SPEC, {"a": np.ones((10_000, 9), np.float32)}, 1.0),
}
SPEC = Recorded(name="x", label="x", revision=1, values={"dtype": "float32"}, dimension=9)


def test_each_writer_says_which_file_has_no_room_and_leaves_nothing(tmp_path: Path) -> None:
    with small(tmp_path / "small", size="32k") as folder:
        for name, write in WRITERS.items():
            with pytest.raises(OSError, match="No space left on device") as full:
                write(folder / name)
            assert (full.value.errno, full.value.filename) == (errno.ENOSPC, str(folder / name)), name
            assert list(folder.iterdir()) == [], name


def test_an_output_that_takes_nothing_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", PRINTS], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert re.fullmatch(r"error: the disk is full \(standard output, .*\): free some space .*\n", done.stderr)


PRINTS = """
import sys
from stepline import cli
cli.fetch._fetch_each = lambda items: print("x")
open("config.yaml", "w").write("demo: {}")
sys.exit(cli.main(["fetch"]))
"""


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_damaged_parquet_file_is_one_line(keep: int, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with pytest.raises(FileNotFoundError):
        read_table(path)
    parquet.write_table(pyarrow.table({"x": [1, 2, 3]}), path)
    assert read_table(path, columns=["x"]).to_pydict() == {"x": [1, 2, 3]}
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(StoreError, match=f"^{path} is damaged .*: remove its folder"):
        read_table(path)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: {c: 1, c: 2}\n", "line 2: the key 'c' occurs twice; keep one"),
        ("a: 1\nb: 2\n'a': 3\n", "line 3: the key 'a' occurs twice; keep one"),
        ("- x:\n  - {2: 1, 2: 1}\n", "line 2: the key '2' occurs twice; keep one"),
    ],
)
def test_a_key_that_stands_twice_is_refused(text: str, line: str) -> None:
    with pytest.raises(yaml.YAMLError) as error:
        read_yaml(text)
    assert str(error.value) == line


def test_merged_keys_may_be_replaced_and_text_and_the_key_two_are_two_keys() -> None:
    text = "x: &a {p: 1, q: 2}\ny: {o: {b: &b {<<: *a, p: 3}}, c: {<<: *b, q: 4}}\nz: [*a, *a]\n"
    both = {"p": 1, "q": 2}
    assert read_yaml(text) == {"x": both, "y": {"o": {"b": {"p": 3, "q": 2}}, "c": {"p": 3, "q": 4}}, "z": [both, both]}
    assert read_yaml("{2: a, '2': b}") == {2: "a", "2": "b"}
    assert read_yaml("") is None


def test_a_file_has_its_name_once_its_bytes_are_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda handle: named.append(Path("a").exists()))
    write_text("a", "content")
    assert named == [False, True]
