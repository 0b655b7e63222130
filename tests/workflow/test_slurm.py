"""A run on a Slurm of two nodes, on which much goes wrong: its results are those of a run on one machine."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

import pytest

from stepline.backbones.histogram import HistogramSpec
from tests.conftest import ROOT, snakemake, unavailable
from tests.slurm import NODES, Job, Slurm, lacking, running
from tests.workflow.runs import rows

pytestmark = pytest.mark.slow
BACKBONE = """
import os
import time

from stepline.spec import ClipSpec

SPEC = ClipSpec(
    name="colours",
    label="grid",
    revision=1,
    architecture="file",
    weights=(),
    licence="Apache-2.0",
    fps=1,
    num_frames=1,
    hop=1,
    steps=(("short_side", 64, "pil_bicubic"), ("centre_crop", 64, "round")),
    mean=(0.5, 0.5, 0.5),
    std=(0.5, 0.5, 0.5),
    output="colours",
    dimension=48,
)


def load(spec, files):
    from torch import nn

    def note(what):
        job, gpu = os.environ.get("SLURM_JOB_ID", ""), os.environ.get("CUDA_VISIBLE_DEVICES", "")
        with open("seen.csv", "a") as file:
            print(job, gpu, what, sep=",", file=file)

    class Colours(nn.Sequential):
        def forward(self, clips):
            note(len(clips))
            time.sleep(0.3)
            return super().forward(clips)

    note(0)
    return Colours(nn.AdaptiveAvgPool3d((1, 4, 4)), nn.Flatten())
"""
"""A network that says on which GPU it would be, and how many rows it computes, slowly."""
TOY = {
    "tables.yaml": """
        title: Toy
        releases: [v1]
        entries:
          whole: {kind: whole}
        tables:
          table1:
            title: Memory
            metrics: [length]
            lines:
              - {entry: whole, method: Whole video, setting: baseline}
        """,
    "__init__.py": '''
        """Toy: the length of videos, found with more memory than a job has at first."""

        import time
        from dataclasses import dataclass
        from types import SimpleNamespace

        from stepline.benchmark import DURATION, Benchmark, Kind, Method, Metric, Prediction, Values
        from stepline.datasets.release import Released, ReleaseFile
        from stepline.io import read_json
        from stepline.mirror import Wanted
        from stepline.runs.inputs import Inputs


        def release_files(release):
            """The list of videos."""
            return (ReleaseFile(path="videos.json", wanted=Wanted(path="toy/videos.json")),)


        @dataclass(frozen=True, kw_only=True)
        class Found(Prediction):
            """A length."""

            length_s: float


        class Videos(Inputs):
            def load(self, split):
                found = read_json(self.benchmark.released.release_file(self.release, "videos.json"))
                return [SimpleNamespace(video=video, length_s=length_s) for video, length_s in found.items()]


        class Whole(Method):
            def predict(self, inputs, fits):
                held = b"x" * (1300 << 20)
                time.sleep(3)
                for each in inputs.used("test"):
                    yield Found(seed=0, split="test", video=each.video, length_s=each.length_s)


        class Toy(Benchmark):
            """Videos."""

            kinds = {"whole": Kind(method=":Whole", sees=("duration",))}
            metrics = {"length": Metric(title="Length")}
            sees = (DURATION,)
            prediction = Found
            released = Released(name="toy", title="Toy", videos=tuple, known=("v1",), release_files=release_files)

            def inputs(self, job):
                return Videos(self, job)

            def values(self, inputs, made):
                import numpy as np

                lengths = np.array([each.length_s for each in made])
                about = {"videos": [each.video for each in made], "counts": {"n_listed": len(made)}}
                return {"length": Values(values=lengths, **about)}


        BENCHMARK = Toy
        ''',
}
"""A benchmark whose one method takes 1,300 MB, where a job without networks asks for 1,000."""
ELSEWHERE = (
    *("2a-random", "2a-linear-in-time", "2a-linear-after-preview", "2a-order-alone", "2a-sample-rank"),
    "2a-histogram-zero-shot",
    *("2b-random", "2b-equal-segments", "2b-histogram-tw-finch"),
)
MINE = {
    "table": "2a",
    "method": "Colours",
    "modality": "V",
    "setting": "zero-shot",
    "kind": "zero-shot",
    "encoder": "colours",
    "inputs": ["window"],
    "protocol": "beyond",
}
CONFIGURATION = {
    "shard_hours": 0.06,
    "features": {"device": "cpu", "batch_size": 8},
    "backbones": {"colours": {"path": "colours.py"}},
    "benchmarks": {"toy": "toy"},
    "toy": {},
    "demo": {
        "releases": ["demo"],
        "tables": ["table2"],
        "transcripts": "asr",
        "text_encoders": [],
        "video_encoders": ["histogram", "colours"],
        "contexts_s": {"step_recognition": [4], "intra-video_retrieval": []},
        "entries": {"2a-colours": MINE} | {name: {"target": "tableA9"} for name in ELSEWHERE},
    },
}
SITE = """
slurm-status-command: squeue
slurm-keep-successful-logs: true
slurm-init-seconds-before-status-checks: 1
seconds-between-status-checks: 1
default-resources:
  slurm_partition: main
