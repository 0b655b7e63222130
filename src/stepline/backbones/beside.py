"""The local imports of a user's Python file: their digest, and an import system that finds them."""

import ast
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder, all_suffixes
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TypedDict

from stepline.remembered import remembered
from stepline.syntax import code_text, imported

Code = tuple[tuple[str, str], ...]
"""(name, sha256) of files; names are relative to the folder of the first file."""


class _Module(TypedDict):
    """A file's sha256 without comments, docstrings and layout, and the names it imports."""

    sha256: str
    imports: list[str]


def code_sha256(path: Path) -> Code:
    """Return the sha256 of a Python file and of every file that it imports from its own folder, directly or not.

    Imports inside functions count too. A module with the file's own name is taken to be an installed one. The sha256
    covers the code without comments, docstrings and layout; docstrings count if the code uses ``__doc__``. All bytes
    count for a file that is not Python code, such as a compiled module.
    """
    return tuple((name, made["sha256"]) for name, made in sorted(_files(path).items()))


@contextmanager
def importing(path: Path) -> Iterator[Code]:
    """Make the files named by ``code_sha256`` importable, before installed modules of the same names, and yield them.

    They are removed from ``sys.modules`` at the end of the context. The file keeps the modules it imported, and another
    file finds the modules in its own folder.
    """
    code = code_sha256(path)
    finder = _Finder(str(path.parent.absolute()), {name.partition("/")[0].partition(".")[0] for name, _ in code})
    finder.names.discard(path.stem)
    others = _taken(finder.names)
    sys.meta_path.insert(0, finder)
    try:
        yield code
    finally:
        sys.meta_path.remove(finder)
        _taken(finder.names)
        sys.modules.update(others)


@dataclass
class _Finder:
    """Finds a fixed set of modules in a folder."""

    folder: str
    names: set[str]

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [self.folder]) if name in self.names else None


def _taken(names: set[str]) -> dict[str, ModuleType]:
    """Remove these modules and their submodules from ``sys.modules`` and return them."""
    there = names & sys.modules.keys()  # usually none, and thousands of other modules
    return {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] in there} if there else {}


def _files(path: Path) -> dict[str, _Module]:
    """Return a file and the files below its folder that it imports, by their names relative to that folder."""
    found, seen = {path.name: _read(path, "")}, set[str]()
    waiting = [*found[path.name]["imports"]]
    while waiting:
        name = waiting.pop()
        if name in seen or name.partition(".")[0] == path.stem:
            continue
        seen.add(name)
        package, _, last = name.rpartition(".")
        waiting += [package] if package else []
        place = path.parent.joinpath(*name.split("."))
        if last == "*":
            waiting += [f"{package}.{each.name}" for each in iter_modules([str(place.parent)])]
        elif file := _file(place):
            made = _read(file, name if file.parent == place else package)
            found[file.relative_to(path.parent).as_posix()] = made
            waiting += made["imports"]
    return found


def _file(place: Path) -> Path | None:
    files = (Path(f"{module}{suffix}") for module in (place / "__init__", place) for suffix in all_suffixes())
    return next((file for file in files if file.is_file()), None)


def _read(file: Path, package: str) -> _Module:
    name = hashlib.sha256(str(file.absolute()).encode(errors="surrogateescape")).hexdigest()[:16]
    return remembered(f"modules/{name}", [str(file)], partial(_parsed, file, package))


def _parsed(file: Path, package: str) -> _Module:
    source = code = file.read_bytes() if file.is_file() and os.access(file, os.R_OK) else b""
    imports = list[str]()
    with suppress(SyntaxError, ValueError, RecursionError):  # importing the file reports the error
        imports = sorted({*imported(ast.parse(source), package)})
        code = source if b"__doc__" in source else code_text(source).encode()
    return {"sha256": hashlib.sha256(code).hexdigest(), "imports": imports}
