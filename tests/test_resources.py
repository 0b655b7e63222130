"""What jobs ask for follows from what they read and run."""

import re
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest

from stepline import resources
from stepline.backbones.weights import WEIGHTS, File
from stepline.benchmarks.hirest.benchmark import Hirest
from stepline.config import validate
from stepline.pipeline import Pipeline
from stepline.plans import pipeline
from stepline.resources import CAPTIONS_MB, CORE_MB, LIGHT, LOADING, LOCAL, MB, NETWORK_MB, ROW_BYTES, SPEECH_MINUTES
from tests.conftest import ROOT
from tests.workflow.test_rules import RULES

WEIGHTS_MB = 100
PAGE = (ROOT / "docs/clusters.md").read_text()
TABLE = re.search(r"\| rule \|.*\n.*\n((?:\|.*\n)+)", PAGE)
ROWS = {
    rule: (memory, minutes)
    for line in (TABLE[1].splitlines() if TABLE else ())
    for rule, memory, minutes, _ in [[cell.strip() for cell in line.strip("|").split("|")]]
}
SPOKEN = {
    "PocketSphinx": "pocketsphinx",
    "Whisper": "whisper",
    "faster-whisper": "faster_whisper",
    "Deepgram": "deepgram",
}
GIVEN = {"media": {"limits": {"memory_mb": 700}}, "features": {"decoders": 3}}


def of_a_list(hours: float, **given: object) -> Pipeline:
    Path("list.csv").write_text(f"video,url,duration_s\na,http://127.0.0.1/a.mp4,{hours * 3600}\n")
    backbones = given.pop("backbones", ["histogram"])
    mine = {"kind": "list", "videos": "list.csv", "backbones": backbones}
    return pipeline(validate({"datasets": {"mine": mine}, **given}), "mine")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mirror").mkdir()
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))


def test_time_and_disk_grow_with_the_videos() -> None:
    for of in (resources.of_videos, resources.of_media):
        short, long = of(of_a_list(1), "000"), of(of_a_list(10), "000")
        assert short.runtime < long.runtime
        assert long.disk_mb == 10 * short.disk_mb
        assert short.mem_mb == long.mem_mb


def test_a_decoder_has_the_memory_that_it_may_take() -> None:
    def asked(memory_mb: int, decoders: int) -> int:
        given = of_a_list(1, media={"limits": {"memory_mb": memory_mb}}, features={"decoders": decoders})
        return resources.of_extract(given, "000", gpu=False).mem_mb

    assert asked(3000, 4) - asked(1000, 4) == 8000
    media = resources.of_media(of_a_list(1, media={"limits": {"memory_mb": 5000}}), "000")
    assert media.mem_mb == CORE_MB + 5000


@pytest.fixture
def s3d(tmp_path: Path) -> Path:
    """The folder of S3D's weights, files without content: its backbones are computed."""
    folder = tmp_path / "mirror/weights/s3d"
    folder.mkdir(parents=True)
    for name in ("s3d_howto100m.pth", "s3d_dict.npy"):
        (folder / name).write_bytes(b"")
    return folder


def test_a_network_asks_for_its_weights_and_a_gpu(s3d: Path) -> None:
    networks = {"backbones": ["s3d-pss", "histogram"]}
    light = resources.of_extract(of_a_list(1, **networks), "000", gpu=True)
    (s3d / "s3d_howto100m.pth").write_bytes(bytes(WEIGHTS_MB * 10**6))
    heavy = resources.of_extract(of_a_list(1, **networks), "000", gpu=True)
    assert heavy.mem_mb - light.mem_mb == 3.5 * WEIGHTS_MB
    assert heavy.gpu == 1
    assert resources.of_extract(of_a_list(1, **networks), "000", gpu=False).gpu is None
    assert resources.of_extract(of_a_list(1), "000", gpu=True).gpu is None


