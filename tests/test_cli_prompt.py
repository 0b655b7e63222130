"""The prompt of `search`: its answers are those of the verb, also after a change, and it leaves nothing behind."""

import io
import os
import pty
import select
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest

from stepline import cli, paths
from stepline.asr import transcript
from stepline.asr.transcript import Sentence
from stepline.availability import write_manifest
from stepline.backbones.sentence import MODELS
from stepline.cli.prompt import Loaded
from stepline.config import load
from stepline.features import store
from stepline.io import write_text
from stepline.plans import pipeline
from stepline.search import sources, transcripts
from tests.processes import children

COLOURS = """
import sys
from pathlib import Path

import numpy as np

from stepline.spec import ClipSpec, TextSpec

about = dict(revision=1, architecture="file", weights=(), licence="MIT", dimension=3)
SPEC = ClipSpec(
    name="colours", label="1fps", fps=1, num_frames=1, steps=(("exact", 8, 8, "bilinear"),), mean=(0, 0, 0),
    std=(1, 1, 1), output="mean", **about,
)
TEXT = TextSpec(name="words", label="words", max_tokens=9, output="sum", **about)

def load(spec, files):
    raise NotImplementedError

def load_text(spec, files):
    sys.path.insert(0, str(Path("elsewhere").absolute()))
    import shades

    with open("loads", "a") as file:
        file.write(".")

    class Tower:
        def tokens(self, text):
            return [[*shades.SHADES].index(word) for word in text.split() if word in shades.SHADES]

        def encode(self, tokens):
            return np.float32([[*shades.SHADES.values()][token] for token in tokens]).sum(axis=0)

    Tower.spec = spec
    return Tower()
"""
SHADES = 'SHADES = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1)}\n'
CONFIG = "backbones: {colours: {path: own/colours.py}}\ndatasets: {mine: {videos: clips, backbones: [colours]}}\n"
STEPLINE = sys.executable, "-m", "stepline", "search", "mine"


class Lengths:
    """A sentence encoder that counts words and letters."""

    def __init__(self, name: str) -> None:
        self.spec = MODELS[name]

    def tokens(self, text: str) -> list[int]:
        return [len(word) for word in text.split()]

    def encode(self, tokens: list[int]) -> "np.ndarray":
        return np.float32([len(tokens), sum(tokens)])


