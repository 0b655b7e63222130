import multiprocessing
import os
import shutil
from pathlib import Path

import pytest

from stepline import mirror
from stepline.errors import ConfigError
from stepline.io import sha256_file
from stepline.mirror import Wanted, cached_sha256, find, mirror_root, signature

CONTENT = b"the pinned file"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mirror"
    folder.mkdir()
    monkeypatch.setenv("STEPLINE_MIRROR", str(folder))
    monkeypatch.setenv("STEPLINE_RUN", "1")
    return folder


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read to be hashed, as they are."""
    names: list[str] = []

    def spy(path: Path) -> str:
        names.append(path.name)
        return sha256_file(path)

    monkeypatch.setattr(mirror, "sha256_file", spy)
    return names


def put(path: Path, content: bytes = CONTENT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(0, 0))
    return path


def pinned(folder: Path, path: str = "study/v1/data/steps.json") -> Wanted:
    (folder / "original").write_bytes(CONTENT)
    return Wanted(path=path, sha256=sha256_file(folder / "original"), size=len(CONTENT))


def test_without_a_mirror_nothing_is_found_and_a_missing_one_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mirror_root() is None
    assert find(Wanted(path="a")) is None
    monkeypatch.setenv("STEPLINE_MIRROR", "")
    assert mirror_root() is None
    monkeypatch.setenv("STEPLINE_MIRROR", "/nowhere/at/all")
    with pytest.raises(ConfigError, match=r"^STEPLINE_MIRROR=/nowhere/at/all is not a folder: .*$"):
        find(Wanted(path="a"))


@pytest.mark.parametrize("name", ["study/v1/data/steps.json", "elsewhere/renamed.bin", "top", "a b/ü.json"])
def test_a_pinned_file_is_found_by_its_content_whatever_its_name(root: Path, tmp_path: Path, name: str) -> None:
    put(root / name)
    assert find(pinned(tmp_path)) == root / name


def test_a_pinned_file_of_another_content_is_not_found(root: Path, tmp_path: Path) -> None:
    put(root / "study/v1/data/steps.json", CONTENT.upper())
    assert find(pinned(tmp_path)) is None


def test_the_canonical_path_goes_before_other_places(root: Path, tmp_path: Path) -> None:
    put(root / "a")
    put(root / "study/v1/data/steps.json")
    assert find(pinned(tmp_path)) == root / "study/v1/data/steps.json"


def test_an_unpinned_file_is_found_at_its_canonical_path_alone(root: Path) -> None:
    put(root / "steps.json")
    put(root / "study/steps.json")
    assert find(Wanted(path="study/v1/steps.json")) is None
    put(root / "study/v1/steps.json")
    assert find(Wanted(path="study/v1/steps.json")) == root / "study/v1/steps.json"
    assert find(Wanted(path="study")) is None, "a folder is no file"


def test_a_file_of_another_size_is_not_read(root: Path, tmp_path: Path, hashed: list[str]) -> None:
    put(root / "longer", CONTENT + b"!")
    put(root / "same size", CONTENT.upper())
    put(root / "study/v1/data/steps.json", CONTENT[:-1])
    wanted = pinned(tmp_path)
    assert find(wanted) is None
    assert hashed == ["same size"]


def test_a_digest_is_remembered_until_the_file_changes(root: Path, hashed: list[str]) -> None:
    path = put(root / "video.mp4")
    first = cached_sha256(path)
    assert cached_sha256(path) == first
    assert hashed == ["video.mp4"]
    assert [memory.read_text() for memory in mirror.DIGESTS.iterdir()] == [first]

    put(path, CONTENT.upper())
    os.utime(path, ns=(1, 1))
    assert cached_sha256(path) == sha256_file(path) != first
    assert hashed == ["video.mp4"] * 2

    shutil.copy(path, root / "copy.mp4")
    cached_sha256(root / "copy.mp4")
    assert hashed[2:] == ["copy.mp4"]


def test_only_runs_of_the_workflow_write_digests_and_not_of_a_file_that_has_just_changed(
    root: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(root / "video.mp4")
    os.utime(path)
    assert cached_sha256(path) == cached_sha256(path) == sha256_file(path)
    assert hashed == ["video.mp4"] * 2
    put(path)
    monkeypatch.delenv("STEPLINE_RUN")
    assert cached_sha256(path) == cached_sha256(path)
    assert (len(hashed), mirror.DIGESTS.exists()) == (4, False)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"0" * 63, "é".encode() * 32])
def test_damaged_memory_is_made_again(root: Path, content: bytes) -> None:
    path = put(root / "video.mp4")
    cached_sha256(path)
    (memory,) = mirror.DIGESTS.iterdir()
    memory.write_bytes(content)
    assert cached_sha256(path) == sha256_file(path)
    assert memory.read_text() == sha256_file(path)


def test_jobs_that_run_at_once_lose_no_digest(root: Path, hashed: list[str]) -> None:
    paths = [put(root / f"{number}.mp4", b"%d" % number) for number in range(199)]
    paths.append(put(root / os.fsdecode(b"\xff.mp4")))
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.map(cached_sha256, paths, chunksize=1)
    assert [cached_sha256(path) for path in paths] == [sha256_file(path) for path in paths]
    assert hashed == []


def test_the_signature_changes_with_the_file(root: Path) -> None:
    wanted = Wanted(path="videos/a.mp4")
    signatures = [signature(wanted)]
    path = put(root / "videos/a.mp4")
    os.utime(path, ns=(1, 1))
    signatures.append(signature(wanted))
    os.utime(path, ns=(2, 2))
    signatures.append(signature(wanted))
    put(path, CONTENT + b"!")
    os.utime(path, ns=(2, 2))
    signatures.append(signature(wanted))
    assert len(set(signatures)) == 4
    path.unlink()
    assert signature(wanted) == signatures[0] == ""


def test_linked_folders_of_a_mirror_are_searched_too(root: Path, tmp_path: Path) -> None:
    put(tmp_path / "disk" / "steps-renamed.json")
    (root / "study").symlink_to(tmp_path / "disk")
    (root / "loop").symlink_to(root)
    assert find(pinned(tmp_path)) == root / "study" / "steps-renamed.json"
