from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from stepline.datasets.release import Released, ReleaseFile, listed_files
from stepline.errors import ConfigError, ReleaseError
from stepline.fetch import fetch_release
from stepline.io import read_json
from stepline.mirror import Wanted
from tests.benchmark.tiny import CONTENT, FILE, tiny, write_releases

DIGEST = "0123456789abcdef" * 4


@pytest.fixture
def released(tmp_path: Path) -> Released:
    return tiny(tmp_path).released


def test_a_file_is_held_by_the_mirror_or_else_by_the_fetched_folder(
    released: Released, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert released.held("second", FILE) is None
    mirror = tmp_path / "mirror" / "tiny/second" / FILE
    mirror.parent.mkdir(parents=True)
    mirror.write_bytes(CONTENT)
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    assert released.held("second", FILE) == mirror.resolve()
    fetch_release(released, "second")
    assert released.held("second", FILE) == mirror.resolve()
    mirror.unlink()
    assert released.held("second", FILE) == released.folder("second") / FILE


def test_a_users_own_file_is_copied_from_its_path(released: Released, tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_bytes(b"mine")
    digest = sha256(b"mine").hexdigest()
    file = ReleaseFile(path="file.csv", wanted=Wanted(path="tiny/file.csv", sha256=digest), file=str(own))
    mine = replace(released, release_files=lambda release: (file,))
    assert (mine.is_there("first"), mine.held("first", "file.csv")) == (True, own)
    manifest = fetch_release(mine, "first")
    assert read_json(manifest)["files"] == {"file.csv": digest}
    assert mine.release_file("first", "file.csv").read_bytes() == b"mine"


def test_a_fetched_file_that_has_changed_is_one_line(released: Released) -> None:
    write_releases()
    assert released.held("first", FILE)
    (released.folder("first") / FILE).write_bytes(b"{}")
    with pytest.raises(
        ReleaseError, match="^datasets/tiny/first/numbers.json has changed since it was fetched: run `step"
    ):
        released.held("first", FILE)


def test_a_file_that_the_release_does_not_list_is_one_line_before_and_after_it_is_fetched(released: Released) -> None:
    line = "^tiny/first lists no file number.json: add it to the list of its files .*, or name one .* as numbers.json$"
    for _ in range(2):
        for find in (released.held, released.release_file):
            with pytest.raises(ReleaseError, match=line):
                find("first", "number.json")
        write_releases()


class TestListedFiles:
    def of(self, folder: Path, content: str, release: str = "v1") -> tuple[ReleaseFile, ...]:
        (folder / "files.csv").write_text(content)
        return listed_files(folder / "files.csv", "toy", "https://toy/commit", release)

    def test_a_file_has_an_address_and_a_place_in_the_mirror(self, tmp_path: Path) -> None:
        listed = f"path,sha256,size,release\na/b.json,{DIGEST},12,\nsplit/v2.csv,,,v2\n"
        pinned = ReleaseFile(
            path="a/b.json",
            wanted=Wanted(path="toy/a/b.json", sha256=DIGEST, size=12),
            url="https://toy/commit/a/b.json",
        )
        assert self.of(tmp_path, listed) == (pinned,)
        assert [file.path for file in self.of(tmp_path, listed, "v2")] == ["a/b.json", "split/v2.csv"]
        assert listed_files(tmp_path / "files.csv", "toy", "", "v2")[1] == ReleaseFile(
            path="split/v2.csv", wanted=Wanted(path="toy/split/v2.csv")
        )
        assert listed_files(tmp_path / "none.csv", "toy", "", "v2") == ()

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("file\na", "line 1: the columns must be path and, optionally, sha256, size, release, with commas"),
            (f"path,sha256\na,{DIGEST}", "line 2: give sha256, 64 hexadecimal digits, and size, or neither"),
            (f"path,sha256,size\na,{DIGEST[1:]},3", "line 2: give sha256"),
            ("path\na\n../b", "line 3: path '../b' is not a path below the release's folder"),
            ("path\n/a", "line 2: path '/a' is not a path below"),
        ],
    )
    def test_a_mistake_is_one_line(self, tmp_path: Path, content: str, problem: str) -> None:
        with pytest.raises(ConfigError) as error:
            self.of(tmp_path, content)
        assert str(error.value).startswith(f"{tmp_path}/files.csv, {problem}")
