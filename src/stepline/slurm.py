"""Slurm's controller: whether it responds, and which requests its partitions allow."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

PLUGIN = "snakemake_executor_plugin_slurm"
ANSWERS_IN_S = 2.0


@dataclass(frozen=True)
class Partition:
    """The most that a job may request in a partition; infinity if there is no limit.

    mem_mb, gpu: on one node. runtime: in minutes. default: whether jobs that name no partition go there.
    """

    mem_mb: float
    runtime: float
    gpu: float
    default: bool


def warnings() -> Iterator[str]:
    """Yield a warning if the plug-in is imported and no controller responds."""
    if PLUGIN not in sys.modules or not shutil.which("scontrol"):
        return
    said = _scontrol("ping", late="DOWN")
    if "DOWN" in said and "UP" not in said:
        yield (
            "Slurm's controller does not respond (scontrol ping): each start of snakemake waits 10 s for it, and no job"
            " can be submitted; if you do not use a cluster, uninstall snakemake-executor-plugin-slurm"
        )


def cpus() -> int:
    """Return the number of CPUs of the Slurm job that runs this process; 0 outside of one."""
    return int(os.environ.get("SLURM_CPUS_PER_TASK", 0))


@cache
def partitions() -> Mapping[str, Partition]:
    """Return the partitions by name; none if there is no Slurm, or no controller responds."""
    if not shutil.which("scontrol"):
        return {}
    nodes = [*_shown("node")]
    found = {}
    for each in _shown("partition"):
        name = each.get("PartitionName", "")
        of = [node for node in nodes if name in node.get("Partitions", "").split(",")]
        on_nodes = max((_number(node.get("RealMemory", "")) for node in of), default=inf)
        gpus = [re.sub(r"\(.*?\)", "", node.get("Gres", "")) for node in of]
        found[name] = Partition(
            mem_mb=min(on_nodes, _number(each.get("MaxMemPerNode", ""))),
            runtime=_minutes(each.get("MaxTime", "")),
            gpu=max((sum(map(int, re.findall(r"\bgpu(?::[^:,]+)?:(\d+)", gres))) for gres in gpus), default=inf),
            default=each.get("Default") == "YES",
        )
    return found


def beyond(requests: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line on each request that its partition does not allow, for which a job may wait for ever.

    requests: resources by Snakemake's names; one without a number is not compared.
    """
    named, known = str(requests.get("slurm_partition") or "").split(","), partitions()
    all_of = {name: each for name, each in known.items() if name in named or (named == [""] and each.default)}
    if known and named != [""] and not all_of:
        yield f"partition {', '.join(named)} does not exist: Slurm has {', '.join(known)}"
    for name in ("mem_mb", "runtime", "gpu") if all_of else ():
        most = max(getattr(each, name) for each in all_of.values())
        asked = requests.get(name)
        if isinstance(asked, int) and asked > most:
            limit = "set gpu: 0" if name == "gpu" else f"write `resources: {{{name}: {most:.0f}}}`"
            yield (
                f"{name}={asked} is requested, and partition {', '.join(all_of)} allows {most:.0f}, so the job"
                f" is refused or waits for ever: {limit} in your profile, or name another partition"
            )


def _shown(what: str) -> Iterator[dict[str, str]]:
    for line in _scontrol("show", what, "--all", "--oneliner").splitlines():
        yield dict(re.findall(r"(\S+?)=(\S*)", line))


def _scontrol(*words: str, late: str = "") -> str:
    """Return what scontrol prints. late: the result if it takes too long."""
    try:
        command = ["scontrol", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=ANSWERS_IN_S, check=False).stdout
    except subprocess.TimeoutExpired:
        return late


def _number(text: str) -> float:
    return float(text) if text.isdigit() else inf


def _minutes(text: str) -> float:
    """Return the minutes of Slurm's ``[days-]hours:minutes:seconds``."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+):(\d+)", text)
    if not found:
        return inf
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return 1440 * days + 60 * hours + minutes + seconds / 60
