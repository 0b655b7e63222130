"""Fixtures that several tests share."""

import ctypes
import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn
from uuid import uuid4

import pytest
from filelock import FileLock
from hypothesis import settings

from stepline.features import objects
from tests import forked
from tests.gpu import GPU
from tests.object_storage import BUCKET, ObjectStorage, running
from tests.server import Reply, Request, Server

settings.register_profile("stepline", deadline=None)  # a busy machine is no failure
settings.load_profile("stepline")

ROOT = Path(__file__).parents[1]

# glibc gives a large array back when it is freed only while this threshold stays as it is: otherwise it grows, and a
# process that runs many tests keeps gigabytes.
M_MMAP_THRESHOLD = -3
getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)(M_MMAP_THRESHOLD, 1 << 20)

# What tests import stays to the end. Visiting it again and again, in search of garbage, took a fifth of a test run.
gc.disable()


def unavailable(reason: str) -> NoReturn:
    """Skip the test for want of what continuous integration has; there, fail it."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def registry() -> None:
    """Skip the test where packages cannot be installed."""
    words = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-cache", "-"]
    done = subprocess.run(words, input="packaging", capture_output=True, text=True, check=False)
    if done.returncode:
        unavailable(f"no package registry can be reached: {done.stderr}")


def _shared(variable: str, name: str, what: str) -> Path:
    """Return the folder that ``variable`` names, or skip the test."""
    folder = Path(os.environ.get(variable, ROOT.parent / "shared" / name))
    if not folder.is_dir():
        unavailable(f"{folder} is not there: set {variable} to a folder with {what}")
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with a file that runs the demo, then the files that hold slow tests, of these last what needs the demo.

    So no process waits for the demo's run, and no slow test is left for the end.
    """
    first = next((item.path for item in items if "demo_run" in item.fixturenames), None)
    items.sort(
        key=lambda item: (item.path != first, item.get_closest_marker("slow") is None, "demo_run" in item.fixturenames)
    )


def pytest_collection_finish() -> None:
    """From here on, look for garbage in what tests make, and more seldom than Python does."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs a GPU where there is none."""
    if item.get_closest_marker("gpu") and GPU == "cuda" and not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("no CUDA device")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The public release files."""
    return _shared("STEPLINE_REAL_DATA", "data", "the public releases")


@pytest.fixture(scope="session")
def parity() -> Path:
    """Weights' recipes and reference outputs."""
    return _shared("STEPLINE_PARITY", "parity", "the reference outputs")


@pytest.fixture(scope="session")
def papers() -> Path:
    """The text of the papers."""
    return _shared("STEPLINE_PAPERS", "papers", "the text of the papers")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs in a folder of its own and with no mirror, key or configuration of the user's."""
    monkeypatch.chdir(tmp_path)
    own = ("STEPLINE_MIRROR", "STEPLINE_CONFIG", "STEPLINE_INVOCATION", "STEPLINE_RUN")
    for name in (*own, "DEEPGRAM_API_KEY", "HF_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True, scope="module")
def _own_algorithms() -> Iterator[None]:
    """No file inherits the deterministic algorithms of another's fits, with which torch also fills empty tensors."""
    yield
    if torch := sys.modules.get("torch"):
        torch.use_deterministic_algorithms(False)


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Request], Reply]], Server]]:
    """Start servers that give these answers."""
    with ExitStack() as stack:
        yield lambda reply: stack.enter_context(Server(reply).running())


@pytest.fixture(scope="session")
def object_storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStorage]:
    """A service of object storage; one for all tests of a process."""
    with running(tmp_path_factory.mktemp("object-storage") / "files") as service:
        yield service


@pytest.fixture
def storage(object_storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> ObjectStorage:
    """The service, named by the environment, of which nothing was asked yet."""
    for name, value in object_storage.environment().items():
        monkeypatch.setenv(name, value)
    object_storage.fail = lambda method, path: None
    object_storage.asked.clear()
    objects.opened.cache_clear()
    return object_storage


@pytest.fixture
def remote(storage: ObjectStorage) -> str:
    """A URL below which nothing stands."""
    return f"s3://{BUCKET}/{uuid4().hex}"


def snakemake(
    *arguments: str, folder: Path, traced: bool = False, lines: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the workflow in ``folder``, with the Python of the tests; traced: see `forked.run`.

    lines: whether a run prints lines of stages, as it does by default, and not Snakemake's own output.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("STEPLINE_")}
    words = ["--snakefile", str(ROOT / "Snakefile"), *([] if lines else ["--printshellcmds"]), *arguments]
    return forked.run("snakemake", words, folder, kept | environment, traced=traced)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that ``make`` filled, once for all processes of a test run. Tests read it, or copy it."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    done = folder.with_name(f"{name}.done")
    with FileLock(folder.with_name(f"{name}.lock")):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


@pytest.fixture(scope="session")
def demo_mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mirror with the built study; its truth.json stands beside it."""
    pytest.importorskip("stepline.demo.build", exc_type=ImportError)

    def build(folder: Path) -> None:
        command = [sys.executable, "-m", "stepline", "demo", "--mirror", "mirror", "--truth", "truth.json"]
        subprocess.run(command, cwd=folder, check=True)

    return made_once(tmp_path_factory, "demo-study", build) / "mirror"


DEMO = "--cores", "1", "--configfile", str(ROOT / "config.demo.yaml")
HEARD = "soup", "garden", "room", "camp"
"""Every voice and split. Of bicycle, whose voice is room's, all but the words is seen in demo/test_bicycle.py."""
SUBSET = f"subset: {{videos: [{', '.join(HEARD)}]}}"
ONE_WINDOW = f"contexts_s: {{step_recognition: [4], intra-video_retrieval: [4]}}, last_layer: {{seeds: [0]}}, {SUBSET}"


@pytest.fixture(scope="session")
def demo_run(demo_mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder in which the demo has run from its videos to all results: four recordings, one window length."""

    def compute(folder: Path) -> None:
        truth = folder / "results/demo/truth.json"
        truth.parent.mkdir(parents=True)
        shutil.copy(demo_mirror.parent / "truth.json", truth)
        targets = [f"results/demo/{name}" for name in ("all", "videos.csv")]
        options = *DEMO, "--config", f"demo={{{ONE_WINDOW}}}", "--"
        done = snakemake(*options, *targets, folder=folder, traced=True, STEPLINE_MIRROR=str(demo_mirror))
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "demo-run", compute)
