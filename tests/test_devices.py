"""Which GPU a process has. No GPU is used: what is seen of one is said by the tests."""

import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from stepline import devices
from stepline.errors import StoreError

AUTO = {"device": "auto", "jobs_per_gpu": 1}
CUDA = {"device": "cuda", "jobs_per_gpu": 1}
HOLD = """
import logging, sys
from stepline import devices
logging.basicConfig(level="INFO", format="%(message)s", stream=sys.stdout, force=True)
assert devices.use({"device": "cuda", "jobs_per_gpu": int(sys.argv[1])}, lambda: True) == "cuda"
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host without a GPU and a scheduler, and its folder of temporary files."""
    for name in (*devices.GIVEN, "SLURM_JOB_ID"):
        monkeypatch.setenv(name, "")  # so that what a test sets is undone
        monkeypatch.delenv(name)
    monkeypatch.setattr(devices, "_held", [])
    monkeypatch.setattr(devices, "NODES", tmp_path / "dev")
    monkeypatch.setattr(devices, "DRIVER", tmp_path / "gpus")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


@contextmanager
def held(visible: str, jobs: int = 1, **environment: str) -> "Iterator[subprocess.Popen[str]]":
    """Start a process that takes a GPU and holds it until it is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(jobs)],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": visible} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_gpus_of_a_host_are_counted(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices.visible() == []
    for number in range(12):
        (host / f"gpus/0000:{number:02x}:00.0").mkdir(parents=True)
    assert devices.visible() == [str(number) for number in range(12)]
    (host / "dev").mkdir()
    for name in ("nvidia3", "nvidia11", "nvidiactl", "nvidia-uvm", "null"):
        (host / "dev" / name).touch()
    assert devices.visible() == ["0", "1"], "a container has the device files of its own GPUs alone"
    lists = {"": [], "-1": [], "NoDevFiles": [], "3": ["3"], "2, GPU-ab": ["2", "GPU-ab"], "1,-1,2": ["1"]}
    for listed, expected in lists.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
        assert devices.visible() == expected


def test_jobs_ask_for_a_gpu_where_one_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [devices.wanted(device) for device in ("cuda", "auto", "cpu")] == [True, False, False]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert [devices.wanted(device) for device in ("cuda", "auto", "cpu")] == [True, True, False]


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """What is logged."""
    monkeypatch.setattr(logging.getLogger("stepline"), "propagate", True)
    caplog.set_level(logging.INFO, "stepline")
    return caplog


def lease(name: str, job: str = "host") -> FileLock:
    return FileLock(devices._folder() / f"{job}.{name}.0.lock", blocking=False)


def test_without_a_gpu_networks_run_on_the_cpu_and_the_log_says_so(
    logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert devices.use(AUTO, lambda: False) == "cpu"
    assert logged.messages == ["there is no GPU here: networks run on the CPU"]
    assert devices.use(devices.CPU, lambda: pytest.fail("nobody need look")) == "cpu"
    with pytest.raises(StoreError, match=r"features.device is cuda, but no GPU is usable here"):
        devices.use(CUDA, lambda: False)
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "all")  # of an image, which gives none
    assert devices.use(AUTO, lambda: False) == "cpu"


def test_a_gpu_that_cannot_be_used_is_given_back(host: Path, logged: pytest.LogCaptureFixture) -> None:
    (host / "gpus/0000:01:00.0").mkdir(parents=True)
    for _ in range(2):
        assert devices.use(AUTO, lambda: False) == "cpu"
        assert devices.VISIBLE not in os.environ
        with lease("0"):
            pass
    assert logged.messages == 2 * ["GPU 0 cannot be used: networks run on the CPU"]


def test_a_process_keeps_the_gpu_that_it_has(logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(devices.VISIBLE, "GPU-1/2,7")
    looked = []
    for _ in range(2):
        assert devices.use(AUTO, lambda: not looked.append(os.environ[devices.VISIBLE])) == "cuda"
    assert looked == ["GPU-1/2"], "what is visible is decided before a library looks"
    assert logged.messages == ["networks run on GPU GPU-1/2"]
    with pytest.raises(Timeout):
        lease("GPU-1_2").acquire()


@pytest.mark.parametrize("variable", devices.GIVEN)
def test_a_given_gpu_is_never_replaced_by_the_cpu(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for none in ("", "none"):
        monkeypatch.setenv(variable, none)
        assert devices.use(AUTO, lambda: False) == "cpu"
    monkeypatch.setenv(variable, "0")
    for options in (AUTO, CUDA):
        with pytest.raises(StoreError, match=f"{variable}=0 assigns a GPU to this job, but networks cannot"):
            devices.use(options, lambda: False)
    assert devices.use(AUTO, lambda: True) == "cuda"


def test_processes_have_different_gpus_and_one_too_many_waits() -> None:
    with held("4,7") as first, held("4,7") as second:
        assert {said(first), said(second)} == {"networks run on GPU 4", "networks run on GPU 7"}
        with held("4,7") as third:
            assert (
                said(third) == f"all GPUs (4, 7) are in use by other jobs: waiting for one; locks: {devices._folder()}"
            )
            first.kill()
            assert said(third) in ("networks run on GPU 4", "networks run on GPU 7")


def test_jobs_may_share_a_gpu_but_spread_first() -> None:
    with held("0,1", jobs=2) as a, held("0,1", jobs=2) as b, held("0,1", jobs=2) as c:
        has = [said(each) for each in (a, b, c)]
        assert {"networks run on GPU 0", "networks run on GPU 1"} == set(has)
    with held("0", SLURM_JOB_ID="1") as one, held("0", SLURM_JOB_ID="2") as other:
        assert said(one) == said(other) == "networks run on GPU 0", "a Slurm job does not wait for another"


def test_all_users_of_a_host_share_the_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(devices.VISIBLE, "0")
    before = os.umask(0o077)
    try:
        assert devices.use(CUDA, lambda: True) == "cuda"
    finally:
        os.umask(before)
    (file,) = devices._folder().iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o666
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o1777
