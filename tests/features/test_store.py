from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepline.backbones.histogram import HistogramSpec
from stepline.errors import StoreError
from stepline.features import store
from stepline.features.bank import Bank
from stepline.io import write_json

zarr = pytest.importorskip("zarr")
SPEC = HistogramSpec()
HOP_S = 0.2


def rows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n, 7), np.float32)


@pytest.mark.parametrize("lengths", [(3,), (256,), (200, 400, 1), (1, 255), (513, 511)])
def test_rows_come_back_and_are_mapped(tmp_path: Path, lengths: tuple[int, ...]) -> None:
    parts = {f"v{i}": rows(n, i) for i, n in enumerate(lengths)}
    parts["v0"] *= 0  # a chunk of zeros must not be left out
    store.write(tmp_path / "s", SPEC, parts, HOP_S)
    assert isinstance(store.read_rows(tmp_path / "s"), np.memmap)
    assert np.array_equal(store.read_rows(tmp_path / "s"), zarr.open_array(tmp_path / "s/features", mode="r")[:])
    bank = Bank.open([tmp_path / "s"], SPEC)
    bank.verify()
    assert all(np.array_equal(bank.rows[video], part) for video, part in parts.items())
    assert len([path for path in (tmp_path / "s/features/c").rglob("*") if path.is_file()]) == 1


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    parts = {"b": rows(10, 1), "a": rows(5, 2)}
    store.write(tmp_path / "one", SPEC, parts, HOP_S)
    store.write(tmp_path / "two", SPEC, dict(sorted(parts.items())), HOP_S)
    for path in (path for path in (tmp_path / "one").rglob("*") if path.is_file()):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()


@pytest.mark.parametrize("how", ["compressed", "plain chunks", "gap"])
def test_other_layouts_are_read_through_zarr(tmp_path: Path, how: str) -> None:
    parts = {"a": np.zeros((300, 7), np.float32), "b": rows(500)}
    store.write(tmp_path / "s", SPEC, parts, HOP_S)
    array = zarr.open_array(tmp_path / "s/features", mode="r")
    content, attributes = array[:], dict(array.attrs)
    options = {
        "compressed": {"compressors": "auto", "shards": (1024, 7), "config": {"write_empty_chunks": True}},
        "plain chunks": {"compressors": None, "config": {"write_empty_chunks": True}},
        "gap": {"compressors": None, "shards": (1024, 7), "config": {"write_empty_chunks": False}},
    }[how]
    other = zarr.create_array(
        tmp_path / "s/features",
        shape=(800, 7),
        dtype="f4",
        chunks=(256, 7),
        overwrite=True,
        attributes=attributes,
        **options,
    )
    other[:] = content
    read = store.read_rows(tmp_path / "s")
    assert not isinstance(read, np.memmap)
    Bank.open([tmp_path / "s"], SPEC).verify()


def test_a_store_may_be_empty(tmp_path: Path) -> None:
    store.write(tmp_path / "s", SPEC, {}, HOP_S)
    assert Bank.open([tmp_path / "s"], SPEC).videos == frozenset()


def test_another_spec_is_refused_with_the_difference(tmp_path: Path) -> None:
    store.write(tmp_path / "s", SPEC, {"a": rows(3)}, HOP_S)
    with pytest.raises(StoreError, match=r"hues is 8, not 16$"):
        Bank.open([tmp_path / "s"], replace(SPEC, hues=16))


def test_damage_is_found(tmp_path: Path) -> None:
    store.write(tmp_path / "s", SPEC, {"a": rows(3), "b": rows(3)}, HOP_S)
    shard = tmp_path / "s/features/c/0/0"
    content = bytearray(shard.read_bytes())
    content[4 * 7 * 3] ^= 1
    shard.write_bytes(content)
    with pytest.raises(StoreError, match="the rows of b are damaged"):
        Bank.open([tmp_path / "s"], SPEC).verify()
    (tmp_path / "s/index.parquet").write_bytes(b"PAR1")
    with pytest.raises(StoreError, match="index"):
        Bank.open([tmp_path / "s"], SPEC)
    write_json(tmp_path / "s/features/zarr.json", {})
    with pytest.raises(StoreError, match="not a feature store"):
        Bank.open([tmp_path / "s"], SPEC)


def test_a_bank_spans_stores_and_holds_a_video_once(tmp_path: Path) -> None:
    store.write(tmp_path / "1", SPEC, {"a": rows(3)}, HOP_S)
    store.write(tmp_path / "2", SPEC, {"b": rows(3)}, HOP_S)
    assert Bank.open([tmp_path / "1", tmp_path / "2"], SPEC).videos == {"a", "b"}
    with pytest.raises(StoreError, match="a stands in"):
        Bank.open([tmp_path / "1", tmp_path / "1"], SPEC)


@pytest.mark.parametrize(
    ("start_s", "end_s", "wanted"),
    [
        (0, 0.6, [0, 1, 2]),
        (0.2, 0.4, [1]),
        (0.6, 1.2, [3, 4, 5]),
        (0.21, 0.39, [1]),
        (0.25, 0.39, [2]),
        (0.45, 0.55, [2]),
        (1.7, 9.0, [9]),
        (5.0, 6.0, [9]),
        (-3.0, -2.0, [0]),
        (-3.0, 0.3, [0, 1]),
    ],
)
def test_a_window_is_half_open_and_never_empty(tmp_path: Path, start_s: float, end_s: float, wanted: list[int]) -> None:
    parts = {"0": rows(4, 1), "a": np.arange(10, dtype=np.float32)[:, None].repeat(7, 1)}
    store.write(tmp_path / "s", SPEC, parts, HOP_S)
    bank = Bank.open([tmp_path / "s"], SPEC)
    assert bank.window("a", start_s, end_s)[:, 0].tolist() == wanted
    with pytest.raises(StoreError, match="c has no features"):
        bank.window("c", 0, 1)
