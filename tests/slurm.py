"""A Slurm of two nodes on this machine, in user space: four CPUs and two GPUs that compute nothing on each node.

All of it, its configuration too, stands in one folder: what has ``SLURM_CONF`` finds it, and all else sees no Slurm.
The daemons are children of a process that ends them, and all of their jobs, when the process that started it has ended.
"""

import ctypes
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
NODES = "n1", "n2"
PROGRAMS = "munged", "slurmctld", "slurmd", "srun", "sbatch"
SYSTEM = f"{os.environ['PATH']}{os.pathsep}/usr/sbin"
STARTS_IN_S = 60
PR_SET_CHILD_SUBREAPER = 36
CONFIGURATION = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
MinJobAge=3600
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdParameters=config_overrides
KillWait=60
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 RealMemory=16000 Gres=gpu:2
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 RealMemory=16000 Gres=gpu:2
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""
SRUN = """\
#!/bin/sh
# The plug-in takes SLURM_CONF from the environment of srun.
SLURM_CONF={folder}/slurm.conf exec {srun} "$@"
"""


def lacking() -> str:
    """Return why no Slurm can be started here, or nothing."""
    if os.geteuid():
        return "Slurm is started by root alone"
    absent = [name for name in PROGRAMS if not shutil.which(name, path=SYSTEM)]
    return f"{', '.join(absent)} not found: apt-get install slurmctld slurmd slurm-client munge" if absent else ""


@dataclass(frozen=True)
class Slurm:
    """A Slurm that runs. folder: of its configuration and logs."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What makes a process see it."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": f"{self.folder / 'bin'}{os.pathsep}{SYSTEM}"}

    def __call__(self, *command: str) -> str:
        """Return what one of Slurm's commands prints."""
        environment = os.environ | self.environment
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    def jobs(self) -> list["Job"]:
        """Return all jobs in the order of their submission."""
        lines = self("squeue", "--noheader", "--states=all", "--sort=i", "--format=%i|%T|%S|%e|%N|%m|%k").splitlines()
        return [Job(*line.split("|")) for line in lines]


@dataclass(frozen=True)
class Job:
    """A job, in Slurm's words. start, end: as ``2026-01-31T12:00:00``, or N/A. comment: the plug-in's, of its rules."""

    number: str
    state: str
    start: str
    end: str
    node: str
    memory: str
    comment: str


@contextmanager
def running() -> Iterator[Slurm]:
    """Start a Slurm, and end it with all of its jobs."""
    folder = Path(tempfile.mkdtemp(prefix="stepline-slurm-"))  # the path of a socket has at most 107 characters
    command = [sys.executable, "-c", f"from tests.slurm import serve; serve({str(folder)!r})"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True, **pipes) as server:
        try:
            assert server.stdout.read(1) == b"!", "Slurm did not start; its log stands above"
            yield Slurm(folder)
        finally:
            server.stdin.close()
            server.wait()


def serve(folder: str) -> None:
    """Run the daemons of a Slurm in ``folder`` until the standard input ends; then end all that came of them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        _start(Path(folder))
        os.write(1, b"!")
        os.read(0, 1)
    finally:
        while left := psutil.Process().children(recursive=True):
            for process in left:
                process.kill()
            psutil.wait_procs(left)
        shutil.rmtree(folder)


def _start(folder: Path) -> None:
    """Start the daemons, and return when all nodes wait for jobs."""
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    (folder / "bin").mkdir()
    (folder / "bin/srun").write_text(SRUN.format(folder=folder, srun=shutil.which("srun", path=SYSTEM)))
    (folder / "bin/srun").chmod(0o755)
    gpus = [folder / f"gpu{number}" for number in range(2)]
    for gpu in gpus:
        os.mknod(gpu, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    (folder / "gres.conf").write_text("".join(f"Name=gpu File={gpu}\n" for gpu in gpus))
    host = socket.gethostname().partition(".")[0]
    content = CONFIGURATION.format(folder=folder, host=host, ports=_free_ports(1 + len(NODES)))
    (folder / "slurm.conf").write_text(content)
    slurm = Slurm(folder)
    environment = os.environ | slurm.environment
    files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
    for name in ("state", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()
    with open(folder / "log", "w") as log:
        for command in (
            ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *files],
            ["slurmctld", "-D"],
            *(["slurmd", "-D", "-N", node] for node in NODES),
        ):
            subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    for _ in range(STARTS_IN_S * 10):
        time.sleep(0.1)
        with suppress(subprocess.CalledProcessError):
            if slurm("sinfo", "--noheader", "--Node", "--format=%T").split() == ["idle"] * len(NODES):
                return
    sys.exit((folder / "log").read_text())


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [listener.getsockname()[1] for listener in listeners]
