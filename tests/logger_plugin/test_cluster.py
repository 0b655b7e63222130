"""What the end of a run says of jobs that a scheduler ended, and what the next attempts request."""

import io
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.jobs import GroupJob
from snakemake.resources import GroupResources
from snakemake_interface_executor_plugins.executors.base import AbstractExecutor, SubmittedJobInfo

from snakemake_logger_plugin_stepline import cluster
from snakemake_logger_plugin_stepline.run import Run
from stepline.io import write_text

BACKBONES = "one", "two", "three"
LOG = ".snakemake/slurm_logs/group_extract/17.log"
ERROR = "2026-01-01 00:00:00,000 ERROR error: weights of one are of another network\n"
FAILED = "SLURM-job '17' failed, SLURM status is: '{}'. For further error details see the cluster/cloud log"
SBATCH = """SLURM sbatch failed. The error message was 'sbatch: error: Memory specification can not be satisfied
sbatch: error: Batch job submission failed: Requested node configuration is not available'.
    sbatch call:
        sbatch --mem 90000
"""
REQUESTS = {"mem_mb": 3000, "runtime": 70, "tmpdir": "/tmp"}


class _Job:
    """One of Snakemake's jobs, on a data set by a backbone; its errors go to a run."""

    def __init__(self, run: Run, number: int) -> None:
        self.run, self.number, self.rule = run, number, SimpleNamespace(name="extract")
        self.wildcards, self.resources = [BACKBONES[number]], REQUESTS
        self.log = f"logs/extract/{BACKBONES[number]}.log"

    def is_group(self) -> bool:
        return False

    def start(self) -> None:
        said = {"jobid": self.number, "rule_name": "extract", "rule_msg": self.wildcards[0], "reason": ""}
        of = {"dataset": "mine", "shard": "000"}
        self.run.start(said | {"wildcards": of, "log": [self.log], "input": [], "output": []})

    def log_error(self, msg: str, aux_logs: list[str], **aux: Any) -> None:
        self.run.fail({"jobid": self.number, "rule_msg": msg, "log": [self.log, *aux_logs], "aux": aux})


@pytest.fixture
def run() -> Run:
    made = Run(io.StringIO(), dry=False)
    made.plan({"extract": len(BACKBONES)})
    return made


@pytest.fixture
def exceeded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[tuple[str, tuple[str, ...], str]]]:
    monkeypatch.setattr(AbstractExecutor, "print_job_error", None)
    monkeypatch.setattr(GroupResources, "basic_layered", GroupResources.basic_layered)
    monkeypatch.setattr(GroupJob, "rule", None, raising=False)
    monkeypatch.setattr(cluster, "PLUGIN", "")
    found: Counter[tuple[str, tuple[str, ...], str]] = Counter()
    cluster.adapt(found)
    return found


def ending(run: Run, said: str, *logs: str, number: str | None = "17", **begun: str) -> list[str]:
    """Fail a group of all jobs, and return what the end says of them. begun: the content of the jobs' logs."""
    jobs = [_Job(run, number) for number in range(len(BACKBONES))]
    for job in jobs:
        job.start()
    for backbone, text in begun.items():
        write_text(f"logs/extract/{backbone}.log", text)
    group = SimpleNamespace(jobs=jobs, is_group=lambda: True, resources=REQUESTS)
    more = {"external_jobid": number} if number else {}
    AbstractExecutor.print_job_error(None, SubmittedJobInfo(group), said, [*logs], **more)  # type: ignore[arg-type]
    run.end()
    lines: list[str] = run.screen._stream.getvalue().splitlines()  # type: ignore[attr-defined]
    return lines[lines.index("failed: 3 jobs") + 1 : -2]


def test_a_refusal_has_the_words_of_sbatch_and_the_request(run: Run, exceeded: object) -> None:
    [line] = ending(run, SBATCH, number=None)
    words = (
        "Memory specification can not be satisfied; Batch job submission failed: Requested node configuration is not"
    )
    assert line.startswith(
        f"  one; three; two: Slurm refused it: {words} available (requested: mem_mb=3000, runtime=70)"
    )


