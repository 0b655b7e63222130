"""Runs the measurements on a GPU, most valuable first, each with its own time limit: see perf/gpu.sh.

Each part is a process, whose lines are written and printed as soon as they are known. The time that a part does not use
goes to the parts after it. A dry run has as many parts at once as there are cores.
"""

import argparse
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate, islice
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALWAYS = {"PYTHONUNBUFFERED": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
DRY = {"PERF_SMALL": "1", "STEPLINE_TEST_GPU": "cpu", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
"""The environment of each part, and what a dry run adds to it."""
THERE = (
    "torch", "torchvision", "timm", "transformers", "numpy", "pytest", "scipy", "scikit-learn", "pyarrow",
    "opencv-python-headless", "numba",
)  # fmt: skip
"""What the machine has. All else is carried: see perf/gpu.sh."""


@dataclass(frozen=True)
class Part:
    """A measurement. limit_s: how long it may take."""

    name: str
    title: str
    limit_s: int
    command: tuple[str, ...]


def script(name: str, title: str, limit_s: int) -> Part:
    """Return the part of a script in this folder."""
    return Part(name, title, limit_s, (f"perf/gpu_{name}.py",))


def parts() -> Iterator[Part]:
    """Yield the measurements in the order of their worth; together they take at most 520 s."""
    tests = sorted(ROOT.glob("tests/**/test_*.py"))
    marked = [str(path.relative_to(ROOT)) for path in tests if "mark.gpu" in path.read_text(encoding="utf-8")]
    pytest = ("-m", "pytest", "-v", "-rs", "-m", "gpu", "-p", "no:cacheprovider", "--continue-on-collection-errors")
    yield Part("tests", "the tests that need a GPU", 60, (*pytest, *marked))
    yield script("rows", "rows on the GPU and on the CPU", 75)
    yield script("mixed", "batches: mixed", 60)
    yield script("rates", "decoding, network and the whole stage", 140)
    yield script("idle", "where the GPU is idle", 45)
    yield script("heads", "updates of the trained heads", 95)
    yield script("jobs", "two jobs on one GPU", 45)


def run(part: Part, path: Path, environment: dict[str, str], until: float) -> str:
    """Write a part's lines to ``path``, at the latest until a moment of the monotonic clock; return how it ended."""
    start = time.monotonic()
    with open(path, "w", encoding="utf-8") as file:
        streams = {"stdout": file, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(
            [sys.executable, *part.command], cwd=ROOT, env=environment, start_new_session=True, **streams
        )
        try:
            ended = "done" if process.wait(until - start) == 0 else f"failed with {process.returncode}"
        except subprocess.TimeoutExpired:
            ended = "cut at its limit"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return f"{ended} after {time.monotonic() - start:.0f} s"


def follow(path: Path, ended: Future[str]) -> str:
    """Print the lines of a part as they are written, and return how it ended."""
    with open(path, encoding="utf-8") as file:
        while True:
            last = ended.done()
            print(file.read(), end="", flush=True)
            if last:
                return ended.result()
            time.sleep(0.2)


def machine() -> Iterator[str]:
    """Yield the lines about the machine."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    with suppress(FileNotFoundError):
        yield f"GPU: {subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()}"
    model = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    yield f"CPU: {model.partition(': ')[2]}, {len(os.sched_getaffinity(0))} cores"
    found = [f"Python {platform.python_version()}"]
    for name in THERE:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    yield ", ".join(found)


def main() -> None:
    """Run all parts; end with 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="perf/gpu.sh", description="Measure everything that only a GPU can show.")
    parser.add_argument("--dry-run", action="store_true", help="on a CPU with small shapes: figures mean nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "build/gpu", metavar="FOLDER", help="for the figures")
    given = parser.parse_args()
    if not given.dry_run:
        command = [sys.executable, "-c", "import torch; torch.zeros(1).cuda()"]
        tried = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if tried.returncode:
            reason = tried.stderr.strip().splitlines()[-1]
            sys.exit(f"torch can use no GPU here ({reason}); --dry-run goes the same way on a CPU")
    environment = os.environ | ALWAYS | (DRY if given.dry_run else {})
    given.out.mkdir(parents=True, exist_ok=True)
    summary = list(machine())
    print(*summary, sep="\n", flush=True)
    ordered = list(parts())
    enough_s = 3600 if given.dry_run else 0
    limits = accumulate((part.limit_s for part in ordered), initial=time.monotonic() + enough_s)
    paths = [given.out / f"{part.name}.txt" for part in ordered]
    for path in paths:
        path.write_text("")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) if given.dry_run else 1) as pool:
        runs = [
            pool.submit(run, part, path, environment, until)
            for part, path, until in zip(ordered, paths, islice(limits, 1, None), strict=True)
        ]
        for part, path, ended in zip(ordered, paths, runs, strict=True):
            print(f"\n== {part.title}", flush=True)
            summary.append(f"{part.title}: {follow(path, ended)}")
            (given.out / "summary.txt").write_text("\n".join([*summary, ""]), encoding="utf-8")
    print("", *summary, f"figures: {given.out}", sep="\n")
    sys.exit(any("failed" in line for line in summary))


if __name__ == "__main__":
    main()
