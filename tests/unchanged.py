"""What users have that a change of structure must leave as it is, as text files to be compared with `diff -r`.

    python -m tests.unchanged FOLDER

runs the demo, the five studies on the public releases with the lines that need no features, and a data set of one's
own, each in ``FOLDER/work/``, and writes to ``FOLDER/record/`` for each of them:

- ``jobs.txt``: each job of the configuration as Snakemake sees it: its inputs, outputs, params, resources and command;
- ``supplied.txt``: the same if nothing that an entry needs were missing, so that all entries have jobs;
- ``files.txt``: the sha256 of each file of features and of results; ``specs.txt``: each spec's record;
- ``sources.txt``: the digest of the source in each record; ``tables/``: each table.

Run it in a checkout of before and in one of after, then ``diff -r before/record after/record``.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from stepline.io import write_bytes, write_text
from tests.chaos.study import clip
from tests.workflow.runs import network

ROOT = Path(__file__).parents[1]
STUDIES: dict[str, Any] = {
    "spacewalk": {
        "releases": ["v2"],
        "text_encoders": ["tfidf"],
        "contexts_s": {"step_recognition": [60], "intra-video_retrieval": [10]},
        "subset": {"fraction": 0.3},
        "last_layer": {"seeds": [0], "epochs": 2},
    },
    "pss": {},
    "oepp": {},
    "hirest": {},
    "htstep": {},
}
OWN: dict[str, Any] = {
    "shard_hours": 1e-6,
    "datasets": {"mine": {"videos": "videos", "backbones": ["histogram", "one"]}},
    "backbones": {"one": {"path": "one.py"}},
}
RUNS = {"demo": ROOT / "config.demo.yaml", "studies": Path("studies.json"), "own": Path("own.json")}
LEFT_OUT = {".snakemake", ".stepline", "logs", "videos"}
"""Folders of a work folder with what only one run needs, and the user's videos."""


def prepare(name: str, folder: Path, public: Path) -> dict[str, str]:
    """Write the inputs of a run to its work folder, and return what its environment names."""
    folder.mkdir(parents=True)
    if name == "demo":
        subprocess.run(
            [sys.executable, "-m", "stepline", "demo", "--mirror", "mirror", "--truth", "results/demo/truth.json"],
            cwd=folder, check=True,
        )  # fmt: skip
        dated(folder / "mirror")
        return {"STEPLINE_MIRROR": str(folder / "mirror")}
    if name == "studies":
        (folder / RUNS[name]).write_text(json.dumps(STUDIES))
        return {"STEPLINE_MIRROR": str(public)}
    (folder / RUNS[name]).write_text(json.dumps(OWN))
    (folder / "one.py").write_text(network("one", frames=2))
    for number in (1, 2, 3):
        write_bytes(folder / f"videos/{number}.mp4", clip(number))
    dated(folder / "videos")
    return {"STEPLINE_MIRROR": ""}


def dated(folder: Path) -> None:
    """Set the times of the files in a folder, which are part of the params of jobs."""
    for path in folder.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


def jobs(config: Path, supplied: bool) -> list[dict[str, Any]]:
    """Return the jobs of a configuration in the current folder, all of them as if nothing had been computed.

    supplied: as if nothing that an entry needs were missing.
    """
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, Quietness, ResourceSettings

    if supplied:
        supply()
    with SnakemakeApi(OutputSettings(dryrun=True, quiet={Quietness.ALL})) as api:
        made = api.workflow(
            resource_settings=ResourceSettings(cores=2),
            config_settings=ConfigSettings(config={}, configfiles=[config]),
            snakefile=ROOT / "Snakefile",
        )
        dag = made.dag(DAGSettings(forceall=True))
        workflow = dag.workflow_api._workflow
        workflow._prepare_dag(forceall=True, ignore_incomplete=True, lock_warn_only=True)
        workflow._build_dag()
        return sorted(map(described, workflow.dag.jobs), key=canonical)


