"""A small data set, what a run makes of it, and what a run from scratch does."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests import forked
from tests.asr.deepgram_answers import KEY, keyed, listened
from tests.conftest import snakemake
from tests.media.clips import make
from tests.server import Reply, Request, Server
from tests.workflow.runs import network

OPTIONS: dict[str, Any] = {
    "media": {"limits": {"least_s": 600}, "keep": "all"},
    "features": {"device": "cpu", "batch_size": None},
    "shots": {"threshold": 27, "min_shot_s": 0.2},
    "asr": {"engine": "deepgram"},
    "shard_hours": 1e-3,
}
FPS = {"one": 1, "two": 2}
"""Of the networks by name."""


@cache
def clip(number: int) -> bytes:
    """Return the bytes of a small clip: 1 to 3 s with a cut, every third one silent, some in Matroska."""
    frames = 10 * (1 + number % 3)
    shades = 40 + 17 * number % 100, 200 + number % 50
    noise = np.random.default_rng(number).integers(-300, 300, 1600 * frames, dtype=np.int16)
    with TemporaryDirectory() as folder:
        path = make(
            Path(folder, "clip.mp4" if number % 4 else "clip.mkv"),
            [Fraction(i, 10) for i in range(frames)],
            picture=lambda i: np.full((48, 64, 3), shades[i >= frames // 2], np.uint8),
            audio=noise if number % 3 else None,
        )
        return path.read_bytes()


@contextmanager
def recogniser() -> Iterator[Server]:
    """A service that hears in each sound a word of its own."""

    def heard(request: Request) -> Reply:
        return listened([(f"Word {hashlib.sha256(request.body).hexdigest()[:8]}.", 0.1, 0.6)])

    with Server(keyed(heard)).running() as server:
        yield server


@dataclass
class Study:
    """A work folder ``folder`` and its inputs: files in ``videos/``, ``options``, networks with a revision, the key.

    service: the address of the recogniser.
    """

    folder: Path
    service: str
    options: dict[str, Any] = field(default_factory=lambda: json.loads(json.dumps(OPTIONS)))
    backbones: list[str] = field(default_factory=lambda: ["histogram", "one"])
    revisions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FPS, 1))
    key: bool = True

    @property
    def videos(self) -> Path:
        return self.folder / "videos"

    def files(self) -> list[str]:
        """Return the names of the video files, sorted."""
        return sorted(path.relative_to(self.videos).as_posix() for path in self.videos.rglob("*") if path.is_file())

    def put(self, name: str, content: bytes) -> None:
        """Write a video file, as a camera or a copy does: not atomically."""
        path = self.videos / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def write(self) -> None:
        """Write the configuration and the networks; a file that is as it should be stays as it is."""
        for name, fps in FPS.items():
            self._write(f"{name}.py", network(name, fps=fps, frames=2, revision=self.revisions[name]))
        asr = self.options["asr"] | {"deepgram": {"url": self.service} | self.options["asr"].get("deepgram", {})}
        mine = {"videos": "videos", "backbones": self.backbones}
        networks = {name: {"path": f"{name}.py"} for name in self.backbones if name in FPS}
        config = self.options | {"asr": asr, "datasets": {"mine": mine}, "backbones": networks}
        self._write("mine.yaml", json.dumps(config, indent=1))

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)

    def state(self) -> str:
        """Return a digest of all that decides what a run makes."""
        contents = {name: hashlib.sha256((self.videos / name).read_bytes()).hexdigest() for name in self.files()}
        known = [contents, self.options, self.backbones, self.revisions, self.key]
        return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the workflow with the inputs as they are now."""
        self.write()
        options = "--cores", "2", "--configfile", "mine.yaml", *options
        return snakemake(*options, folder=self.folder, DEEPGRAM_API_KEY=KEY if self.key else "")

    def outcome(self) -> dict[str, Any]:
        """Return what the folder holds, as `tests.chaos.outcome` prints it."""
        done = forked.run("tests.chaos.outcome", [], self.folder, dict(os.environ))
        assert done.returncode == 0, f"what was made cannot be read:\n{done.stderr[-4000:]}"
        outcome: dict[str, Any] = json.loads(done.stdout)
        return outcome

    def compare(self) -> None:
        """Hold the folder to what a run from scratch makes of the same inputs.

        Features of files that were deleted may be there, until `stepline gc`; no table and no page lists such a file.
        """
        ours, fresh = self.outcome(), from_scratch(self)
        here = set(ours["csv"])
        assert here == set(fresh["csv"]), f"videos {sorted(here)}, from scratch {sorted(fresh['csv'])}"
        for table in ("csv", "md"):
            for video in here:
                mine, new = ours[table][video], fresh[table][video]
                assert mine == new, f"videos.{table} of {video}: {mine}\nfrom scratch: {new}"
        read = [video for video in here if fresh["csv"][video]["status"] in ("present", "partial")]
        for video in read:
            for path, digest in ours["made"][video].items():
                expected = fresh["made"][video].get(path)
                assert digest == expected, f"{path} is {digest}, from scratch {expected}"
        for backbone, rows in ours["rows"].items():
            there, new = {video: rows[video] for video in rows if video in here}, fresh["rows"][backbone]
            assert there == new, f"features by {backbone}: {rows}, from scratch {new}"
        assert ours["page"] == fresh["page"], "the page is not that of a run from scratch"


_made: dict[str, dict[str, Any]] = {}


def from_scratch(study: Study) -> dict[str, Any]:
    """Return what a run makes of the inputs of ``study`` in an empty folder; each state is run once."""
    if (state := study.state()) not in _made:
        with TemporaryDirectory() as folder:
            shutil.copytree(study.videos, Path(folder, "videos"))
            fresh = Study(Path(folder), study.service, study.options, study.backbones, study.revisions, study.key)
            done = fresh.run()
            assert done.returncode == 0, f"from scratch: exit code {done.returncode}:\n{done.stderr[-4000:]}"
            _made[state] = fresh.outcome()
    return _made[state]
