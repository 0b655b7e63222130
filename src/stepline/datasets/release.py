"""Releases: the files of a data set's annotation, fetched whole and checked whenever they are read."""

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

OWN = "release"
"""The name of a release that was built of a data set's own annotation."""
REBUILT = "rebuilt"
"""The name of a release that was made anew of what the released one was made of."""
MADE_BY = {OWN: "annotation build {study}", REBUILT: "{study} rebuild"}
"""The verbs that make a release which is not fetched."""
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
"""What reading a ZIP archive raises that is damaged or lacks a file."""


@dataclass(frozen=True, kw_only=True)
class ReleaseFile:
    """One file of a release: its path, its place in a mirror, and its address where it is public."""

    path: str
    wanted: Wanted
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class Released(Dataset):
    """A data set with releases of its annotation.

    known: the names of the releases. release_files: the files of a release by its name.
    """

    known: tuple[str, ...]
    release_files: Callable[[str], tuple[ReleaseFile, ...]]

    def folder(self, release: str) -> Path:
        """Return where the release's files stand."""
        return Path("datasets") / self.name / release

    def is_there(self, release: str) -> bool:
        """Return whether a release is fetched, or the mirror holds all of it."""
        files = self.release_files(release)
        return (self.folder(release) / "release.json").exists() or (bool(files) and all(find(f.wanted) for f in files))

    def origin(self, release: str) -> str:
        """Return the address, with its commit, below which all public files of a release are; "" of none."""
        urls = [file.url for file in self.release_files(release) if file.url]
        return commonpath(urls).replace(":/", "://", 1) if urls else ""

    def release_file(self, release: str, path: str) -> Path:
        """Return a file of the release by its path there; raise ReleaseError where it is not as it was fetched."""
        return checked_file(self.folder(release), path, study=self.name, name=release)


def how_to_bring(study: str, release: str) -> str:
    """Return the command that brings a release."""
    return "stepline " + MADE_BY.get(release, "fetch {study}/{release}").format(study=study, release=release)


def checked_file(folder: Path, path: str, *, study: str, name: str) -> Path:
    """Return the file at ``path`` in the release's ``folder``: as fetched, by the sha256 in ``release.json``.

    Raises ReleaseError where it is absent, changed or not listed.
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
        raise ReleaseError(f"{file} is changed since it was fetched: {fetch}")
    return file
