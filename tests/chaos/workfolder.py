"""A work folder of three small videos, and its state before and after each verb that nothing disturbs."""

import atexit
import json
import os
import shutil
import subprocess
from collections import Counter
from contextlib import ExitStack
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tests import forked
from tests.asr.deepgram_answers import KEY, keyed, listened
from tests.media.clips import make
from tests.server import Reply, Request, Server

MADE = ("datasets", "features", "results", "weights", ".stepline")
BEFORE = ("fetch", "mine/videos/000")
OF_A_SHARD = ("mine", "--shard", "000")
VERBS = {
    "media": ("media", *OF_A_SHARD),
    "shots": ("shots", *OF_A_SHARD),
    "transcribe": ("transcribe", *OF_A_SHARD),
    "extract": ("extract", *OF_A_SHARD, "--backbone", "histogram"),
}
VIDEOS = ("a", "b", "c")
_kept = ExitStack()
atexit.register(_kept.close)  # before the threads that serve are gone


def heard(request: Request) -> Reply:
    """Return the answer to a chunk: always the same."""
    return listened([(f"Word {len(request.body)}.", 0.1, 0.6)])


@cache
def service() -> Server:
    """Return the recogniser, which ends with this process."""
    return _kept.enter_context(Server(keyed(heard)).running())


@cache
def home() -> Path:
    """Return a folder for what this process keeps."""
    return Path(_kept.enter_context(TemporaryDirectory()))


def video(path: Path, number: int) -> None:
    """Write a video of 3 s with sound."""
    noise = np.random.default_rng(number).integers(-300, 300, 48_000, dtype=np.int16)
    shades = 40 + 20 * number, 200
    make(
        path,
        [Fraction(i, 10) for i in range(30)],
        picture=lambda i: np.full((48, 64, 3), shades[i >= 15], np.uint8),
        audio=noise,
    )


@cache
def before(verb: str, *, replaced: bool) -> Path:
    """Return a work folder before a verb; replaced: all is made already, then one of the videos became another one."""
    folder = home() / f"{verb}-{replaced}"
    (folder / "videos").mkdir(parents=True)
    for number, name in enumerate(VIDEOS):
        video(folder / f"videos/{name}.mp4", number)
    options = {
        "media": {"limits": {"least_s": 600}},
        "features": {"device": "cpu", "decoders": 1},
        "asr": {"engine": "deepgram", "deepgram": {"url": service().url, "concurrency": 1}},
        "shots": {"threshold": 27, "min_shot_s": 0.2},
        "datasets": {"mine": {"videos": "videos", "backbones": ["histogram"]}},
    }
    (folder / "config.yaml").write_text(json.dumps(options))
    if replaced:
        for words in (BEFORE, *VERBS.values()):
            done(folder, words)
        video(folder / "videos/b.mp4", 7)
    done(folder, BEFORE)
    for name, words in VERBS.items():
        if name == verb:
            break
        done(folder, words)
    return folder


def run(
    folder: Path, words: tuple[str, ...], *, fault: str = "kill", at: int = 0
) -> tuple[subprocess.CompletedProcess[str], Counter[str]]:
    """Run a verb with a fault at its ``at``-th change; return what became of it, and the lines of its log, counted."""
    log = home() / "log"
    log.write_text("")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEPLINE_")}
    environment |= {"CHAOS_LOG": str(log), "DEEPGRAM_API_KEY": KEY}
    asked = len(service().requests)
    ended = forked.run("tests.chaos.job", [fault, str(at), *words], folder, environment)
    lines = Counter(log.read_text().splitlines())
    lines["asked"] = len(service().requests) - asked
    return ended, lines


def done(folder: Path, words: tuple[str, ...]) -> Counter[str]:
    """Run a verb that nothing disturbs."""
    ended, lines = run(folder, words)
    assert ended.returncode == 0, f"{' '.join(words)}: {ended.stderr[-2000:]}"
    return lines


@cache
def undisturbed(verb: str, *, replaced: bool) -> tuple[dict[str, bytes], Counter[str]]:
    """Return what a verb makes, and the lines of its log, counted."""
    with TemporaryDirectory() as name:
        folder = copied(verb, Path(name, "work"), replaced=replaced)
        lines = done(folder, VERBS[verb])
        return content(folder), lines


def copied(verb: str, folder: Path, *, replaced: bool) -> Path:
    """Copy the work folder before a verb."""
    return Path(shutil.copytree(before(verb, replaced=replaced), folder, symlinks=True))


def content(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files that Stepline writes except times, by path; b"" for folders and links."""
    found = (path for name in MADE for path in (folder / name).rglob("*") if "rates" not in path.parts)
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        for path in found
    }


def differences(ours: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    """Return a line on each path that one has and the other has not, or has with other bytes."""
    return [
        f"{path}: {'left over' if path not in expected else 'absent' if path not in ours else 'other bytes'}"
        for path in sorted(ours.keys() | expected.keys())
        if ours.get(path) != expected.get(path)
    ]
