"""What jobs ask for follows from what they read and run."""

from dataclasses import replace
from pathlib import Path

import pytest

from stepline import resources
from stepline.benchmarks.hirest.benchmark import Hirest
from stepline.config import validate
from stepline.pipeline import Pipeline
from stepline.plans import pipeline
from stepline.resources import CAPTIONS_MB, CORE_MB, LIGHT, NETWORK_MB

WEIGHTS_MB = 100


def of_a_list(hours: float, **given: object) -> Pipeline:
    Path("list.csv").write_text(f"video,url,duration_s\na,http://127.0.0.1/a.mp4,{hours * 3600}\n")
    backbones = given.pop("backbones", ["histogram"])
    mine = {"kind": "list", "videos": "list.csv", "backbones": backbones}
    return pipeline(validate({"datasets": {"mine": mine}, **given}), "mine")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mirror").mkdir()
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))


def test_a_later_attempt_asks_for_more() -> None:
    assert [LIGHT.at(n).mem_mb for n in (1, 2, 3)] == [CORE_MB, 2 * CORE_MB, 3 * CORE_MB]
    assert [LIGHT.at(n).runtime for n in (1, 2, 3)] == [30, 60, 90]
    assert LIGHT.at(3).disk_mb == LIGHT.disk_mb


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


def test_a_network_asks_for_its_weights_and_a_gpu(tmp_path: Path) -> None:
    folder = tmp_path / "mirror/weights/s3d"
    folder.mkdir(parents=True)
    for name in ("s3d_howto100m.pth", "s3d_dict.npy"):
        (folder / name).write_bytes(b"")
    networks = {"backbones": ["s3d-pss", "histogram"]}
    light = resources.of_extract(of_a_list(1, **networks), "000", gpu=True)
    (folder / "s3d_howto100m.pth").write_bytes(bytes(WEIGHTS_MB * 10**6))
    heavy = resources.of_extract(of_a_list(1, **networks), "000", gpu=True)
    assert heavy.mem_mb - light.mem_mb == 3.5 * WEIGHTS_MB
    assert heavy.gpu == 1
    assert resources.of_extract(of_a_list(1, **networks), "000", gpu=False).gpu is None
    assert resources.of_extract(of_a_list(1), "000", gpu=True).gpu is None


def test_captions_want_memory_and_heads_a_gpu() -> None:
    plan = Hirest.of(validate({"hirest": {}}), "hirest")
    asked = {job.entry.kind.scored_in: resources.of_score(job).mem_mb for job in plan.jobs()}
    assert asked == {"core": CORE_MB, "captions": CAPTIONS_MB}
    job = next(plan.jobs())
    head = replace(job, entry=replace(job.entry, kind=replace(job.entry.kind, gpu=True, environment="vision")))
    by_gpu = [resources.of_entry(head, [], fit=True, gpu=gpu) for gpu in (True, False)]
    assert [each.gpu for each in by_gpu] == [1, None]
    assert {each.mem_mb for each in by_gpu} == {NETWORK_MB}