set-resources:
  extract:
    gpu: 1
"""
"""A user's own profile."""
LONGEST_S = 73
"""More than the length of a video of the embedded study, of which each second is a row."""
TABLES = "results/demo/table2.csv", "results/toy/table1.csv"
SHARDS = "000", "001"
HISTOGRAM = Path("features/histogram", HistogramSpec().id)
"""Features that no line needs; a shard's are made in the Slurm job of those that one does."""


@dataclass(frozen=True)
class Run:
    """A run in ``folder`` whose Slurm jobs were ``jobs``.

    drained: the node, and the jobs that were there or anywhere else by then. ended: the job that was told to end.
    alone: the folder of a run without Slurm.
    """

    folder: Path
    alone: Path
    jobs: list[Job]
    drained: str
    before: set[str]
    ended: str

    def of(self, comment: str) -> list[Job]:
        """Return the jobs whose comment begins so, in their order."""
        return [job for job in self.jobs if job.comment.startswith(comment)]


@dataclass(frozen=True)
class Seen:
    """What the network noted: its Slurm job, its GPU, and how many rows it computed at once."""

    job: str
    gpu: str
    rows: int


def seen(folder: Path) -> list[Seen]:
    """Return all notes of a run in ``folder``."""
    notes = folder / "seen.csv"
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [Seen(job, gpu, int(rows)) for job, gpu, rows in (line.split(",") for line in lines)]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    if reason := lacking():
        unavailable(reason)
    pytest.importorskip("snakemake_executor_plugin_slurm")
    with running() as slurm:
        yield slurm


