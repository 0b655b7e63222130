"""What is seen of the reads of jobs: two jobs of which one reads what the other made, in processes of their own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.reads import tracing, undeclared

JOB = """
import os, sys
from pathlib import Path
from threading import Thread
from tests.reads import mark
if os.fork() == 0:
    mark(Path(sys.argv[1]), ["--log", sys.argv[2]])
    {body}
    os._exit(0)
os.wait()
"""
MAKES = "os.mkdir('new'); Path('new/äß.bin').write_bytes(b'x'); os.replace('new', 'made'); Path('one.json').touch()"
IN_A_PROCESS = """
    if os.fork() == 0:
        thread = Thread(target=lambda: open("made/äß.bin"))
        thread.start(); thread.join(); os._exit(0)
    os.wait()
"""


@pytest.fixture(params=["strace", "audit"])
def traced(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[str]]:
    """A folder for traces, and what stands before a job's command."""
    folder = tmp_path / "traces"
    folder.mkdir()
    before = tracing(folder) if request.param == "strace" else []
    if request.param == "strace" and not before:
        pytest.skip("strace is not installed, or may not trace")
    return folder, before


def run(traced: tuple[Path, list[str]], log: str, body: str, output: str, inputs: list[str]) -> list[str]:
    """Run a job as Snakemake would, in the current folder, and return its undeclared reads."""
    traces, before = traced
    command = [*before, sys.executable, "-c", JOB.format(body=body), str(traces), log]
    subprocess.run(command, check=True, env={"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"})
    record = Path(".snakemake/metadata", output)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps({"log": [log], "input": inputs}))
    return undeclared(traces, Path.cwd())


@pytest.mark.parametrize(
    "body", ["open('made/äß.bin')", "os.chdir('made'); os.open('äß.bin', os.O_RDONLY)", IN_A_PROCESS.strip()]
)
def test_a_file_of_a_job_that_is_not_waited_for_is_named(traced: tuple[Path, list[str]], body: str) -> None:
    assert run(traced, "logs/a.log", MAKES, "one.json", []) == []
    assert run(traced, "logs/b.log", "Path('b').touch()", "b", []) == []
    assert run(traced, "logs/c.log", body, "c", ["b", "config.yaml"]) == [
        "logs/c.log reads made/äß.bin, which logs/a.log wrote"
    ]
    assert run(traced, "logs/c.log", body, "c", ["one.json"]) == []
    assert run(traced, "logs/b.log", "Path('b').touch()", "b", ["one.json"]) == []
    assert run(traced, "logs/c.log", body, "c", ["b"]) == []


def test_a_job_may_look_for_files_and_read_what_it_wrote_or_nobody_did(traced: tuple[Path, list[str]]) -> None:
    Path("given").touch()
    run(traced, "logs/a.log", MAKES, "one.json", [])
    own = "Path('own').touch(); open('own'); open('given'); Path('made/äß.bin').stat(); os.listdir('made')"
    assert run(traced, "logs/b.log", own, "b", []) == []


def test_a_file_that_is_not_there_yet_counts_once_another_job_makes_it(traced: tuple[Path, list[str]]) -> None:
    attempt = "\n    try: open('made/äß.bin')\n    except FileNotFoundError: pass"
    assert run(traced, "logs/b.log", attempt, "b", []) == []
    run(traced, "logs/a.log", MAKES, "one.json", [])
    assert run(traced, "logs/b.log", attempt, "b", []) == ["logs/b.log reads made/äß.bin, which logs/a.log wrote"]


def test_libraries_that_open_files_themselves_are_seen_by_strace(traced: tuple[Path, list[str]]) -> None:
    pytest.importorskip("pyarrow")
    reads = "import pyarrow; pyarrow.OSFile('made/äß.bin')"
    run(traced, "logs/a.log", MAKES, "one.json", [])
    found = run(traced, "logs/b.log", reads, "b", [])
    assert found == (["logs/b.log reads made/äß.bin, which logs/a.log wrote"] if traced[1] else [])