def test_of_optional_files_those_that_are_there_count(s3d: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (s3d / "s3d_howto100m.pth").write_bytes(b"1234")
    files = (File(name="settings.json", optional=True), *WEIGHTS["s3d"].files)
    monkeypatch.setitem(WEIGHTS, "s3d", replace(WEIGHTS["s3d"], files=files))
    assert resources._weights_bytes("s3d") == 4
    (s3d / "settings.json").write_bytes(b"{}")
    assert resources._weights_bytes("s3d") == 6


def test_captions_want_memory_and_heads_a_gpu() -> None:
    plan = Hirest.of(validate({"hirest": {}}), "hirest")
    asked = {job.entry.kind.scored_in: resources.of_score(job).mem_mb for job in plan.jobs()}
    assert asked == {"core": CORE_MB, "networks": CAPTIONS_MB}
    job = next(plan.jobs())
    head = replace(job, entry=replace(job.entry, kind=replace(job.entry.kind, gpu=True, environment="networks")))
    by_gpu = [resources.of_entry(head, [], fit=True, gpu=gpu) for gpu in (True, False)]
    assert [each.gpu for each in by_gpu] == [1, None]
    assert {each.mem_mb for each in by_gpu} == {NETWORK_MB}


def test_an_entry_that_decodes_has_the_memory_of_a_decoder() -> None:
    job = next(Hirest.of(validate({"hirest": {}}), "hirest").jobs())
    given = of_a_list(1, media={"limits": {"memory_mb": 5000}})
    asked = []
    for decoded in (False, True):
        made = replace(job, entry=replace(job.entry, features="", kind=replace(job.entry.kind, decoded=decoded)))
        asked.append(resources.of_entry(made, [given], fit=False, gpu=False).mem_mb)
    assert asked[1] - asked[0] == 5000


def test_a_group_of_features_has_time_for_each_network_once(s3d: Path) -> None:
    """A group asks for the sum of its jobs' time; 15 minutes for an hour and a network, on a GPU."""
    one, two = ["histogram", "s3d-pss"], ["histogram", "s3d-pss", "s3d-oepp"]
    asked = [len(n) * resources.of_extract(of_a_list(10, backbones=n), "000", gpu=True).runtime for n in (one, two)]
    hours = of_a_list(10).videos.hours("000")
    assert 0 <= asked[1] - asked[0] - 15 * hours < len(two)


def value(formula: str, hours: int) -> float:
    """Return what a sum of products is, where there are no weights."""
    known = {"h": hours, "d": 700, "n": 3, "w": 0}
    return sum(prod(float(known.get(word, word)) for word in term.split()) for term in formula.split(" + "))


@pytest.mark.parametrize("backbones", [["histogram"], ["s3d-pss", "s3d-oepp", "histogram"]])
def test_the_page_on_clusters_says_what_stages_on_videos_ask_for(backbones: list[str], s3d: Path) -> None:
    pipeline = of_a_list(7, backbones=backbones, **GIVEN)
    hours = pipeline.videos.hours("000")
    asked = {
        "`videos`": resources.of_videos(pipeline, "000"),
        "`media`, `thumbnails`": resources.of_media(pipeline, "000"),
    }
    asked["`transcribe` by PocketSphinx"] = resources.of_transcribe(pipeline, "000", gpu=False)
    for rule, found in asked.items():
        assert [found.mem_mb, found.runtime] == [value(formula, hours) for formula in ROWS[rule]]
    networks = len(backbones) - 1
    memory, minutes = ROWS["`extract` with networks, in all" if networks else "`extract` without networks"]
    alone, of_each = re.fullmatch(r"(60 \+ 10 h)(?:, and (.*))?", minutes).groups()
    for gpu, each in zip((False, True), re.findall(r"\d+ h", of_each or "0 h and 0 h"), strict=True):
        found = resources.of_extract(pipeline, "000", gpu=gpu)
        assert found.mem_mb == value(memory, hours)
        asked_in_all = found.runtime * len(backbones)
        assert 0 <= asked_in_all - value(alone, hours) - networks * value(each, hours) < len(backbones)


def test_the_page_on_clusters_says_what_others_ask_for() -> None:
    for name, engine in SPOKEN.items():
        assert ROWS[f"`transcribe` by {name}"][1].startswith(f"30 + {SPEECH_MINUTES[engine]} h")
    assert ROWS["all others"] == (str(LIGHT.mem_mb), str(LIGHT.runtime))
    assert ROWS["`encode`, `clusters`"] == (f"{NETWORK_MB} + {LOADING} w", str(resources.of_encode("minilm").runtime))
    assert ROWS["`score`"][0] == f"{CORE_MB}; captions {CAPTIONS_MB}"
    of_hour = 3600 * ROW_BYTES / MB
    assert ROWS["`fit`, `predict`"][0].startswith(
        f"{CORE_MB}, with torch {NETWORK_MB}, and {of_hour:.1f} for each hour"
    )


def test_the_page_on_clusters_names_rules() -> None:
    assert {name for rule in ROWS for name in re.findall(r"`(\w+)`", rule)} <= set(RULES)
    named = re.search(r"^(`table`.*) take seconds and run on the login node", PAGE, re.MULTILINE)
    assert named
    assert {*LOCAL} == {*re.findall(r"`(\w+)`", named[1])}
