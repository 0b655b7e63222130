"""What is seen of the reads of jobs: two jobs of which one reads what the other made, in processes of their own."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.conftest import ROOT
from tests.reads import undeclared
from tests.traces import tracing

JOB = """
import os, sys
from pathlib import Path
from threading import Thread
from tests.traces import mark
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
def by(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What sees the opens."""
    if request.param == "strace" and not tracing(tmp_path):
        pytest.skip("strace is not installed, or may not trace")
    return str(request.param)


def run(by: str, log: str, body: str, output: str, inputs: list[str]) -> list[str]:
    """Run a job as Snakemake would, in the current folder, and return its undeclared reads."""
    traces = Path(mkdtemp(dir=Path.cwd()))
    command = [sys.executable, "-c", JOB.format(body=body), str(traces), log]
    before = tracing(traces) if by == "strace" else []
    subprocess.run([*before, *command], check=True, env={"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"})
    record = Path(".snakemake/metadata", output)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps({"log": [log], "input": inputs}))
    return undeclared(traces, Path.cwd())


@pytest.mark.parametrize(
    "body", ["open('made/äß.bin')", "os.chdir('made'); os.open('äß.bin', os.O_RDONLY)", IN_A_PROCESS.strip()]
)
def test_a_file_of_a_job_that_is_not_waited_for_is_named(by: str, body: str) -> None:
    assert run(by, "logs/a.log", MAKES, "one.json", []) == []
    assert run(by, "logs/b.log", "Path('b').touch()", "b", []) == []
    assert run(by, "logs/c.log", body, "c", ["b", "config.yaml"]) == [
        "logs/c.log reads made/äß.bin, which logs/a.log wrote"
    ]
    assert run(by, "logs/c.log", body, "c", ["one.json"]) == []
    assert run(by, "logs/b.log", "Path('b').touch()", "b", ["one.json"]) == []
    assert run(by, "logs/c.log", body, "c", ["b"]) == []


def test_a_job_may_look_for_files_and_read_what_it_wrote_or_nobody_did(by: str) -> None:
    Path("given").touch()
    run(by, "logs/a.log", MAKES, "one.json", [])
    own = "Path('own').touch(); open('own'); open('given'); Path('made/äß.bin').stat(); os.listdir('made')"
    assert run(by, "logs/b.log", own, "b", []) == []


def test_a_file_that_is_not_there_yet_counts_once_another_job_makes_it(by: str) -> None:
    attempt = "\n    try: open('made/äß.bin')\n    except FileNotFoundError: pass"
    assert run(by, "logs/b.log", attempt, "b", []) == []
    run(by, "logs/a.log", MAKES, "one.json", [])
    assert run(by, "logs/b.log", attempt, "b", []) == ["logs/b.log reads made/äß.bin, which logs/a.log wrote"]


def test_libraries_that_open_files_themselves_are_seen_by_strace(by: str) -> None:
    reads = "import pyarrow; pyarrow.OSFile('made/äß.bin')"
    run(by, "logs/a.log", MAKES, "one.json", [])
    found = run(by, "logs/b.log", reads, "b", [])
    assert found == (["logs/b.log reads made/äß.bin, which logs/a.log wrote"] if by == "strace" else [])
