"""CPU time against a second way of counting: that of the whole process when all has ended."""

import resource
import subprocess
import sys
from importlib import import_module

import pytest

SPENDS = """
import sys, time
while time.process_time() < 0.5:
    pass
print("spent", flush=True)
sys.stdin.read()
"""


def ended_s() -> float:
    return sum(sum(resource.getrusage(whose)[:2]) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def test_a_process_counts_while_it_runs_and_once_it_has_ended() -> None:
    cpu_s = import_module("measure").cpu_s
    command = [sys.executable, "-c", SPENDS]
    begin_s, before_s = ended_s(), cpu_s()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "spent\n"
        running_s = cpu_s() - before_s
        process.communicate()
    whole_s = ended_s() - begin_s
    assert 0.45 <= running_s <= whole_s + 0.02
    assert cpu_s() - before_s == pytest.approx(whole_s, abs=0.05)


def test_a_table_counts_a_process_that_stays(capsys: pytest.CaptureFixture[str]) -> None:
    started = []

    def call() -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", SPENDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()

    import_module("measure").show("title", "peer", {"peer": call, "nothing": lambda: None}, repeats=1)
    for process in started:
        process.communicate()
    _, _, peer, nothing, _ = capsys.readouterr().out.split("\n", 4)
    assert 0.45 <= float(peer.split()[1]) <= 2
    assert float(nothing.split()[1]) < 0.1
