"""What made a file of predictions: a JSON beside it, which no job reads."""

import os
import platform
import shutil
import subprocess
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import stepline
from stepline import paths
from stepline.benchmark import Benchmark, Job, Method
from stepline.invocation import current
from stepline.io import read_json, sha256_file, write_json
from stepline.runs.inputs import Inputs

LIBRARIES = ("numpy", "scikit-learn", "torch")


def record_path(study: str, job: Job) -> Path:
    """Return where the record of a job's predictions stands."""
    return paths.predictions(study, job.release, job.entry.id, job.context).with_suffix(".json")


def write_record(inputs: Inputs[Any], method: Method[Any, Any]) -> None:
    """Write what made the predictions of a job: spec, method, inputs by sha256, releases, options, versions."""
    benchmark, job = inputs.benchmark, inputs.job
    shown = benchmark.shown_options(job.entry, job.release)
    write_json(
        record_path(benchmark.name, job),
        {
            "spec": inputs.spec,
            "record": benchmark.record(job),
            "options": {key: option.value for key, option in shown.items()},
            "method": {"module": type(method).__module__, "source": benchmark.source(job.entry.kind)},
            "inputs": {str(path): sha256_file(path) for path in benchmark.predict_inputs(job) if path.is_file()},
            "releases": {each: _release(benchmark, each) for each in benchmark.reads(job)},
            "invocation": asdict(current()),
            "stepline": {"version": stepline.__version__, "commit": _commit()},
            "versions": {"python": platform.python_version(), **_versions()},
        },
    )


def _release(benchmark: Benchmark[Any], name: str) -> dict[str, Any]:
    files = read_json(benchmark.release_manifest(name))["files"]
    return {"origin": benchmark.released.origin(name), "files": files}


def _versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


@cache
def _commit() -> str:
    """Return the commit of a checkout, with ``-dirty`` where files are changed; "" of an installed package."""
    folder = Path(stepline.__file__).parents[2]
    if not (folder / ".git").exists() or not shutil.which("git"):
        return ""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
        capture_output=True,
        text=True,
        check=False,
        env=environment | {"GIT_OPTIONAL_LOCKS": "0"},
    )
    return done.stdout.strip()