@pytest.fixture(autouse=True)
def _data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two videos, one red at first and then green, the other blue, with something said in the first."""
    monkeypatch.setattr(sources, "model_files", lambda name: {name: Path()})
    monkeypatch.setattr(transcripts, "SentenceEncoder", Lengths)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "shades", raising=False)
    write_text("config.yaml", CONFIG)
    write_text("own/colours.py", COLOURS)
    write_text("elsewhere/shades.py", SHADES)
    for name in ("a", "b"):
        write_text(f"clips/{name}.mp4", "")
    put({"a": [(1, 0, 0)] * 9 + [(0, 1, 0)] * 9, "b": [(0, 0.5, 1)] * 9})
    say("a red door")


def put(rows: dict[str, list[tuple[float, ...]]]) -> None:
    spec = pipeline(load(), "mine").features.spec_of("colours")
    made = {video: np.float32(each) for video, each in rows.items()}
    store.write(paths.features("mine", "000", spec), spec, made, 1.0)


def say(text: str) -> None:
    speech = pipeline(load(), "mine").speech
    transcript.write(speech.folder / "a.parquet", [Sentence(text, 1.0, 2.0)])
    write_manifest(paths.manifest(speech.folder, "000"), {"a": {"status": "present", "reason": ""}}, **speech.record)


class Typed(io.TextIOBase):
    """A standard input of lines, between which something is done."""

    def __init__(self, parts: Iterable[str | Callable[[], object]]) -> None:
        self._parts = iter(parts)

    def readline(self, _size: int | None = -1) -> str:  # type: ignore[override]
        for part in self._parts:
            if isinstance(part, str):
                return f"{part}\n"
            part()
        return ""


def ask(monkeypatch: pytest.MonkeyPatch, *parts: str | Callable[[], object], options: Iterable[str] = ()) -> int:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", Typed(parts))
        return cli.main(["search", "mine", *options])


def pages() -> dict[str, bytes]:
    return {page.name: page.read_bytes() for page in Path("results/mine/search").glob("*.html")}


def loads() -> int:
    return len(Path("loads").read_text())


def test_questions_of_a_pipe_have_the_answers_of_the_verb(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = "red", "yellow door", "blue  green", "x" * 501, "red"
    codes = [cli.main(["search", "mine", "--top", "1", text]) for text in texts]
    alone, made = capsys.readouterr(), pages()
    assert codes == [0, 2, 0, 2, 0]
    assert (alone.out.count("Page: "), len(alone.err.splitlines()), len(made)) == (3, 2, 2)
    for page in Path("results/mine/search").iterdir():
        page.unlink()
    Path("loads").unlink()
    assert ask(monkeypatch, *texts, options=["--top", "1"]) == 0
    assert (capsys.readouterr(), pages(), loads()) == (alone, made, 1)
    assert ask(monkeypatch, "red", " ", "green") == 0
    assert capsys.readouterr().out.count("Page: ") == 1, "an empty line ends it"
    assert active_children() == []


def _other_backbone() -> None:
    write_text("own/other.py", COLOURS)
    write_text("config.yaml", CONFIG.replace("own/colours.py", "own/other.py"))
    put({"a": [(0, 0, 1)] * 9, "b": [(1, 0, 0)] * 9})


CHANGES: dict[str, Callable[[], object]] = {
    "features": lambda: put({"a": [(0, 0, 1)] * 9, "b": [(1, 0, 0)] * 9}),
    "transcripts": lambda: say("a door that was red"),
    "videos": lambda: write_text("clips/c.mp4", ""),
    "configuration": _other_backbone,
    "code that a network imports": lambda: write_text("elsewhere/shades.py", SHADES.replace("(1, 0, 0)", "(0, 0, 1)")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_two_questions_is_seen(
    change: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(monkeypatch, "red", "red", CHANGES[change], "red", "red") == 0
    first, again, after, last = capsys.readouterr().out.split("Page: ")[:4]
    assert loads() == 2
    assert cli.main(["search", "mine", "red"]) == 0
    alone = capsys.readouterr().out.split("Page: ")[0]
    assert first == again.partition("\n")[2]
    assert alone == after.partition("\n")[2] == last.partition("\n")[2] != first


def test_what_cannot_be_searched_for_a_while_is_a_line_and_then_the_next_question_is_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [
        *("red", lambda: write_text("config.yaml", "datasets: {mine: 3}\n")),
        *("red", lambda: (write_text("config.yaml", CONFIG), write_text("elsewhere/shades.py", "SHADES = "))),
        *("red", lambda: write_text("elsewhere/shades.py", SHADES)),
        *("red", lambda: active_children()[0].kill()),
        *("red", "red"),
    ]
    assert ask(monkeypatch, *parts) == 0
    said = capsys.readouterr()
    assert [line.partition(":")[0] for line in said.err.splitlines()] == ["error"] * 3
    for line in ("datasets.mine", "load_text() failed", "ended with code -9"):
        assert line in said.err
    answers = said.out.split("Page: ")
    assert len(answers) == 4
    assert active_children() == []


def test_what_cannot_be_searched_at_the_start_ends_it_with_one_line(
    silent: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(monkeypatch, "red", options=["--top", "0"]) == 2
    write_text("config.yaml", "datasets: {mine: {videos: clips}}\n")
    assert ask(monkeypatch, "red") == 2
    said = capsys.readouterr()
    assert said.out == ""
    top, nothing = said.err.splitlines()
    assert top.startswith("error: top must be at least 1")
    assert nothing.startswith("error: mine has neither transcripts nor features")


def test_two_at_once_give_the_same_answers() -> None:
    parsed = Namespace(
        configfile=None, dataset="mine", backbone=None, top=10, window=10.0, video=[], like=None, cut=None, exact=False
    )
    with Loaded(parsed) as one, Loaded(parsed) as other, ThreadPoolExecutor() as pool:
        answers = pool.map(lambda loaded: [loaded.ask(text) for text in ("red", "blue", "red")], (one, other))
        (red, blue, again), others = answers
    assert [red, blue, again] == others
    assert red == again != blue


@pytest.fixture
def silent() -> None:
    """No transcripts, so that no sentence encoder is loaded."""
    for manifest in Path("datasets/mine/transcripts").glob("*/manifests/000.json"):
        manifest.unlink()


def test_a_search_without_a_torch_network_imports_no_torch(silent: None) -> None:
    code = "import sys; from stepline import cli; sys.exit(cli.main(sys.argv[1:]) or 'torch' in sys.modules)"
    command = [sys.executable, "-c", code, *STEPLINE[3:], "red"]
    assert subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0


@pytest.fixture
def at_a_terminal(silent: None) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The prompt of a user at a terminal, and the user's end of that."""
    ours, theirs = pty.openpty()
    code = f"import os, pty; os.login_tty({theirs}); os.execv({STEPLINE[0]!r}, {[*STEPLINE]})"
    with subprocess.Popen([sys.executable, "-c", code], pass_fds=[theirs]) as process:
        os.close(theirs)
        yield process, ours
        process.kill()
    os.close(ours)


def printed(terminal: int, until: bytes) -> bytes:
    said = b""
    while until not in said:
        said += os.read(terminal, 4096)
    return said


def test_a_person_asks_at_a_terminal_and_ctrl_c_ends_it(at_a_terminal: tuple[subprocess.Popen[bytes], int]) -> None:
    process, terminal = at_a_terminal
    printed(terminal, b"search: ")
    os.write(terminal, b"red\n")
    assert b"Page: results/mine/search/red-" in printed(terminal, b"search: ")
    for _ in range(3):  # readline notices a signal just before it waits only with the next one
        os.write(terminal, b"\x03")
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
    assert process.returncode == 130
    assert b"Traceback" not in os.read(terminal, 4096)


def test_the_process_that_searches_ends_with_the_one_that_asks(silent: None) -> None:
    with subprocess.Popen(STEPLINE, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"red\n")
        process.stdin.flush()
        process.stdout.readline()
        (child,) = children(process.pid)
        ended = os.pidfd_open(child)
        process.kill()
        assert select.select([ended], [], [], 60)[0]
        os.close(ended)
        assert process.wait() == -signal.SIGKILL
