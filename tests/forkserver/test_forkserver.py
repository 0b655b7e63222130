"""Jobs that are forked are, to whoever starts them, what their own processes would be."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from stepline.forkserver.listener import VARIABLE, Listener
from tests.conftest import ROOT
from tests.processes import alive

PROBE = Path(__file__).parent / "probe"
PATIENCE_S = 60.0


@pytest.fixture
def listener() -> Iterator[Listener]:
    with TemporaryDirectory() as folder:
        made = Listener(Path(folder, "jobs"))
        yield made
        made.end()


def started(address: object, *words: str, python: str = sys.executable, **variables: str) -> subprocess.Popen[str]:
    """Start a job by the socket at an address."""
    path = os.pathsep.join(map(str, (PROBE, ROOT / "src")))
    return subprocess.Popen(
        [python, "-m", "stepline", *words],
        env=os.environ | {"PYTHONPATH": path, VARIABLE: str(address)} | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def job(listener: Listener, *words: str, python: str = sys.executable, **variables: str) -> tuple[int, str, str]:
    """Return the exit code of a job, its output and its errors."""
    with started(listener.address, *words, python=python, **variables) as process:
        output, errors = process.communicate("said", timeout=PATIENCE_S)
    return process.returncode, output, errors


def kill(process: int) -> None:
    """Kill what a job that a signal ends leaves, as it also would without a server."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def waiting(address: object, file: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """Return a job that waits, and the processes that end with it: itself, its child, and who started it."""
    process = started(address, "wait", str(file))
    until(lambda: file.exists() and file.read_text())
    return process, list(map(int, file.read_text().split()))


def test_a_job_has_the_words_folder_variables_and_files_of_its_process(listener: Listener) -> None:
    code, output, errors = job(listener, "show", "", "two words", "ä\n", ONE="1", TWO="a=b\nc")
    shown = json.loads(output)
    assert (code, shown["words"], shown["folder"]) == (0, ["", "two words", "ä\n"], os.getcwd())
    assert shown["environment"]["TWO"] == "a=b\nc"
    assert VARIABLE not in shown["environment"]
    assert errors.startswith(f"python {sys.executable}, parent ")
    assert errors.endswith(", said\n")


def test_jobs_of_one_environment_have_one_server(listener: Listener) -> None:
    servers = [job(listener, "show", **variables)[2].split()[3] for variables in ({}, {}, {"OMP_NUM_THREADS": "3"})]
    assert servers[0] == servers[1] != servers[2]


def test_another_interpreter_has_a_server_of_its_own(listener: Listener, tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    path = os.pathsep.join(map(str, (PROBE, ROOT / "src", sysconfig.get_path("purelib"))))
    errors = [job(listener, "show", python=each, PYTHONPATH=path)[2] for each in (sys.executable, f"{tmp_path}/python")]
    assert errors[1].startswith(f"python {tmp_path}/python, ")
    assert errors[0].split()[3] != errors[1].split()[3]


def test_a_job_ends_as_its_fork_does(listener: Listener) -> None:
    assert [job(listener, "leave", code)[0] for code in ("0", "3", "143")] == [0, 3, 143]
    assert job(listener, "die", str(int(signal.SIGKILL)))[0] == -signal.SIGKILL
    assert job(listener, "die", str(int(signal.SIGUSR1)))[0] == -signal.SIGUSR1
    code, _, errors = job(listener, "fail", "what went wrong")
    assert code == 1
    assert errors.endswith("RuntimeError: what went wrong\n")


def test_a_job_may_have_ended_before_its_process_hears_that_it_began(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "jobs"))
        server.listen()
        with started(tmp_path / "jobs", "leave", "3") as process:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"+3")
                code = process.wait(PATIENCE_S)
            assert (code, process.communicate(timeout=PATIENCE_S)[1]) == (3, "")


def test_it_starts_processes_of_its_own(listener: Listener) -> None:
    assert job(listener, "spawn", "7") == (0, "49\n", "")


def test_signals_are_handed_on(listener: Listener, tmp_path: Path) -> None:
    for number, code in ((signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, -signal.SIGINT)):
        process, (_, child, _) = waiting(listener.address, tmp_path / number.name)
        process.send_signal(number)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == code
        kill(child)


def test_what_is_killed_leaves_nothing(listener: Listener, tmp_path: Path) -> None:
    process, (*left, server) = waiting(listener.address, tmp_path / "job")
    process.kill()
    until(lambda: not any(map(alive, left)))
    assert alive(server)
    process.communicate()

    process, (itself, child, server) = waiting(listener.address, tmp_path / "server")
    os.kill(server, signal.SIGKILL)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors.startswith("error: the process that forks jobs was killed")) == (137, True)
    until(lambda: not alive(itself))
    kill(child)
    assert job(listener, "leave", "3")[0] == 3


def test_all_ends_with_a_listener_that_is_killed(tmp_path: Path) -> None:
    code = "import os; from stepline.forkserver.listener import listen; listen(); print(os.environ['%s']); input()"
    command = [sys.executable, "-c", code % VARIABLE]
    environment = os.environ | {"TMPDIR": "/tmp"}
    with subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as snakemake:
        assert snakemake.stdout is not None
        address = Path(snakemake.stdout.readline().strip())
        assert address.parent.stat().st_mode & 0o777 == 0o700
        process, processes = waiting(address, tmp_path / "job")
        snakemake.kill()
    until(lambda: not any(map(alive, processes)))
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 137
    until(lambda: not address.parent.exists())


def test_the_time_of_jobs_is_that_of_the_listener(listener: Listener) -> None:
    before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    job(listener, "burn", "2")
    listener.end()
    assert sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before >= 2


def test_what_a_job_imports_is_there_for_the_next_of_its_verb(listener: Listener) -> None:
    assert [job(listener, "imports", "jinja2")[1] for _ in range(2)] == ["False\n", "True\n"]
    assert [job(listener, "imports", "colorsys")[1] for _ in range(2)] == 2 * ["False\n"]


def test_what_two_jobs_of_features_import_is_there_for_the_third(listener: Listener) -> None:
    assert [job(listener, "extract", "jinja2")[1] for _ in range(3)] == ["False\n", "False\n", "True\n"]


def test_what_needs_torch_made_ready_is_learned_too(listener: Listener) -> None:
    if find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    assert [job(listener, "imports", "torchvision")[1] for _ in range(2)] == ["False\n", "True\n"]


def test_what_all_jobs_of_texts_import_is_there_for_the_first(listener: Listener) -> None:
    if find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    assert job(listener, "encode", "transformers.modeling_utils")[1] == "True\n"


@pytest.mark.parametrize("address", ["/nowhere/jobs", "{}/jobs"])
def test_without_a_server_a_job_does_its_work_itself(address: str, tmp_path: Path) -> None:
    with started(address.format(tmp_path), "--version") as process:
        output, _ = process.communicate(timeout=PATIENCE_S)
    assert output.startswith("stepline ")


def test_where_a_server_cannot_start_a_job_does_its_work_itself(listener: Listener, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nif 'stepline.forkserver.server' in sys.orig_argv: raise SystemExit"
    )
    path = os.pathsep.join(map(str, (tmp_path, ROOT / "src")))
    code, output, _ = job(listener, "--version", PYTHONPATH=path)
    assert (code, output.startswith("stepline ")) == (0, True)


def test_a_server_has_no_thread_that_a_fork_would_lack(listener: Listener, tmp_path: Path) -> None:
    process, (*_, server) = waiting(listener.address, tmp_path / "job")
    threads = [(each / "comm").read_text().strip() for each in Path(f"/proc/{server}/task").iterdir()]
    process.kill()
    process.communicate()
    assert [name for name in threads if name != "jemalloc_bg_thd"] == ["python"]  # jemalloc starts it again
