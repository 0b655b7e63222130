"""Write the conda environments: Python and programs from conda-forge, packages from PyPI in the tested versions.

Run ``.venv/bin/python envs/write.py`` after a change of ``pyproject.toml`` or ``constraints.txt``. It needs PyPI.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import Requirement

HERE = Path(__file__).parent
PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
ENVIRONMENTS = PROJECT["tool"]["stepline"]["environments"]
PYTHON = "3.11"
"""The version of Python with which all tests run."""
NOT_IN_JOBS = "snakemake"
"""Starts the jobs, and is not imported in them."""
OF_GPU_BUILDS = re.compile(r"(cuda|nvidia)-.*|triton==\S+ +# via torch, -c .*")
"""What only torch's GPU build requires; the requirements of that build contain the versions."""
UNPINNED = ("yt-dlp", "yt-dlp-ejs")
"""What has to follow the sites."""


def files() -> Mapping[str, str]:
    """Return the text of each file by its name without suffix.

    Raises CalledProcessError if uv finds no packages that fit.
    """
    return {name: _text(**environment) for name, environment in ENVIRONMENTS.items()}


def _text(extras: list[str], programs: tuple[str, ...] = ()) -> str:
    indented = "".join(f"  - {line}\n" for line in (f"python={PYTHON}", "pip", *programs))
    pins = "".join(f"      - {pin}\n" for pin in _resolved(extras))
    return (
        f"# Written by envs/write.py: the required packages and the extras {', '.join(extras)}.\n"
        f"channels:\n  - conda-forge\ndependencies:\n{indented}  - pip:\n{pins}"
    )


def _resolved(extras: list[str]) -> list[str]:
    """Return the requirements of a job's environment, with all that they require."""
    project = PROJECT["project"]
    wanted = {line for line in project["dependencies"] if Requirement(line).name != NOT_IN_JOBS}
    wanted.update(line for extra in extras for line in project["optional-dependencies"][extra])
    words = [
        *(sys.executable, "-m", "uv", "pip", "compile", "-", "--quiet", "--no-header", "--annotation-style", "line"),
        *("--python-version", PYTHON, "--python-platform", "linux", "--no-python-downloads"),
        *("--constraints", str(HERE.parent / "constraints.txt")),
    ]
    text = "\n".join(sorted(wanted))
    done = subprocess.run(words, input=text, cwd=HERE, stdout=subprocess.PIPE, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if not OF_GPU_BUILDS.fullmatch(line)]
    found = re.findall(r"^(\S+)(==[\w.]+)", "\n".join(lines), re.MULTILINE)
    return [name if name in UNPINNED else name + version for name, version in found]


if __name__ == "__main__":
    for name, text in files().items():
        (HERE / f"{name}.yaml").write_text(text, encoding="utf-8")
