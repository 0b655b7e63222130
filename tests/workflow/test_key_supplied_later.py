"""What needs a key waits for it; once it is there, the next plain run computes that, and nothing else."""

import json
import shutil
import wave
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepline.availability import read_manifest
from stepline.datasets import demo
from tests.asr.deepgram_answers import KEY, keyed, listened, pcm
from tests.conftest import ROOT, made_once
from tests.server import Reply, Request, Server
from tests.workflow.runs import rows, run

pytest.importorskip("av")
pytestmark = pytest.mark.slow
TABLE, REPORT = "results/demo/table2.csv", "results/demo/report.html"
COMMAND = f"snakemake --snakefile {ROOT / 'Snakefile'} --cores 8 {TABLE} --config 'demo={{releases: [demo], "
"""With the options that the run was started with."""
STUDY: dict[str, Any] = {
    "releases": ["demo"],
    "transcripts": "asr",
    "text_encoders": ["tfidf"],
    "video_encoders": ["histogram"],
    "contexts_s": {"step_recognition": [4], "intra-video_retrieval": []},
    "entries": {name: {"target": "tableA9"} for name in ("2a-order-alone", "2a-tfidf-stems-hmm")},
}
ZERO_SHOT = ("tfidf-zero-shot", "tfidf-train-zero-shot", "tfidf-stems-zero-shot", "tfidf-histogram")
TFIDF = [*(f"2a-{name} on demo at 4s" for name in ZERO_SHOT), "2a-tfidf-hmm on demo at all"]
WANTING = sorted(
    [f"{verb} {entry}" for entry in TFIDF for verb in ("predict", "score")]
    + ["fit 2a-tfidf-hmm on demo at all, seed 0", TABLE, "transcripts of demo, shard 000, by deepgram"]
)
FIRST = sorted([*WANTING, *(f"samples of demo demo, step_recognition {split}" for split in ("train", "val"))])
MANIFEST = "datasets/demo/transcripts/deepgram/manifests/000.json"


def arguments(url: str, **options: str) -> list[str]:
    asr = {"engine": "deepgram", "deepgram": {"url": url, **options}}
    return ["--config", f"demo={json.dumps(STUDY)}", f"asr={json.dumps(asr)}", "--", TABLE]


