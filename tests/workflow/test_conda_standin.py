"""The stand-in for conda, by Snakemake itself."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.workflow.conda_standin import EnvironmentFileError, install, pins

SNAKEFILE = """
rule all:
    input:
        "versions.txt",

rule versions:
    output:
        "versions.txt",
    conda:
        "env.yaml"
    shell:
        "python -c 'import {module}, sys; print({module}.__version__, sys.prefix)' > {{output}}"
"""


def env(*packages: str, pip: tuple[str, ...] = ()) -> str:
    lines = [f"  - {package}" for package in ("python=3.11", *packages)]
    if pip:
        lines += ["  - pip=1.0", "  - pip:", *(f"      - {package}" for package in pip)]
    return "\n".join(["channels: [conda-forge, nodefaults]", "dependencies:", *lines, ""])


def run(folder: Path, module: str, content: str) -> subprocess.CompletedProcess[str]:
    (folder / "Snakefile").write_text(SNAKEFILE.format(module=module))
    (folder / "env.yaml").write_text(content)
    path = f"{install(folder / 'conda')}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1", "--use-conda"],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_job_runs_in_the_prefix_with_what_is_listed_and_what_that_requires(tmp_path):
    done = run(tmp_path, "scipy", env(f"scipy={version('scipy')}"))
    assert done.returncode == 0, done.stderr
    installed, prefix = (tmp_path / "versions.txt").read_text().split()
    assert installed == version("scipy")
    assert Path(prefix).parent == tmp_path / ".snakemake" / "conda"


@pytest.mark.slow
def test_a_package_that_is_not_listed_is_not_there(tmp_path):
    done = run(tmp_path, "scipy", env(f"numpy={version('numpy')}"))
    assert done.returncode == 1
    assert "No module named 'scipy'" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (env("numpy=1.0.0"), f"numpy is {version('numpy')} here and 1.0.0 in the file"),
        (env(pip=("no-such-package==1.0",)), "no-such-package is not installed"),
    ],
    ids=["version", "absent"],
)
def test_a_file_that_differs_from_what_is_installed_is_refused(tmp_path, content, message):
    done = run(tmp_path, "numpy", content)
    assert done.returncode == 1
    assert message in done.stderr


def test_pins_are_read_under_the_names_of_pypi():
    content = env("pytorch=2.13.0", "yt-dlp", pip=("--only-binary=pocketsphinx", "pocketsphinx==5.0.4"))
    assert pins(content) == {
        "python": "3.11", "torch": "2.13.0", "yt-dlp": "", "pip": "1.0", "pocketsphinx": "5.0.4"
    }  # fmt: skip


@pytest.mark.parametrize("package", ["numpy>=2", "numpy==2.4.6", "numpy=2.*"])
def test_a_range_is_refused(package):
    with pytest.raises(EnvironmentFileError, match="neither a name nor name=version"):
        pins(env(package))
