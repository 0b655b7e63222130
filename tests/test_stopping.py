"""SIGTERM ends a process at a point where what it has is whole."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from filelock import FileLock

from stepline.cli import main
from stepline.errors import StoreError
from stepline.stopping import Stopped, stopped_by_sigterm, whole_step
from tests.media.clips import make
from tests.processes import alive, children


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    with stopped_by_sigterm():
        yield
    signal.signal(signal.SIGTERM, before)


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_the_first_one_raises_and_later_ones_do_nothing() -> None:
    with pytest.raises(Stopped):
        terminate()
    terminate()
    assert Stopped.code == 143
    assert not issubclass(Stopped, Exception), "no handler of errors catches it"


def test_a_command_leaves_the_signal_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert main(["bank", "compare", "none", "none"]) == 2
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_interrupt_ends_a_command_silently_until_its_work_begins_and_then_is_raised() -> None:
    code = (
        "import builtins, os, signal, sys; from stepline.__main__ import main; load = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        "    if name == sys.argv[-1]: os.kill(os.getpid(), signal.SIGINT)\n"
        "    return load(name, *rest)\n"
        "builtins.__import__ = interrupted; main()"
    )
    for name, ended in (("stepline.cli.parser", -signal.SIGINT), ("stepline.search.searcher", 130)):
        command = [sys.executable, "-c", code, "search", "none", name]
        done = subprocess.run(command, capture_output=True, check=False, text=True)
        assert (done.returncode, done.stderr) == (ended, "")


def test_a_step_is_finished_first() -> None:
    done = []

    def step() -> None:
        with whole_step():
            terminate()
            done.append("the rest of the step")

    with pytest.raises(Stopped):
        step()
    assert done == ["the rest of the step"]
    with whole_step():
        done.append("and no second time")
    assert len(done) == 2


def test_an_error_of_a_step_does_not_hide_it() -> None:
    def step() -> None:
        with whole_step():
            terminate()
            raise StoreError("the step fails")

    with pytest.raises(Stopped):
        step()


CONFIG = """
datasets: {mine: {videos: clips, backbones: [counted]}}
backbones: {counted: {path: counted.py}}
features: {device: cpu, batch_size: 4}
"""
COUNTED = """
import os
import time
from stepline.spec import ClipSpec
SPEC = ClipSpec(
    name="counted", label="test", revision=1, fps=2, architecture="file", weights=(), licence="MIT",
    num_frames=2, interval=1, hop=1, steps=(("exact", 16, 16, "swscale_bicubic"),), mean=(0, 0, 0), std=(1, 1, 1),
    output="mean", dimension=3,
)
def load(spec, files):
    import torch
    class Counted(torch.nn.Module):
        def forward(self, clips):
            if os.path.exists("slow"):
                time.sleep(0.05)
            with open("batches", "a") as file:
                print(len(clips), file=file)
            return clips.mean(dim=(2, 3, 4))
    return Counted()
"""
EXTRACT = ("--log", "extract.log", "extract", "mine", "--shard", "000", "--backbone", "counted")
SECONDS = {"a": 10, "b": 80}


def prepared(folder: Path, clips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go to a new work folder, where the videos are known."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "clips").symlink_to(clips)
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "counted.py").write_text(COUNTED)
    assert main(["fetch", "mine/videos/000"]) == 0


def batches() -> int:
    return Path("batches").read_text().count("\n") if Path("batches").exists() else 0


def content() -> dict[str, bytes]:
    files = [path for path in Path("features").rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc says which processes there are")
@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_extraction_keeps_each_row_that_it_has_computed(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once only the process is asked, three times all that it started are: schedulers do both."""
    pytest.importorskip("torch")
    (tmp_path / "clips").mkdir()
    for name, seconds in SECONDS.items():
        make(tmp_path / "clips" / f"{name}.mp4", [Fraction(i, 2) for i in range(2 * seconds)])
    prepared(tmp_path / "whole", tmp_path / "clips", monkeypatch)
    assert main(EXTRACT) == 0
    expected, total = content(), batches()
    assert total == 5 + 40

    prepared(tmp_path / "stopped", tmp_path / "clips", monkeypatch)
    Path("slow").touch()
    command = [sys.executable, "-m", "stepline", *EXTRACT]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        deadline = time.monotonic() + 120
        while batches() < total // 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        processes = [process.pid, *children(process.pid)]
        for _ in range(times):
            (os.kill if times == 1 else os.killpg)(process.pid, signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    done = batches()
    line = f"counted: {4 * (done - 5)} of {2 * SECONDS['b']} rows of b; the same command continues from there"
    assert said == f"error: ended by SIGTERM: finished videos are kept; {line}\n"
    assert said in Path("extract.log").read_text()
    assert process.returncode == 143
    assert len(processes) > 1
    deadline = time.monotonic() + 10  # multiprocessing's own ends once it sees that its parent has
    while any(map(alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, processes)), "a decoder is left"
    first, second = Path("features").rglob("*.lock")
    with FileLock(first, blocking=False), FileLock(second, blocking=False):
        assert not list(Path("features").rglob("manifests/*"))

    Path("slow").unlink()
    assert main(EXTRACT) == 0
    assert batches() == total, f"{done} of {total} batches were computed before"
    assert content() == expected