@pytest.mark.parametrize(
    ("state", "text", "request_"),
    [
        ("TIMEOUT", "it reached its time limit of 70 minutes: {}", "runtime"),
        ("OUT_OF_MEMORY", "it used more memory than its 3000 MB: {}", "mem_mb"),
        ("CANCELLED", "it was cancelled", ""),
        ("NODE_FAIL", "its node failed", ""),
    ],
)  # fmt: skip
def test_a_state_is_told_in_words_and_counts_as_too_low_a_request(
    run: Run, exceeded: Counter[tuple[str, tuple[str, ...], str]], state: str, text: str, request_: str
) -> None:
    write_text(LOG, "srun: error\n")
    text = text.format(f"allow more with --resources {request_}=N and --set-resources extract:{request_}=N")
    assert ending(run, FAILED.format(state), str(Path(LOG).absolute()), one="INFO loading\n") == [
        f"  one; three; two: {text} (Slurm job 17, logs/extract/one.log, {LOG})"
    ]
    assert exceeded == {("extract", (backbone,), request_): 1 for backbone in BACKBONES}


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=5.batch. Some of the step tasks have been OOM Killed.",
        "slurmstepd-n1: error: StepId=25.0 exceeded memory limit (3020652544 > 2831155200), being killed",
        "srun: error: n2: task 0: Out Of Memory",
    ],
)
def test_slurms_log_tells_of_memory_where_the_state_does_not(
    run: Run, exceeded: Counter[tuple[str, tuple[str, ...], str]], line: str
) -> None:
    write_text(LOG, f"Building DAG of jobs...\n{line}\n")
    assert ending(run, FAILED.format("FAILED"), LOG)[0].startswith(
        "  one; three; two: it used more memory than its 3000 MB"
    )
    assert exceeded["extract", ("two",), "mem_mb"] == 1


def test_a_gpu_that_is_out_of_memory_is_no_reason_for_more_memory(
    run: Run, exceeded: Counter[tuple[str, tuple[str, ...], str]]
) -> None:
    write_text(LOG, "torch.OutOfMemoryError: CUDA out of memory\n")
    ending(run, FAILED.format("FAILED"), LOG, one=ERROR)
    assert not exceeded["extract", ("one",), "mem_mb"]


def test_jobs_of_a_group_that_did_not_fail_themselves_name_the_one_that_did(run: Run, exceeded: object) -> None:
    assert ending(run, FAILED.format("FAILED"), one=ERROR, two="2026-01-01 00:00:00,000 INFO done\n") == [
        "  one: weights of one are of another network (Slurm job 17, logs/extract/one.log)",
        "  three; two: not done: one failed first, in the same job",
    ]


def test_the_last_job_of_a_killed_group_is_the_killed_one(run: Run, exceeded: object) -> None:
    killed, other = ending(run, FAILED.format("FAILED"), two="2026-01-01 00:00:00,000 INFO loading two\n")
    assert killed.startswith(
        "  two: it ended without a message: its process was killed, or memory or the disk was full, after"
    )
    assert other == "  one; three: not done: two failed first, in the same job"


def test_a_message_without_a_state_is_printed(run: Run, exceeded: object) -> None:
    said = "Unknown job stepline-9. Has the job been deleted manually?For further error details see the cloud log"
    line = "  one; three; two: Unknown job stepline-9. Has the job been deleted manually? (Kubernetes job stepline-9)"
    assert ending(run, said, number="stepline-9") == [line]


def test_an_error_before_the_submission_of_a_group_ends_the_group(run: Run, exceeded: object) -> None:
    executor = pytest.importorskip("snakemake_executor_plugin_slurm").Executor
    said: list[str] = []
    of_executor = SimpleNamespace(
        logger=logging.getLogger("test"), _report_job_error_threadsafe=lambda _, message: said.append(message)
    )
    group = GroupJob.__new__(GroupJob)
    group.groupid, group.jobs = "extract.mine.000", []
    executor.run_job(of_executor, group)
    assert said == [
        "Job submission failed with exception: 'types.SimpleNamespace' object has no attribute 'slurm_logdir'"
    ]


def test_an_account_that_does_not_exist_is_one_line(run: Run, exceeded: object) -> None:
    said = "The given account a appears to be invalid. Available accounts:\nb, c"
    assert ending(run, said, number=None) == [f"  one; three; two: {' '.join(said.split())}"]


def test_a_group_requests_no_more_time_than_the_limit(exceeded: object, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [SimpleNamespace(resources={"runtime": 40, "_cores": 2}, pipe_group=None) for _ in range(3)]
    limits = {"_cores": 2, "runtime": 60}
    constraints = SimpleNamespace(get=lambda name: SimpleNamespace(value=limits.get(name)))

    def runtime() -> int:
        found: dict[str, int] = GroupResources.basic_layered(
            toposorted_jobs=[jobs], constraints=constraints, run_local=False, additive_resources=["runtime"]
        )
        return found["runtime"]

    assert runtime() == 60
    limits["runtime"] = 1440
    assert runtime() == 120
