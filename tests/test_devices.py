"""Which GPU a process has. No GPU is used: what is seen of one is said by the tests."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepline import devices
from stepline.errors import StoreError

AUTO = {"device": "auto", "jobs_per_gpu": 1}
CUDA = {"device": "cuda", "jobs_per_gpu": 1}
HOLD = """
import logging, sys
from stepline import devices
logging.basicConfig(level="INFO", format="%(message)s", stream=sys.stdout)
assert devices.use({"device": "cuda", "jobs_per_gpu": int(sys.argv[1])}, lambda: True) == "cuda"
import os
print("has", os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host without a GPU and a scheduler, and its folder of temporary files."""
    for name in (*devices.GIVEN, "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(devices, "_held", [])
    monkeypatch.setattr(devices, "PROC", tmp_path / "gpus")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def held(visible: str, jobs: int = 1, **environment: str) -> "subprocess.Popen[str]":
    """Start a process that holds a GPU until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(jobs)],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": visible} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_gpus_of_a_host_are_counted(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices.visible() == []
    for number in range(2):
        (host / f"gpus/0000:0{number}:00.0").mkdir(parents=True)
    assert devices.visible() == ["0", "1"]
    for listed, expected in {"": [], "-1": [], "3": ["3"], "2, GPU-ab": ["2", "GPU-ab"], "1,-1,2": ["1"]}.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
        assert devices.visible() == expected


def test_jobs_ask_for_a_gpu_where_one_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [devices.wanted(device) for device in ("cuda", "auto", "cpu")] == [True, False, False]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert [devices.wanted(device) for device in ("cuda", "auto", "cpu")] == [True, True, False]


def test_without_a_gpu_networks_run_on_the_cpu_and_say_so(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("stepline").propagate = True
    with caplog.at_level(logging.INFO, "stepline"):
        assert devices.use(AUTO, lambda: False) == "cpu"
    assert caplog.messages == ["there is no GPU here: networks run on the CPU"]
    assert devices.use(devices.CPU, lambda: pytest.fail("nobody need look")) == "cpu"
    with pytest.raises(StoreError, match=r"features.device is cuda, and no GPU can be used here"):
        devices.use(CUDA, lambda: False)


@pytest.mark.parametrize("variable", devices.GIVEN)
def test_a_given_gpu_is_never_replaced_by_the_cpu(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "0")
    with pytest.raises(StoreError, match=f"{variable} gives this process a GPU, which cannot be used"):
        devices.use(AUTO, lambda: False)
    assert devices.use(AUTO, lambda: True) == "cuda"


def test_processes_have_different_gpus_and_one_too_many_waits() -> None:
    with held("4,7") as first, held("4,7") as second:
        assert {said(first), said(second)} == {"has 4", "has 7"}
        with held("4,7") as third:
            assert said(third) == "all GPUs are in use (4, 7): waiting for one"
            first.kill()
            assert said(third) in ("has 4", "has 7")
            third.communicate()
        second.communicate()


def test_jobs_may_share_a_gpu_but_spread_first() -> None:
    with held("0,1", jobs=2) as a, held("0,1", jobs=2) as b, held("0,1", jobs=2) as c:
        has = [said(each) for each in (a, b, c)]
        assert {"has 0", "has 1"} == set(has)
        for each in (a, b, c):
            each.communicate()


def test_a_slurm_job_does_not_wait_for_another_whose_gpus_have_the_same_numbers() -> None:
    with held("0", SLURM_JOB_ID="1") as one, held("0", SLURM_JOB_ID="2") as other:
        assert said(one) == said(other) == "has 0"
        one.communicate()
        other.communicate()


def test_a_folder_of_another_user_is_refused(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (host / "theirs").mkdir()
    (host / f"stepline-gpus-{os.getuid()}").symlink_to(host / "theirs")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(StoreError, match="belongs to another user"):
        devices.use(CUDA, lambda: True)
