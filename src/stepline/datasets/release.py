"""Releases: the annotation files of a data set, fetched completely and checked on every read."""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from lzma import LZMAError
from os.path import commonpath
from pathlib import Path
from zipfile import BadZipFile

from stepline.datasets.dataset import Dataset
from stepline.errors import ReleaseError
from stepline.io import read_json, sha256_file
from stepline.mirror import Wanted, find

REBUILT = "rebuilt"
"""The name of a release rebuilt from the sources of the released one."""
DAMAGED_ARCHIVE = (
    BadZipFile,
    EOFError,
    KeyError,
    LZMAError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""The errors of reading a ZIP archive that is damaged or incomplete."""


@dataclass(frozen=True, kw_only=True)
class ReleaseFile:
    """One file of a release: its path, its place in a mirror, and its address if it is public."""

    path: str
    wanted: Wanted
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class Released(Dataset):
    """A data set with releases of its annotation.

    known: the names of the releases. release_files: returns the files of a release.
    """

    known: tuple[str, ...]
    release_files: Callable[[str], tuple[ReleaseFile, ...]]

    def folder(self, release: str) -> Path:
        """Return the folder of the release."""
        return Path("datasets") / self.name / release

    def is_there(self, release: str) -> bool:
        """Return whether a release is fetched, or the mirror has all of its files."""
        files = self.release_files(release)
        return (self.folder(release) / "release.json").exists() or (bool(files) and all(find(f.wanted) for f in files))

    def origin(self, release: str) -> str:
        """Return the common address, with the commit, of all public files of a release; "" if there are none."""
        urls = [file.url for file in self.release_files(release) if file.url]
        return commonpath(urls).replace(":/", "://", 1) if urls else ""

    def release_file(self, release: str, path: str) -> Path:
        """Return a file of the release by its path; raise ReleaseError if it has changed since it was fetched."""
        return checked_file(self.folder(release), path, study=self.name, name=release)


def how_to_bring(study: str, release: str) -> str:
    """Return the command that fetches or rebuilds a release."""
    return f"stepline {study} rebuild" if release == REBUILT else f"stepline fetch {study}/{release}"


def checked_file(folder: Path, path: str, *, study: str, name: str) -> Path:
    """Return the file at ``path`` in the release's ``folder``, checked by the sha256 in ``release.json``.

    Raises ReleaseError if it is absent, changed or not listed.
    """
    file, manifest = folder / path, folder / "release.json"
    fetch = f"run `{how_to_bring(study, name)}`"
    if not manifest.exists():
        raise ReleaseError(f"{folder} holds no release: {fetch}")
    try:
        sha256 = read_json(manifest)["files"][path]
    except (KeyError, TypeError):
        raise ReleaseError(f"{manifest} does not list {path}: {fetch}") from None
    if not file.is_file():
        raise ReleaseError(f"{file} is absent: {fetch}")
    if sha256_file(file) != sha256:
        raise ReleaseError(f"{file} has changed since it was fetched: {fetch}")
    return file
