"""Clips of several videos in one batch."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch

from stepline import config
from stepline.availability import Record, read_manifest
from stepline.backbones import registry
from stepline.errors import StoreError
from stepline.features.bank import Bank
from stepline.features.cache import FeatureCache
from stepline.features.encoder import Encoder
from stepline.features.frames import Begun
from stepline.features.mixed import Mixed
from stepline.features.network import Network
from tests.features import toy
from tests.features.test_extract import present, store
from tests.features.test_networks import bank, shard, work
from tests.media.clips import CFR_25, make

VIDEO = replace(toy.SPEC, hop=1)
MIXED = replace(VIDEO, name="mixed", batches="mixed")


@pytest.fixture(autouse=True)
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of the batches that the network sees."""
    found = []
    forward = toy.Toy.forward

    def noted(self: toy.Toy, clips: torch.Tensor) -> torch.Tensor:
        found.append(len(clips))
        return forward(self, clips)

    monkeypatch.setitem(registry.FAMILIES, "toy", "tests.features.toy")
    monkeypatch.setattr(toy.Toy, "forward", noted)
    return found


def test_batches_are_full_and_rows_are_those_of_the_videos(tmp_path: Path, sizes: list[int]) -> None:
    videos = [make(tmp_path / f"{name}.mp4", CFR_25[: 30 + 9 * i]) for i, name in enumerate("abcd")]
    (tmp_path / "bad.mp4").write_text("no video")
    rows = {}
    for decoders in (1, 3):
        folder = tmp_path / str(decoders)
        folder.mkdir()
        shard(folder, *map(present, [*videos, tmp_path / "bad.mp4"]))
        del sizes[:]
        store(folder, work(folder, MIXED), batch_size=8, decoders=decoders)
        rows[decoders] = {name: np.asarray(bank(folder, MIXED).rows[name]) for name in "abcd"}
        assert sizes == [8] * -(-sum(map(len, rows[decoders].values())) // 8)
    assert read_manifest(folder / "manifest.json")["bad"]["status"] == "failed"
    store(folder, work(folder, VIDEO), batch_size=8)
    for name in "abcd":
        assert rows[1][name].tobytes() == rows[3][name].tobytes()
        apart = rows[1][name].view(np.int16).astype(int) - bank(folder, VIDEO).rows[name].view(np.int16)
        assert np.abs(apart).max() <= 1


def test_a_clip_s_row_depends_on_neither_place_nor_neighbours() -> None:
    network = Network(MIXED, toy.load(MIXED, {}), "cpu", 8)
    clips = np.random.default_rng(0).integers(0, 256, (8, 4, 32, 32, 3), np.uint8)
    shown = np.ones((8, 4), bool)
    rows = network(clips, shown)
    assert np.roll(network(np.roll(clips, 3, 0), shown), -3, 0).tobytes() == rows.tobytes()
    clips[1:] = 0
    assert network(clips, shown)[0].tobytes() == rows[0].tobytes()


class Corner:
    """Returns the first value of each clip."""

    batch_size = 4

    def __call__(self, clips: np.ndarray, shown: np.ndarray) -> np.ndarray:
        return np.repeat(clips[:, 0, 0, 0, :1].astype(np.float32), MIXED.dimension, axis=1)


def test_clips_from_before_a_restart_make_no_rows_of_the_batch_that_they_share(tmp_path: Path) -> None:
    record = Record(video="a", status="present", path="a.mp4", sha256="a" * 64, duration_s=3.0)
    begun = Begun(0, np.arange(3), np.arange(3), np.zeros(3, np.int64))
    clips, shown = np.zeros((3, 4, 2, 2, 3), np.uint8), np.ones((3, 4), bool)
    clips[:] = np.array([5, 6, 7])[:, None, None, None, None]
    cache = FeatureCache(MIXED, tmp_path / "000", {})
    mixed = Mixed(cast(Encoder, Corner()), cache)
    cache.begin(record, begun)
    mixed.add(record, 2 * clips[:2], shown[:2])
    cache.begin(record, begun)
    mixed.add(record, clips, shown)
    mixed.rest()
    cache.finish(record)
    cache.commit([record])
    assert Bank.open([tmp_path / "000"], MIXED)["a"][:, 0].tolist() == [5, 6, 7]


def test_a_network_that_fails_at_the_last_batch_stops_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int]
) -> None:
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25[:30])))
    monkeypatch.setattr(toy.Toy, "forward", lambda self, clips: clips)
    with pytest.raises(StoreError, match="^mixed: its output pooled has the shape"):
        store(tmp_path, work(tmp_path, MIXED), batch_size=64)


def test_it_is_part_of_the_spec_where_it_is_used() -> None:
    assert "batches" not in VIDEO.record()
    assert replace(VIDEO, batches="mixed").id != VIDEO.id
    Path("config.yaml").write_text("features: {batches: mixed}")
    assert registry.resolve("s3d-htstep", config.load(Path("config.yaml"))).batches == "mixed"
