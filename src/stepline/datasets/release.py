"""Releases: the annotation files of a data set, fetched completely and checked on every read."""

import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from lzma import LZMAError
from os.path import commonpath
from pathlib import Path
from zipfile import BadZipFile

from stepline.datasets.dataset import Dataset
from stepline.datasets.lines import lines
from stepline.datasets.schema import Video
from stepline.errors import ConfigError, ReleaseError
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
    """One file of a release: its path, its place in a mirror, and its address if it is public.

    file: the absolute path of the user's own file, which is then the only place.
    """

    path: str
    wanted: Wanted
    url: str = ""
    file: str = ""

    def find(self) -> Path | None:
        """Return the user's own file, or the file in the mirror; None if it is not there."""
        return Path(self.file) if self.file else find(self.wanted)


@dataclass(frozen=True, kw_only=True)
class Released(Dataset):
    """A data set with releases of its annotation.

    known: the names of the releases. release_files: returns the files of a release.
    """

    videos: Callable[[], tuple[Video, ...]] = tuple
    known: tuple[str, ...]
    release_files: Callable[[str], tuple[ReleaseFile, ...]]

    def folder(self, release: str) -> Path:
        """Return the folder of the release."""
        return Path("datasets") / self.name / release

    def is_there(self, release: str) -> bool:
        """Return whether a release is fetched, or the mirror has all of its files."""
        files = self.release_files(release)
        return (self.folder(release) / "release.json").exists() or (bool(files) and all(file.find() for file in files))

    def held(self, release: str, path: str) -> Path | None:
        """Return a file of a release, from the mirror or else from its fetched folder; None if neither has it.

        So a list of videos is the same before and after a job fetches the release. Raises ReleaseError if the fetched
        file has changed, or the release has no file at this path.
        """
        self._check_listed(release, path)
        found = next((file.find() for file in self.release_files(release) if file.path == path), None)
        fetched = not found and (self.folder(release) / "release.json").exists()
        return self.release_file(release, path) if fetched else found

    def origin(self, release: str) -> str:
        """Return the common address, with the commit, of all public files of a release; "" if there are none."""
        urls = [file.url for file in self.release_files(release) if file.url]
        return commonpath(urls).replace(":/", "://", 1) if urls else ""

    def release_file(self, release: str, path: str) -> Path:
        """Return a file of the release by its path.

        Raises ReleaseError if it has changed since it was fetched, or the release has no file at this path.
        """
        try:
            return checked_file(self.folder(release), path, study=self.name, name=release)
        except ReleaseError:
            self._check_listed(release, path)
            raise

    def _check_listed(self, release: str, path: str) -> None:
        listed = [file.path for file in self.release_files(release)]
        if listed and path not in listed:
            near = ", ".join(get_close_matches(path, listed) or listed[:3])
            raise ReleaseError(
                f"{self.name}/{release} lists no file {path}: add it to the list of its files (files.csv in the "
                f"folder of your own benchmark), or name one of them, such as {near}"
            )


def listed_files(listing: Path, study: str, source: str, release: str) -> tuple[ReleaseFile, ...]:
    """Return the files of a release in the CSV file ``listing``; none if there is no such file.

    Columns: path, below the address ``source`` and, in the mirror, below ``study``; optionally sha256 and size in
    bytes, which pin a file, and release, the only one that has it. Raises ConfigError with the line if it is not valid.
    """
    columns = {"required": ("path",), "optional": ("sha256", "size", "release")}
    found = []
    for number, line in lines(study, str(listing), **columns) if listing.exists() else ():
        path, sha256, size = line["path"], line.get("sha256", ""), line.get("size", "")
        pinned = re.fullmatch("[0-9a-f]{64}", sha256) and size.isdecimal()
        if not pinned and (sha256 or size):
            raise ConfigError(f"{listing}, line {number}: give sha256, 64 hexadecimal digits, and size, or neither")
        if path.startswith("/") or ".." in path.split("/"):
            raise ConfigError(f"{listing}, line {number}: path {path!r} is not a path below the release's folder")
        if line.get("release", "") in ("", release):
            wanted = Wanted(path=f"{study}/{path}", sha256=sha256, size=int(size or 0))
            found.append(ReleaseFile(path=path, wanted=wanted, url=f"{source}/{path}" if source else ""))
    return tuple(found)


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
