"""The measurements on a GPU, without one: what minutes on a GPU must not be lost to."""

import os
import re
import subprocess
import sys
import time
from importlib import import_module
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from stepline.backbones.registry import presets
from tests.conftest import ROOT

torch = pytest.importorskip("torch")

ONLY = """
from functools import partial
from importlib.machinery import PathFinder
def found(find, name, *where):
    return None if name in {absent} else find(name, *where)
PathFinder.find_spec = partial(found, PathFinder.find_spec)
"""
"""The machine with the GPU does not have these modules."""


def carried() -> list[str]:
    """Return the packages that perf/gpu.sh carries."""
    lists = re.findall(r"^(?:wheels|sources)=\((.*?)\)", (ROOT / "perf/gpu.sh").read_text(), re.DOTALL | re.MULTILINE)
    return " ".join(lists).split()


def needs(name: str) -> set[str]:
    """Return a package and all that it requires, in the names of PyPI."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        each = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if each not in found:
            found.add(each)
            required = map(Requirement, distribution(each).requires or ())
            waiting += [one.name for one in required if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


@pytest.mark.long
def test_the_dry_run_goes_all_the_way_with_what_is_there_and_what_is_carried(tmp_path: Path) -> None:
    there = {each for name in import_module("gpu").THERE for each in needs(name)} | {*carried(), "stepline"}
    there |= {"imageio-ffmpeg", "scikit-image"}  # they write the clips, which are carried too
    absent = sorted(
        module
        for module, owners in packages_distributions().items()
        if there.isdisjoint(re.sub(r"[-_.]+", "-", each).lower() for each in owners)
    )
    assert {"cv2", "numpy"}.isdisjoint(absent)
    assert {"snakemake", "obstore", "ctranslate2"} <= {*absent}
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(ONLY.format(absent=set(absent)))
    done = subprocess.run(
        [ROOT / "perf/gpu.sh", "--dry-run", "--out", "out"],
        env=os.environ | {"PYTHON": sys.executable, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *_, summary = (tmp_path / "out/summary.txt").read_text().split("numba ")
    assert re.findall(r": (\w+) after", summary) == ["done"] * 7

    def figures(part: str) -> str:
        return (tmp_path / f"out/{part}.txt").read_text()

    assert "test_faster_whisper.py" in figures("tests")
    assert int(re.search(r"(\d+) passed", figures("tests"))[1]) >= 14
    rows = re.findall(r"^(\S+) +(?:\+(\d+))? +0\.0e\+00 +(\S+) +(\S+) +\S+ +yes", figures("rows"), re.MULTILINE)
    assert sum(1 + int(others or 0) for _, others, _, _ in rows) == len(presets())
    assert all(0 < float(found) < 0.02 for row in rows for found in row[2:])
    assert len(re.findall(r" 0.0e\+00 +100%$", figures("mixed"), re.MULTILINE)) == 3
    assert len(re.findall(r"p +[12] .*(?: +\d+\.\d+){4}$", figures("rates"), re.MULTILINE)) == 8
    assert "waits for frames" in figures("idle")
    heads = import_module("gpu_heads").HEADS
    assert re.findall(r"^(\S.*?)  +\d+ +\d+\.\d+ +0\.0$", figures("heads"), re.MULTILINE) == [*heads]
    assert re.findall(r"^(\d jobs?) +\d", figures("jobs"), re.MULTILINE) == ["1 job", "2 jobs"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_nothing_is_measured(tmp_path: Path) -> None:
    command = [ROOT / "perf/gpu.sh", "--out", tmp_path / "out"]
    environment = os.environ | {"PYTHON": sys.executable}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"torch can use no GPU here \(.+\); --dry-run goes the same way on a CPU\n", done.stderr)
    assert not (tmp_path / "out").exists()


GOES_ON = """
import subprocess, sys, time
print("known", flush=True)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]])
time.sleep(600)
"""


def test_a_part_that_is_cut_leaves_its_figures_and_no_process(tmp_path: Path) -> None:
    gpu = import_module("gpu")
    part = gpu.Part("part", "title", 3, ("-c", GOES_ON, str(tmp_path)))
    ended = gpu.run(part, tmp_path / "part.txt", dict(os.environ), time.monotonic() + 3)
    assert ended == "cut at its limit after 3 s"
    assert (tmp_path / "part.txt").read_text() == "known\n"
    deadline = time.monotonic() + 20
    while any(str(tmp_path).encode() in path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_part_that_fails_says_so(tmp_path: Path) -> None:
    gpu = import_module("gpu")
    part = gpu.Part("part", "title", 9, ("-c", "import sys; print(1, flush=True); sys.exit(3)"))
    assert gpu.run(part, tmp_path / "part.txt", dict(os.environ), time.monotonic() + 60).startswith("failed with 3")


def test_all_parts_fit_into_nine_minutes() -> None:
    assert sum(part.limit_s for part in import_module("gpu").parts()) <= 520
