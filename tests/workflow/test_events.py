"""What is computed again when something happens to videos, backbones, weights and settings: jobs and decodes counted.

After each event one run makes the table that the records as they are then give anew, and a second run does nothing.
"""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import pytest

from stepline.cli import main
from tests import forked
from tests.conftest import ROOT, snakemake
from tests.media.clips import make
from tests.workflow.runs import by_video, messages, network

pytest.importorskip("av")
pytest.importorskip("torch")
pytestmark = pytest.mark.slow
TABLE = "results/mine/videos.csv"
LOST = "from stepline.errors import StoreError; raise StoreError('it does not load')"


@dataclass
class Study:
    """A work folder, and what should be true of it. made: pairs of video and backbone version that stores hold."""

    folder: Path
    videos: dict[str, int] = field(default_factory=dict)
    backbones: dict[str, int] = field(default_factory=dict)
    fps: dict[str, int] = field(default_factory=lambda: {"one": 1, "two": 2, "heavy": 4})
    failing: set[str] = field(default_factory=set)
    weights: bool = False
    least_s: int = 600
    made: set[tuple[str, str, int]] = field(default_factory=set)

    def write(self) -> None:
        """Write the configuration and the networks."""
        for name, revision in self.backbones.items():
            weights = ("egovlp",) if name == "heavy" else ()
            more = {"weights": weights, "fps": self.fps[name], "before": LOST if name in self.failing else ""}
            (self.folder / f"{name}.py").write_text(network(name, revision=revision, frames=2, **more))
        config = {
            "datasets": {"mine": {"videos": "videos", "backbones": ["histogram", *self.backbones]}},
            "backbones": {name: {"path": f"{name}.py"} for name in self.backbones},
            "features": {"device": "cpu"},
            "asr": {"engine": "deepgram"},
            "media": {"limits": {"least_s": self.least_s}},
            "shard_hours": 1e-3,
        }
        (self.folder / "mine.yaml").write_text(json.dumps(config))

    def add(self, video: str, seconds: int = 2) -> None:
        times = [Fraction(i, 10) for i in range(10 * seconds)]
        (self.folder / "videos").mkdir(exist_ok=True)
        make(self.folder / "videos" / f"{video}.mp4", times)
        self.videos[video] = seconds

    def lose(self, video: str) -> None:
        (self.folder / "videos" / f"{video}.mp4").unlink()
        del self.videos[video]

    def bring_weights(self) -> None:
        folder = self.folder / "weights/egovlp"
        folder.mkdir(parents=True)
        for file in ("EgoVLP_PT_BEST.pth", "tokenizer.json"):
            (folder / file).write_text(file)
        self.weights = True

    def working(self) -> dict[str, int]:
        """Return the backbones that have what they need, and do not fail."""
        missing = self.failing | (set() if self.weights else {"heavy"})
        return {"histogram": 1} | {name: by for name, by in self.backbones.items() if name not in missing}

    def expected(self) -> set[tuple[str, str, int]]:
        return {(video, *backbone) for video in self.videos for backbone in self.working().items()}

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        shutil.rmtree(self.folder / "logs/extract", ignore_errors=True)
        options = "--cores", "2", "--keep-going", "--configfile", "mine.yaml", *options
        return snakemake(*options, "--", TABLE, folder=self.folder)

    def decoded(self) -> int:
        """Return how many times the last run decoded a video for features."""
        logs = "".join(path.read_text() for path in (self.folder / "logs/extract").rglob("*.log"))
        return sum(map(int, re.findall(r"features: \d+/(\d+) videos", logs)))

    def check(self, what: str) -> None:
        """Run, and compare jobs, decodes and the table with what must be."""
        self.write()
        new = self.expected() - self.made
        done = self.run()
        assert (done.returncode == 0) == (not self.failing), f"{what}: {done.stderr}"
        assert self.decoded() == len({video for video, *_ in new}), f"{what}: {messages(done)}"
        self.made = {each for each in self.made | new if each[0] in self.videos}
        if self.failing:
            return
        rows = by_video(self.folder, TABLE)
        assert sorted(rows) == sorted(self.videos), what
        for video, row in rows.items():
            assert row["status"] == "present", what
            for backbone in self.working():
                per_s = {"histogram": 5}.get(backbone, 1)
                assert row[backbone] == str(per_s * self.videos[video]), what
        before = (self.folder / TABLE).read_bytes()
        again = self.run()
        assert messages(again) == [], f"{what}, again: {again.stderr}"
        (self.folder / TABLE).unlink()
        summary = ["--configfile", "mine.yaml", "summary", "mine"]
        done = forked.run("stepline", summary, self.folder, dict(os.environ))
        assert done.returncode == 0, done.stderr
        assert (self.folder / TABLE).read_bytes() == before, what

    def check_empty_results(self) -> None:
        """Remove them, and compare the table of the next run."""
        before = (self.folder / TABLE).read_bytes()
        shutil.rmtree(self.folder / "results")
        assert messages(self.run()) == [TABLE]
        assert (self.folder / TABLE).read_bytes() == before


@pytest.fixture
def study(tmp_path: Path) -> Study:
    made = Study(tmp_path)
    made.add("a")
    made.add("b", seconds=3)
    made.backbones = {"one": 1, "two": 1}
    return made


def test_each_event_makes_what_it_concerns_and_nothing_else(study: Study) -> None:
    study.check("first run")
    study.add("c")
    study.lose("b")
    study.check("a video more, and one lost")
    study.add("b", seconds=3)
    study.least_s = 601
    study.check("a video back, and another limit")
    study.backbones["one"] = 2
    study.check("a backbone changed")
    study.backbones["one"] = 1
    study.backbones["heavy"] = 1
    study.check("it changed back, and one more, whose weights are absent")
    study.bring_weights()
    study.check("its weights are there")
    study.failing = {"two"}
    study.backbones["two"] = 2
    study.backbones["one"] = 3
    study.check("two backbones changed, of which one fails")
    study.failing = set()
    study.check("it fails no longer")
    del study.backbones["two"]
    stores = study.folder.glob("features/one/*/mine/000/features/c/0/0")
    store = max(stores, key=lambda path: path.stat().st_mtime_ns)
    store.write_bytes(b"?" + store.read_bytes()[1:])
    assert main(["verify"]) == 2
    study.made = {each for each in study.made if each[:2] != ("a", "one")}
    study.check("a backbone less, and damage that was found")
    study.check_empty_results()


def test_no_rule_hides_what_changed() -> None:
    for path in [ROOT / "Snakefile", *(ROOT / "workflow").rglob("*.smk")]:
        assert "ancient" not in path.read_text(encoding="utf-8"), path
