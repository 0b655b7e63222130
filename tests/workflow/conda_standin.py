"""A stand-in for conda, so that ``snakemake --use-conda`` runs where there is none.

It answers the calls that Snakemake makes. An environment becomes a venv of the running Python that sees the packages of
the environment file, what those require, and nothing else: they are linked from the running environment, whose versions
must be those of the file. So a rule that imports what its file does not list fails. The pin of ``python`` is not
compared, and nothing here shows that conda-forge can solve the file.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ON_PYPI = {"matplotlib-base": "matplotlib", "pytorch": "torch"}
"""Packages that have another name on conda-forge."""
OF_CONDA = {"python", "pip", "openjdk"}
"""What conda brings itself, or this machine has; everything else must be installed here."""

ACTIVATE = 'export CONDA_PREFIX="$1"\nexport PATH="$1/bin:$PATH"\n'


class EnvironmentFileError(Exception):
    """An environment file that asks for something else than what is installed."""


def install(root: Path) -> Path:
    """Write the commands ``conda`` and ``activate`` under ``root``; return the folder to put first on ``PATH``."""
    folder = root / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, str(Path(__file__).resolve()), str(root.resolve())]
    (folder / "conda").write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    (folder / "conda").chmod(0o755)
    (folder / "activate").write_text(ACTIVATE)
    return folder


def pins(content: str) -> dict[str, str]:
    """Return PyPI name -> version (empty where left open) of an environment file's packages, conda's and pip's.

    Raises EnvironmentFileError where a line is neither a name nor one exact version.
    """
    found = {}
    for line in yaml.safe_load(content)["dependencies"]:
        listed = line["pip"] if isinstance(line, dict) else [line]
        equals = "==" if isinstance(line, dict) else "="
        for text in listed:
            if text.startswith("--"):
                continue
            match = re.fullmatch(rf"([a-z0-9_.-]+)(?:{equals}([0-9][0-9a-z.]*))?", text)
            if match is None:
                raise EnvironmentFileError(f"{text!r} is neither a name nor name{equals}version")
            name, version = match.groups(default="")
            found[ON_PYPI.get(name, name)] = version
    return found


def create(content: str, prefix: Path) -> None:
    """Make ``prefix`` a venv with the packages of the environment file ``content``.

    Raises EnvironmentFileError, which lists every package that is absent here or has another version.
    """
    wanted = {name: version for name, version in pins(content).items() if name not in OF_CONDA}
    wrong = []
    for name, version in wanted.items():
        try:
            installed = distribution(name).version.partition("+")[0]
        except PackageNotFoundError:
            wrong.append(f"{name} is not installed")
        else:
            if version not in ("", installed):
                wrong.append(f"{name} is {installed} here and {version} in the file")
    if wrong:
        raise EnvironmentFileError("; ".join(wrong))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    packages = next(prefix.glob("lib/python*/site-packages"))
    for dist in closure(wanted):
        for name, path in _top(dist.name).items():
            link = packages / name
            if not link.exists():
                link.symlink_to(path)


@cache
def _top(name: str) -> dict[str, Path]:
    """Return the files and folders that a distribution has in ``site-packages``."""
    dist = distribution(name)
    names = {file.parts[0] for file in dist.files or ()} - {"..", "__pycache__"}
    return {name: Path(str(dist.locate_file(name))).resolve() for name in names}


def closure(names: Iterable[str]) -> list[Distribution]:
    """Return the installed distributions that ``names`` and their requirements, to the end, stand for."""
    found: dict[str, Distribution] = {}
    todo = [*map(_requirement, names)]
    seen = set()
    while todo:
        requirement = todo.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        dist = found.setdefault(requirement.name, distribution(requirement.name))
        extras = {"", *requirement.extras}
        for line in dist.requires or ():
            child = _requirement(line)
            if child.marker is None or any(child.marker.evaluate({"extra": extra}) for extra in extras):
                todo.append(child)
    return list(found.values())


_requirement = cache(Requirement)


def main(root: str, *words: str) -> int:
    """Answer one conda command; the exit code is 1 where an environment cannot be made, 2 for an unknown command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path)
    parser.add_argument("--prefix", type=Path)
    match words:
        case ["--version"]:
            print("conda 24.7.1")
        case ["info", *_]:
            print(json.dumps({"conda_prefix": root, "platform": "linux-64"}))
        case ["config", "--get", "channel_priority", *_]:
            print(json.dumps({"get": {"channel_priority": "strict"}}))
        case ["clean", *_] | ["config", "--set", "channel_priority", _]:
            pass
        case ["env", "create", *rest]:
            given = parser.parse_known_args(rest)[0]
            try:
                create(given.file.read_text(), given.prefix)
            except EnvironmentFileError as error:
                print(f"conda stand-in: {os.path.basename(given.file)}: {error}", file=sys.stderr)
                return 1
        case _:
            print(f"conda stand-in: not a command that is answered: {shlex.join(words)}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