@pytest.fixture(scope="module")
def run(slurm: Slurm, demo_mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    base = tmp_path_factory.mktemp("slurm")
    mirror = base / "mirror"
    (mirror / "toy").mkdir(parents=True)
    (mirror / "toy/videos.json").write_text('{"a": 100, "b": 50}')
    (mirror / "demo").symlink_to(demo_mirror / "demo")
    folder, alone = base / "run", prepare(base / "alone")
    (base / "site").mkdir()
    (base / "site/config.yaml").write_text(SITE)
    targets = *TABLES, *(str(HISTOGRAM / f"manifests/demo.{shard}.json") for shard in SHARDS)
    options = ["--cores", "1", "--configfile", "config.json", "--", *targets]  # a node has place for two such jobs
    profiles = ["--workflow-profile", ROOT / "workflow/profiles/slurm", "--profile", base / "site"]
    snakemakes = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", *profiles, *options]
    command = ["setpriv", "--pdeathsig", "KILL", *snakemakes]  # a killed test leaves nothing
    begun = snakemake("--until", "videos", "release", *options, folder=alone, STEPLINE_MIRROR=str(mirror))
    assert begun.returncode == 0, begun.stderr
    shutil.copytree(alone, folder, symlinks=True)
    environment = os.environ | slurm.environment | {"STEPLINE_MIRROR": str(mirror), "OMP_NUM_THREADS": "1"}
    with (
        ThreadPoolExecutor(1) as beside,
        open(base / "log", "w+") as log,
        subprocess.Popen(command, cwd=folder, env=environment, stderr=log) as process,
    ):
        local = beside.submit(snakemake, *options, folder=alone, STEPLINE_MIRROR=str(mirror))
        try:
            drained, before, ended = trouble(slurm, folder, process)
        except BaseException:
            process.kill()
            raise
        finally:
            process.wait()
            log.seek(0)
            print(log.read(), *slurm.jobs(), sep="\n")  # shown where a test fails
    assert process.returncode == 0
    assert local.result().returncode == 0, local.result().stderr
    return Run(folder, alone, slurm.jobs(), drained, before, ended)


def trouble(slurm: Slurm, folder: Path, process: subprocess.Popen[bytes]) -> tuple[str, set[str], str]:
    """Amid the first shard's second video drain the node, and end the job as its time limit would."""
    while process.poll() is None:
        time.sleep(0.1)
        computed = Counter[str]()
        for note in seen(folder):
            computed[note.job] += note.rows
        beyond = {job for job, rows in computed.items() if rows > LONGEST_S + 16}
        for job in slurm.jobs() if beyond else []:
            if job.comment.startswith("rule_extract.demo.000") and job.number in beyond:
                slurm("scontrol", "update", f"NodeName={job.node}", "State=DRAIN", "Reason=test")
                slurm("scancel", job.number)
                return job.node, {job.number for job in slurm.jobs() if job.state != "PENDING"}, job.number
    raise AssertionError("the run ended before its features")


def prepare(folder: Path) -> Path:
    """Return a new folder with the configuration and all that it names."""
    (folder / "toy").mkdir(parents=True)
    (folder / "colours.py").write_text(BACKBONE)
    for name, content in TOY.items():
        (folder / "toy" / name).write_text(dedent(content))
    (folder / "config.json").write_text(json.dumps(CONFIGURATION))
    return folder


@pytest.mark.parametrize("table", TABLES)
def test_the_tables_are_those_of_a_run_without_slurm(run: Run, table: str) -> None:
    assert (run.folder / table).read_bytes() == (run.alone / table).read_bytes()
    assert all(row["value"] for row in rows(run.folder, table) if row["method"] in ("Colours", "Whole video"))


@pytest.mark.parametrize("shard", SHARDS)
def test_the_features_are_those_of_a_run_without_slurm(run: Run, shard: str) -> None:
    stored, same = (folder / HISTOGRAM / "demo" / shard / "features/c/0/0" for folder in (run.folder, run.alone))
    assert stored.read_bytes() == same.read_bytes()


def test_a_job_that_lacks_memory_is_given_more(run: Run) -> None:
    assert [(job.state, job.memory) for job in run.of("rule_heads")] == [("FAILED", "1000M"), ("COMPLETED", "2000M")]


def test_nothing_starts_on_a_drained_node(run: Run) -> None:
    later = {job.node for job in run.jobs if job.number not in run.before}
    assert later == {*NODES} - {run.drained}


def test_a_job_that_is_told_to_end_goes_on_where_it_was(run: Run) -> None:
    first, second = run.of("rule_extract.demo.000")
    assert first.number == run.ended
    assert (first.state, second.state) == ("CANCELLED", "COMPLETED")
    assert first.memory == second.memory
    computed = {job: sum(note.rows for note in seen(run.folder) if note.job == job.number) for job in (first, second)}
    assert all(computed.values())
    assert sum(note.rows for note in seen(run.folder)) == sum(note.rows for note in seen(run.alone))


def test_features_of_a_shard_hold_one_gpu_at_a_time(run: Run) -> None:
    for shard in SHARDS:
        assert all(one.end <= another.start for one, another in pairwise(run.of(f"rule_extract.demo.{shard}")))


def test_a_group_starts_snakemake_twice(run: Run) -> None:
    [log] = run.folder.glob(".snakemake/slurm_logs/group_extract.demo.001_extract/*.log")
    assert log.read_text().count("Building DAG of jobs...") == 2


def test_jobs_beside_each_other_have_gpus_of_their_own(run: Run) -> None:
    gpus = {note.job: note.gpu for note in seen(run.folder)}
    one, other = run.of("rule_extract.demo.000")[0], run.of("rule_extract.demo.001")[0]
    assert one.node == other.node
    assert one.start < other.end
    assert other.start < one.end
    assert {gpus[one.number], gpus[other.number]} == {"0", "1"}
