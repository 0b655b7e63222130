"""Why a scheduler ended a job: for the end of a run, and for what the job's next attempt requests."""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from snakemake.jobs import GroupJob  # type: ignore[import-untyped]
from snakemake.resources import GroupResources  # type: ignore[import-untyped]
from snakemake_interface_executor_plugins.executors.base import AbstractExecutor, SubmittedJobInfo  # type: ignore[import-untyped]
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor  # type: ignore[import-untyped]
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface  # type: ignore[import-untyped]

from stepline.slurm import PLUGIN, beyond

STATE = re.compile(r"status is: '(\w+)")
REFUSAL = re.compile(r"The error message was '(.*?)'\.\n", re.DOTALL)
MEMORY = re.compile(
    r"^(slurmstepd|srun)\S*: error: .*(oom.kill|out of memory|exceeded .*memory limit)", re.IGNORECASE | re.MULTILINE
)
"""What Slurm writes into the log of a job that used too much memory. The job's state may be FAILED."""
EXCEEDED = {"OUT_OF_MEMORY": "mem_mb", "OOMKilled": "mem_mb", "TIMEOUT": "runtime"}
"""State -> the request that was too low."""
STATES = {
    "OUT_OF_MEMORY": "it used more memory than its {mem_mb} MB",
    "OOMKilled": "it used more memory than its {mem_mb} MB",
    "TIMEOUT": "it reached its time limit of {runtime} minutes",
    "DEADLINE": "its deadline passed",
    "CANCELLED": "it was cancelled",
    "NODE_FAIL": "its node failed",
    "Evicted": "its node removed it",
    "BOOT_FAIL": "its node did not boot",
    "PREEMPTED": "a job with a higher priority took its place",
}
"""State -> text."""
DETAILS = "For further error details"
"""The begin of what Snakemake adds to each message."""
REQUESTS = "slurm_partition", "mem_mb", "runtime", "gpu", "_cores"
"""The resources that limit where a job may run."""


@dataclass(frozen=True)
class End:
    """How an executor says that a job, or a group of jobs, ended.

    number: the scheduler's number of the job. state: its state, in the scheduler's word. said: a message. log: the path
    of the scheduler's log. Each is "" if unknown. requests: the resources that it requested.
    """

    number: str = ""
    state: str = ""
    said: str = ""
    log: str = ""
    requests: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "End":
        """Return the end in Snakemake's event JOB_ERROR, as ``adapt`` completes it."""
        aux, log = said.get("aux", {}), next(iter(said.get("log", ())[1:]), "")
        known = aux.get("external_jobid") or "", aux.get("state", ""), said.get("rule_msg") or ""
        return cls(*known, log, aux.get("requests", {}))

    @property
    def job(self) -> str:
        """The scheduler's job, as text."""
        return f"{'Slurm' if self.number.isdigit() else 'Kubernetes'} job {self.number}"

    def reason(self, rule: str) -> str:
        """Return why the job of a rule ended, and what to do; "" if only its own log can tell."""
        if refused := REFUSAL.search(self.said):
            words = "; ".join(line.removeprefix("sbatch: error: ") for line in refused[1].splitlines())
            asked = ", ".join(f"{name.strip('_')}={value}" for name, value in self.requests.items())
            return f"Slurm refused it: {words} (requested: {asked}): request other resources, see docs/clusters.md"
        if not self.state:
            return " ".join(self.said.partition(DETAILS)[0].split())
        text = STATES.get(self.state, "").format_map(self.requests)
        name = EXCEEDED.get(self.state)
        return f"{text}: allow more with --resources {name}=N and --set-resources {rule}:{name}=N" if name else text


def adapt(exceeded: Counter[tuple[str, tuple[str, ...], str]]) -> None:
    """Complete what Snakemake says of jobs of a cluster and requests for groups of them.

    exceeded: counts how often the job with a rule and wildcards exceeded its request of a resource.
    """
    _tell_groups(exceeded)
    _limit_groups()
    GroupJob.rule = property(lambda group: group)  # for its name: the plugin's error if it cannot submit a group
    if plugin := sys.modules.get(PLUGIN):
        plugin.common_settings.pass_group_args = True  # else each chain of jobs in a group starts Snakemake
        _warn_of_requests(plugin.Executor)


def _tell_groups(exceeded: Counter[tuple[str, tuple[str, ...], str]]) -> None:
    """Give each job of a failed group what the executor says of the group, and count the requests that were too low."""

    def print_job_error(
        _: AbstractExecutor, failed: SubmittedJobInfo, msg: str | None = None, aux_logs: Sequence[str] = (), **aux: Any
    ) -> None:
        asked = dict(failed.job.resources.items())
        requests = {name: asked[name] for name in REQUESTS if name in asked}
        aux |= {"state": _state(msg or "", aux_logs), "requests": requests}
        for job in _members(failed.job):
            job.log_error(msg, aux_logs=[*aux_logs], **aux)
            exceeded[job.rule.name, tuple(job.wildcards), EXCEEDED.get(aux["state"], "")] += 1

    AbstractExecutor.print_job_error = print_job_error


def _limit_groups() -> None:
    """Request no more time for a group than ``--resources runtime=``, which Snakemake leaves out of account."""
    added = GroupResources.basic_layered

    def basic_layered(*, constraints: Any, **more: Any) -> Mapping[str, Any]:
        found: dict[str, Any] = added(constraints=constraints, **more)
        return found | {"runtime": min(found["runtime"], constraints.get("runtime").value or found["runtime"])}

    GroupResources.basic_layered = basic_layered


def _warn_of_requests(executor: type[RemoteExecutor]) -> None:
    """Warn of requests that no partition allows, once for the rules of a submitted job."""
    printed, warned = executor.printjob, set[str]()

    def printjob(self: RemoteExecutor, job: JobExecutorInterface) -> None:
        printed(self, job)
        rules = ", ".join(sorted({each.rule.name for each in _members(job)}))
        if rules not in warned and not self.workflow.executor_settings.partition_config:
            warned.add(rules)
            for line in beyond(dict(job.resources.items())):
                self.logger.warning(f"warning: {rules}: {line}")

    executor.printjob = printjob


def _members(job: JobExecutorInterface) -> Iterable[Any]:
    return job.jobs if job.is_group() else [job]


def _state(said: str, logs: Sequence[str]) -> str:
    """Return the state of a job by the executor's message, OUT_OF_MEMORY also by the scheduler's log."""
    for log in logs:
        with suppress(OSError):
            if MEMORY.search(Path(log).read_text(encoding="utf-8", errors="replace")):
                return "OUT_OF_MEMORY"
    state = STATE.search(said)
    return state[1] if state else ""
