"""The provenance record of a predictions file: a JSON file next to it, which no job reads."""

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
from stepline.benchmark import Benchmark, Method
from stepline.config.check import wrong
from stepline.config.schema import Schema
from stepline.errors import StoreError
from stepline.invocation import current
from stepline.io import read_json, sha256_file, write_json
from stepline.runs.inputs import Inputs

LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "transformers", "av", "opencv-python-headless")
OBJECT = {"type": "object"}
FORM: Schema = {
    "type": "object",
    "required": ["record", "options", "inputs", "releases", "invocation", "versions", "method", "stepline", "spec"],
    "properties": {
        "spec": {"type": "string"},
        "record": OBJECT | {"required": ["kind"]},
        **dict.fromkeys(("options", "inputs", "versions"), OBJECT),
        "method": OBJECT | {"required": ["module", "source"]},
        "stepline": OBJECT | {"required": ["version", "commit"]},
        "releases": OBJECT
        | {"additionalProperties": OBJECT | {"required": ["origin", "files"], "properties": {"files": OBJECT}}},
        "invocation": OBJECT
        | {
            "additionalProperties": False,
            "properties": {
                "snakefile": {"type": "string"},
                "configfiles": {"type": "array", "items": {"type": "string"}},
                "overrides": OBJECT,
            },
        },
    },
}
"""The schema of the parts of a record that are read."""


def write_record(inputs: Inputs[Any], method: Method[Any, Any]) -> None:
    """Write the provenance of a job's predictions: spec, method, inputs with sha256, releases, options, versions."""
    benchmark, job = inputs.benchmark, inputs.job
    shown = benchmark.named_options(job.entry, job.release)
    write_json(
        benchmark.predictions(job).with_suffix(".json"),
        {
            "spec": inputs.spec,
            "record": benchmark.record(job),
            "options": {key: option.value for key, option in shown.items()},
            "method": {"module": type(method).__module__, "source": benchmark.source(job.entry.kind)},
            "inputs": {str(path): sha256_file(path) for path in benchmark.predict_inputs(job) if path.is_file()},
            "releases": {each: _release(benchmark, each) for each in benchmark.reads(job)},
            "invocation": asdict(current()),
            "stepline": {"version": stepline.__version__, "commit": _commit()},
            "versions": {"python": platform.python_version(), **_versions(), "conda": _conda()},
        },
    )


def read_record(path: Path) -> dict[str, Any]:
    """Return a record; raise StoreError if it is damaged or was written in another format by another version."""
    made: dict[str, Any] = read_json(path)
    if error := wrong(made, FORM):
        predictions = str(path.with_suffix(".parquet"))
        again = current().command(predictions, {}, "--forcerun", predictions)
        raise StoreError(
            f"{path} is damaged or from another version of Stepline ({error}): compute it again with `{again}`"
        )
    return made


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


def _conda() -> str:
    """Return the folder of Snakemake's conda environment, named by the digest of its file; "no" without one."""
    return Path(os.environ.get("CONDA_PREFIX", "")).name if os.environ.get("STEPLINE_CONDA") else "no"


@cache
def _commit() -> str:
    """Return the commit of a checkout, with " and local changes" if files are changed; "" for an installed package."""
    folder = Path(stepline.__file__).resolve().parents[2]  # jobs import through a link
    if not (folder / ".git").exists() or not shutil.which("git"):
        return ""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(folder), "describe", "--always", "--dirty= and local changes", "--abbrev=40", "--exclude=*"],
        capture_output=True,
        text=True,
        check=False,
        env=environment | {"GIT_OPTIONAL_LOCKS": "0"},
    )
    return done.stdout.strip()
