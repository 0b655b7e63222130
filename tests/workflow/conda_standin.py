"""A stand-in for conda, so that ``snakemake --use-conda`` runs where there is none.

It answers the calls that Snakemake makes. An environment becomes a venv of the file's Python with what the file's
``pip:`` part installs from the package registry, and nothing else: a rule that imports what its file does not bring
fails. Programs of conda-forge are those of the machine.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ACTIVATE = 'export CONDA_PREFIX="$1"\nexport PATH="$1/bin:$PATH"\n'


def install(root: Path, *, pip: bool = False) -> Path:
    """Write the commands ``conda`` and ``activate`` under ``root``; return the folder to put first on ``PATH``.

    pip: install as conda does, with pip. The default is uv, which links the files of its cache.
    """
    folder = root / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, str(Path(__file__).resolve()), str(root.resolve()), "pip" if pip else "uv"]
    (folder / "conda").write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    (folder / "conda").chmod(0o755)
    (folder / "activate").write_text(ACTIVATE)
    return folder


def create(content: str, prefix: Path, *, pip: bool = False) -> None:
    """Make ``prefix`` an environment of the file ``content``.

    Raises CalledProcessError if its Python is not on this machine, or a package is not in the registry.
    """
    python, requirements = parts(content)
    if pip:
        make = f"python{python}", "-m", "venv", str(prefix)
        fill = str(prefix / "bin/python"), "-m", "pip", "install"
    else:
        uv = sys.executable, "-m", "uv"
        make = *uv, "venv", "--quiet", "--python", python, "--no-python-downloads", str(prefix)
        fill = *uv, "pip", "install", "--python", str(prefix)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("\n".join(requirements))
        listed.flush()
        subprocess.run(make, check=True)
        subprocess.run([*fill, "--quiet", "-r", listed.name], check=True)


def parts(content: str) -> tuple[str, list[str]]:
    """Return the version of Python and the lines of the ``pip:`` part of an environment file."""
    *conda, last = yaml.safe_load(content)["dependencies"]
    [python] = [line.removeprefix("python=") for line in conda if line.startswith("python=")]
    return python, last["pip"]


def main(root: str, installer: str, *words: str) -> int:
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
                create(given.file.read_text(), given.prefix, pip=installer == "pip")
            except subprocess.CalledProcessError as error:
                print(f"conda stand-in: {given.file.name}: {error}", file=sys.stderr)
                return 1
        case _:
            print(f"conda stand-in: not a command that is answered: {shlex.join(words)}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