def supply() -> None:
    """Let weights and imported features be there, as files that hold their own names, and nothing else be missing."""
    from stepline.backbones import weights
    from stepline.backbones.named import NAMED
    from stepline.benchmark.plan import Benchmark
    from stepline.footage import Footage

    def imported(footage: Footage, name: str) -> list[Path]:
        path = Path("features", name, "supplied/spec.json")
        write_text(path, json.dumps([name, footage.dataset.name]))
        return [path]

    Benchmark.missing = lambda *_: ()  # type: ignore[method-assign]
    Footage._imported = imported  # type: ignore[method-assign]
    weights.check = lambda *_: None
    for name in (*weights.WEIGHTS, *NAMED):
        each = weights.weights_of(name)
        for file in each.files:
            write_text(Path("weights", each.name, file.name), f"{name} {file.name}")


def described(job: Any) -> dict[str, Any]:
    """Return what decides a job of Snakemake's."""
    kept = {name: value for name, value in job.resources.items() if not name.startswith("_") and name != "tmpdir"}
    return {
        "rule": job.rule.name,
        "output": sorted(map(str, job.output)),
        "input": sorted(map(str, job.input)),
        "params": {name: str(value) for name, value in job.params.items()},
        "resources": kept,
        "threads": job.threads,
        "priority": job.rule.priority if isinstance(job.rule.priority, int) else "by the job",
        "conda": str(job.conda_env.file) if job.conda_env else "",
        "command": job.shellcmd,
        "message": job.message,
    }


def canonical(value: Any) -> str:
    """Return a value as text, see ``plain``."""
    return plain(json.dumps(value, sort_keys=True, indent=1, default=str).encode(), Path.cwd()).decode()


def plain(content: bytes, folder: Path) -> bytes:
    """Return content without the paths of the checkout and of the work folder."""
    return content.replace(os.fsencode(ROOT), b"CHECKOUT").replace(os.fsencode(folder), b"WORK")


def record(name: str, folder: Path, kept: Path) -> None:
    """Write what a work folder has to the folder ``kept``."""
    kept.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.unchanged", "--jobs", name]
    with TemporaryDirectory() as copy, open(kept / "jobs.txt", "w") as now, open(kept / "supplied.txt", "w") as then:
        subprocess.run(command, cwd=folder, stdout=now, check=True)
        shutil.copytree(folder, copy, dirs_exist_ok=True, symlinks=True)
        subprocess.run([*command, "--supplied"], cwd=copy, stdout=then, check=True)
    paths = sorted(
        path for path in folder.rglob("*") if path.is_file() and not LEFT_OUT & {*path.relative_to(folder).parts}
    )
    files, specs, sources = [], [], []
    for path in paths:
        at, content = path.relative_to(folder), plain(path.read_bytes(), folder)
        if at.parts[0] == "results" and path.suffix in (".csv", ".md"):
            write_bytes(kept / "tables" / at.relative_to("results"), content)
        if path.name in ("spec.json", "current.json"):
            specs.append(f"{at} {content.decode().strip()}")
        if at.parts[0] == "results" and path.suffix == ".json":  # records also have versions and times
            sources += [f"{at} {digest}" for digest in digests(json.loads(content))]
        elif "availability" not in at.parts:  # with the times of links
            files.append(f"{hashlib.sha256(content).hexdigest()} {at}")
    for file, lines in (("files", files), ("specs", specs), ("sources", sources)):
        (kept / f"{file}.txt").write_text("".join(f"{line}\n" for line in lines))


def digests(value: Any) -> Iterator[str]:
    """Yield the digests of sources in a record."""
    if isinstance(value, dict):
        for key, below in value.items():
            if key == "source" and isinstance(below, str):
                yield below
            yield from digests(below)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="tests.unchanged", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--public", type=Path, default=ROOT.parent / "shared/data", help="the public releases")
    parser.add_argument("--only", nargs="+", choices=RUNS, default=[*RUNS])
    parser.add_argument("--jobs", choices=RUNS, help="print the jobs in this work folder")
    parser.add_argument("--supplied", action="store_true")
    asked = parser.parse_args()
    if asked.jobs:
        print(*map(canonical, jobs(RUNS[asked.jobs], asked.supplied)), sep="\n")
        return
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT / "src", ROOT)))
    for name in asked.only:
        folder = (asked.folder / "work" / name).resolve()
        os.environ |= prepare(name, folder, asked.public.resolve())
        options = f"--snakefile {ROOT}/Snakefile --cores 2 --configfile {RUNS[name]}".split()
        subprocess.run([sys.executable, "-m", "snakemake", *options], cwd=folder, check=True)
        record(name, folder, (asked.folder / "record" / name).resolve())


if __name__ == "__main__":
    main()
