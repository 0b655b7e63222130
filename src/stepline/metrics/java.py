"""Shared code for the Java programs in ``pycocoevalcap``: the command line, the paths and the error messages."""

import importlib.util
from pathlib import Path

_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:+DisplayVMOutputToStderr",
    "-Dfile.encoding=UTF-8",
    "-Duser.language=en",
    "-Duser.country=US",
)


def java(memory: str) -> list[str]:
    """Return the command that starts Java with a memory limit, such as ``2G``."""
    return ["java", f"-Xmx{memory}", *_OPTIONS]


def packaged(*parts: str) -> Path | None:
    """Return the path of a file in the package ``pycocoevalcap``, or None if it is absent."""
    spec = importlib.util.find_spec("pycocoevalcap")
    folders = (spec.submodule_search_locations if spec else None) or ()
    return next((file for folder in folders if (file := Path(folder, *parts)).is_file()), None)


def complaint(said: bytes) -> str:
    """Return the last line of a program's standard error that is not part of a stack trace."""
    lines = said.decode(errors="replace").splitlines()
    return next((line for line in reversed(lines) if line and not line[0].isspace()), "it printed no error")