@pytest.fixture(scope="session")
def keyless_study(demo_mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder in which the demo has run without a key; nobody was asked."""

    def compute(folder: Path) -> None:
        run(*arguments("http://127.0.0.1:9"), REPORT, folder=folder, mirror=demo_mirror)

    return made_once(tmp_path_factory, "keyless-study", compute)


@pytest.fixture
def keyless(keyless_study: Path, tmp_path: Path) -> Path:
    """A copy of that work folder."""
    return Path(shutil.copytree(keyless_study, tmp_path / "keyless", symlinks=True))


class Service(Server):
    """Knows the demo's recordings by their sound, hears what their script says, and refuses one where told to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(keyed(self._answer))
        self.refused = ""
        self.heard: Counter[str] = Counter()
        self._by_sound = {}
        for path in folder.glob("datasets/demo/media/*/audio.wav"):
            with wave.open(str(path)) as file:
                self._by_sound[file.readframes(file.getnframes())] = path.parent.name

    def _answer(self, request: Request) -> Reply:
        video = self._by_sound[pcm(request)]
        self.heard[video] += 1
        return Reply(400) if video == self.refused else listened(demo.sentences(video))


@pytest.fixture
def service(keyless: Path) -> Iterator[Service]:
    """The running service."""
    service = Service(keyless)
    with service.running():
        yield service


def wants_key(row: dict[str, str]) -> bool:
    return row["method"].startswith("TF-IDF")


def stamps(folder: Path) -> dict[Path, int]:
    made = [*(folder / "results").rglob("*.parquet"), *(folder / "features").rglob("*")]
    return {path: path.stat().st_mtime_ns for path in made if path.is_file()}


def test_without_the_key_all_else_is_computed(keyless_study: Path) -> None:
    lines = rows(keyless_study, TABLE)
    wanting = [row for row in lines if wants_key(row)]
    methods = {"TF-IDF", "TF-IDF (train)", "TF-IDF (stems)", "TF-IDF and histogram", "TF-IDF and order"}
    assert {row["method"] for row in wanting} == methods
    for row in wanting:
        assert (row["status"], row["value"]) == ("needs", "")
        assert "needs key:DEEPGRAM_API_KEY" in row["note"]
        assert row["command"].startswith(f"export DEEPGRAM_API_KEY=... && {COMMAND}")
    others = [row for row in lines if not wants_key(row)]
    assert {"Random", "Linear in time", "Equal segments", "Histogram"} <= {row["method"] for row in others}
    assert all(row["value"] and not row["command"] for row in others)
    assert not (keyless_study / "datasets/demo/transcripts").exists()


def test_the_key_fills_what_wanted_it_and_nothing_else(keyless: Path, service: Service, demo_mirror: Path) -> None:
    before, made = rows(keyless, TABLE), stamps(keyless)
    again = arguments(service.url)
    assert run(*again, folder=keyless, mirror=demo_mirror, DEEPGRAM_API_KEY=KEY) == FIRST
    assert service.heard == dict.fromkeys((video.id for video in demo.videos()), 1)
    after = rows(keyless, TABLE)
    assert [row for row in after if not wants_key(row)] == [row for row in before if not wants_key(row)]
    assert made.items() <= stamps(keyless).items()
    accuracy = [row for row in after if row["metric"] == "accuracy"]
    [chance] = [float(row["value"]) for row in accuracy if row["method"] == "Random"]
    for row in filter(wants_key, accuracy):
        assert row["setting"] == "tuned" or float(row["value"]) > 1.5 * chance, row
        assert row["n_videos"] == row["n_listed"]

    assert run(*again, folder=keyless, mirror=demo_mirror, DEEPGRAM_API_KEY=KEY) == []
    assert run(*again, folder=keyless, mirror=demo_mirror) == [], "all transcripts are there: no key is needed"
    other = arguments(service.url, model="nova-2")
    assert run("--dry-run", *other, folder=keyless, mirror=demo_mirror, DEEPGRAM_API_KEY=KEY) == WANTING
    assert run("--dry-run", *other, folder=keyless, mirror=demo_mirror) == [TABLE], "these transcripts are not there"
    assert [path for path in keyless.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == []


def test_a_recording_that_failed_is_asked_for_again(keyless: Path, service: Service, demo_mirror: Path) -> None:
    service.refused = next(video.id for video in demo.videos() if video.split == "test")
    again = arguments(service.url)
    assert run(*again, folder=keyless, mirror=demo_mirror, DEEPGRAM_API_KEY=KEY) == FIRST
    record = read_manifest(keyless / MANIFEST)[service.refused]
    assert record["status"] == "failed"
    assert "HTTP 400" in record["reason"]
    assert all(row["n_videos"] == "1" and row["n_listed"] == "2" for row in rows(keyless, TABLE) if wants_key(row))

    recovered, service.refused = service.refused, ""
    service.heard.clear()
    assert run(*again, folder=keyless, mirror=demo_mirror, DEEPGRAM_API_KEY=KEY) == WANTING
    assert service.heard == {recovered: 1}
    assert all(row["n_videos"] == "2" for row in rows(keyless, TABLE) if wants_key(row))
    assert run(*again, folder=keyless, mirror=demo_mirror, DEEPGRAM_API_KEY=KEY) == []


def test_nobody_reached_is_a_line_that_says_so(keyless: Path, demo_mirror: Path) -> None:
    run(*arguments("http://127.0.0.1:9"), folder=keyless, mirror=demo_mirror, DEEPGRAM_API_KEY=KEY)
    for row in filter(wants_key, rows(keyless, TABLE)):
        assert row["status"] == "needs"
        assert "needs transcripts:demo" in row["note"]
        assert row["command"].startswith(COMMAND)
