import hashlib
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import zarr
from pyarrow import parquet

from stepline.backbones.histogram import HistogramSpec
from stepline.errors import StoreError
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.store import Part
from stepline.io import read_json, write_json
from tests.features.conftest import ListedSpec, content

SPEC = HistogramSpec()
HALF = replace(SPEC, dtype="float16")
HOP_S = 0.2


def rows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n, 7), np.float32)


@pytest.mark.parametrize("spec", [SPEC, HALF])
@pytest.mark.parametrize("lengths", [(3,), (256,), (200, 400, 1), (1, 255), (513, 511), (9000, 1)])
def test_rows_come_back_and_are_mapped(tmp_path: Path, lengths: tuple[int, ...], spec: HistogramSpec) -> None:
    parts = {f"v{i}": rows(n, i) for i, n in enumerate(lengths)}
    parts["v0"] *= 0  # a chunk of zeros must not be left out
    store.write(tmp_path / "s", spec, parts, HOP_S)
    read = store.read(tmp_path / "s").rows
    assert isinstance(read, np.memmap)
    array = zarr.open_array(tmp_path / "s/features", mode="r")
    assert array.dtype == read.dtype == spec.dtype
    assert np.array_equal(read, array[:])
    bank = Bank.open([tmp_path / "s"], spec)
    assert all(np.array_equal(bank.rows[video], part.astype(spec.dtype)) for video, part in parts.items())
    assert len([path for path in (tmp_path / "s/features/c").rglob("*") if path.is_file()]) == 1
    array = zarr.create_array(
        tmp_path / "zarr",
        shape=array.shape,
        dtype=array.dtype,
        chunks=array.chunks,
        shards=array.shards,
        compressors=None,
        attributes=dict(array.attrs),
        config={"write_empty_chunks": True},
    )
    array[:] = read
    for file in ("zarr.json", "c/0/0"):
        assert (tmp_path / "zarr" / file).read_bytes() == (tmp_path / "s/features" / file).read_bytes()


def test_float16_keeps_every_row_within_the_allowed_error(tmp_path: Path) -> None:
    wide = (rows(500) - 0.5) * 10.0 ** np.linspace(-3, 4.9, 500, dtype=np.float32)[:, None]
    wide[:, 3] *= 1e-9  # a tiny value beside others takes nothing from the row
    store.write(tmp_path / "s", HALF, {"a": wide}, HOP_S)
    stored = store.read(tmp_path / "s").rows.astype(np.float64)
    assert (np.linalg.norm(stored - wide, axis=1) <= 5e-4 * np.linalg.norm(wide, axis=1)).all()


@pytest.mark.parametrize(
    ("value", "largest", "dtype"),
    [
        (70000, "7e[+]04", "float16"),
        (np.nan, "nan", "float16"),
        (np.nan, "nan", "float32"),
        (-np.inf, "inf", "float32"),
        (1e-6, "1e-06", "float16"),
    ],
)
def test_rows_that_cannot_be_stored_are_named(tmp_path: Path, value: float, largest: str, dtype: str) -> None:
    whole = np.ones((5000, 7), np.float32)
    whole[4321] = [value, value, 0, 0, 0, 0, 0]
    message = f"^a: row 4321 cannot be stored as {dtype}: its largest value is {largest}$"
    with pytest.raises(StoreError, match=message):
        store.write(tmp_path / "s", replace(SPEC, dtype=dtype), {"0": rows(3), "a": whole}, HOP_S)
    with pytest.raises(StoreError, match="^b: its rows have 6 values, other rows 7$"):
        store.write(tmp_path / "s", SPEC, {"a": rows(3), "b": rows(3)[:, 1:]}, HOP_S)
    assert not list(tmp_path.iterdir())


def test_stored_rows_are_written_as_they_are(tmp_path: Path) -> None:
    tiny = np.full((3, 7), 6e-8, np.float16)
    store.write(tmp_path / "s", HALF, {"a": tiny, "b": store.cast(rows(4), HALF, "b")}, HOP_S)
    bank = Bank.open([tmp_path / "s"], HALF)
    assert np.array_equal(bank.rows["a"], tiny)
    assert [block.sha256 for blocks in bank.blocks.values() for block in blocks] == [
        hashlib.sha256(part.tobytes()).hexdigest() for part in (tiny, rows(4).astype("<f2"))
    ]


def test_videos_are_asked_for_one_by_one(tmp_path: Path) -> None:
    class Lazy(dict[str, np.ndarray]):
        def __getitem__(self, video: str) -> np.ndarray:
            return rows(super().__getitem__(video))

        def items(self) -> None:  # type: ignore[override]
            raise AssertionError

    store.write(tmp_path / "s", SPEC, Lazy(a=3, b=4), HOP_S)
    assert np.array_equal(Bank.open([tmp_path / "s"], SPEC)["b"], rows(4))


def test_listed_clips_are_known_by_their_times(tmp_path: Path) -> None:
    spec = ListedSpec()
    clips = {"a": [(0.0, 4.0), (-2.0, 2.0), (1.5, 2.5)], "b": [(0.0, 4.0)]}
    parts = {"b": rows(1, 1), "a": rows(3), "c": rows(0)}
    store.write(tmp_path / "s", spec, parts, HOP_S, clips=clips | {"c": []})
    bank = Bank.open([tmp_path / "s"], spec)
    assert {video: list(found) for video, found in bank.clips.items()} == clips | {"c": []}
    for video, listed in clips.items():
        for row, (start_s, end_s) in zip(parts[video].astype(np.float16), listed, strict=True):
            assert np.array_equal(bank.clip(video, start_s, end_s), row)
    with pytest.raises(StoreError, match="^a has no features of the clip from 0 s to 3 s: list it$"):
        bank.clip("a", 0, 3)
    with pytest.raises(StoreError, match="^a has features of listed clips, not of times: use `clip` to read them$"):
        bank.window("a", 0, 3)
    with pytest.raises(StoreError, match="^a has features of listed clips, not of times: use `clip` to read them$"):
        bank.sliding(1, 1)
    with pytest.raises(StoreError, match="^a: 3 rows for 2 different clips$"):
        store.write(tmp_path / "s", spec, {"a": rows(3)}, HOP_S, clips={"a": [(0.0, 4.0), (0.0, 4.0), (1.0, 2.0)]})
    for damage in (
        lambda path: parquet.write_table(parquet.read_table(path).slice(1), path),
        lambda path: path.write_bytes(path.read_bytes().replace(np.float64(1.5).tobytes(), np.float64(2).tobytes())),
        Path.unlink,
    ):
        store.write(tmp_path / "s", spec, parts, HOP_S, clips=clips | {"c": []})
        damage(tmp_path / "s/clips.parquet")
        with pytest.raises(StoreError, match="absent or damaged"):
            Bank.open([tmp_path / "s"], spec)


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    parts = {"b": rows(10, 1), "a": rows(5, 2)}
    store.write(tmp_path / "one", SPEC, parts, HOP_S)
    store.write(tmp_path / "two", SPEC, dict(sorted(parts.items())), HOP_S)
    assert content(tmp_path / "one") == content(tmp_path / "two")


@pytest.mark.parametrize("how", ["compressed", "plain chunks", "gap", "several shards"])
def test_only_layouts_that_were_ever_written_are_read(tmp_path: Path, how: str) -> None:
    parts = {"a": np.zeros((300, 7), np.float32), "b": rows(500)}
    store.write(tmp_path / "s", SPEC, parts, HOP_S)
    array = zarr.open_array(tmp_path / "s/features", mode="r")
    values, attributes = array[:], dict(array.attrs)
    options = {
        "compressed": {"compressors": "auto", "shards": (1024, 7), "config": {"write_empty_chunks": True}},
        "plain chunks": {"compressors": None, "config": {"write_empty_chunks": True}},
        "gap": {"compressors": None, "shards": (1024, 7), "config": {"write_empty_chunks": False}},
        "several shards": {"compressors": None, "shards": (512, 7), "config": {"write_empty_chunks": True}},
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
    other[:] = values
    if how == "plain chunks":
        assert np.array_equal(store.read(tmp_path / "s").rows, values)
        (tmp_path / "s/features/c/3/0").unlink()
    with pytest.raises(StoreError, match="absent or damaged"):
        store.read(tmp_path / "s")


def test_a_store_may_be_empty(tmp_path: Path) -> None:
    store.write(tmp_path / "s", HALF, {}, HOP_S)
    assert Bank.open([tmp_path / "s"], HALF).videos == frozenset()
    read = store.read(tmp_path / "s").rows
    assert (read.shape, read.dtype) == ((0, SPEC.dimension), np.float16)


SHARD = "s/features/c/0/0"
METADATA = "s/features/zarr.json"
INDEX = "s/index.parquet"


def truncate(path: str, keep: int) -> None:
    Path(path).write_bytes(Path(path).read_bytes()[:keep])


def with_metadata(**other: object) -> None:
    write_json(METADATA, read_json(METADATA) | other)


def with_index(**columns: list[object]) -> None:
    """Write the index anew with some other columns; those of the value [] are left out."""
    index = parquet.read_table(INDEX).to_pydict() | columns
    parquet.write_table(pyarrow.table({name: values for name, values in index.items() if values}), INDEX)


@pytest.mark.parametrize(
    "damage",
    [
        lambda: shutil.rmtree("s"),
        lambda: Path(SHARD).unlink(),
        *(partial(truncate, SHARD, keep) for keep in (0, 3, 84, 7168, 7180, 7187)),
        lambda: Path(METADATA).unlink(),
        lambda: truncate(METADATA, 100),
        *(partial(write_json, METADATA, value) for value in ({}, [], 1, {"attributes": [1]})),
        lambda: with_metadata(shape=[7, 7]),
        lambda: with_metadata(shape=[5, 7]),
        lambda: with_metadata(shape=[6]),
        lambda: with_metadata(shape=[1 << 40, 7]),
        lambda: with_metadata(
            shape=[1 << 40, 7], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [1 << 40, 7]}}
        ),
        lambda: (
            with_metadata(
                shape=[1 << 40, 0],
                chunk_grid={"name": "regular", "configuration": {"chunk_shape": [256, 0]}},
                codecs=[{"name": "bytes", "configuration": {"endian": "little"}}],
            ),
            with_index(length=[3, (1 << 40) - 3]),
        ),
        lambda: with_metadata(shape="six"),
        lambda: with_metadata(data_type="int32", fill_value=0),
        lambda: with_metadata(attributes={"spec": HALF.record()}),
        lambda: with_metadata(attributes={"spec": SPEC.record() | {"label": "other"}}),
        lambda: with_metadata(data_type="no type"),
        lambda: with_metadata(codecs=[]),
        lambda: with_metadata(codecs=[{"name": "no codec"}]),
        lambda: with_metadata(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [256, 8]}}),
        lambda: with_metadata(zarr_format=2),
        lambda: with_metadata(node_type="group"),
        lambda: with_metadata(attributes={}),
        lambda: with_metadata(attributes={"spec": "histogram"}),
        lambda: Path(INDEX).unlink(),
        lambda: Path(INDEX).write_bytes(b"PAR1"),
        lambda: with_index(other=[1, 2]),
        lambda: with_index(hop_s=[]),
        lambda: with_index(offset=["0", "3"]),
        lambda: with_index(offset=[0, 2]),
        lambda: with_index(length=[3, 4]),
        lambda: with_index(video=["a", "a"]),
        lambda: with_index(video=["b", "a"]),
        lambda: with_index(video=["a", "a"], end_s=[3.0, 3.0], start_s=[0.0, 2.0]),
        lambda: with_index(video=["../a", "b"]),
        lambda: with_index(video=["a", "b\n"]),
        *(lambda hop_s=hop_s: with_index(hop_s=[1.0, hop_s]) for hop_s in (0.0, -1.0, math.inf, math.nan)),
        lambda: with_index(t0_s=[0.0, math.nan]),
    ],
)
def test_damage_is_one_line(damage: Callable[[], object]) -> None:
    store.write(Path("s"), SPEC, {"a": rows(3), "b": rows(3)}, HOP_S)
    damage()
    with pytest.raises(StoreError, match="^s is absent or damaged: remove it and run `stepline extract`$"):
        Bank.open([Path("s")], SPEC)


@pytest.mark.parametrize(
    ("n", "sha256", "codec"), [(200_000, "a", "SNAPPY"), (9, "a" * 1_000_000, "SNAPPY"), (2, "a", "ZSTD")]
)
def test_an_index_that_expands_to_much_is_not_expanded(n: int, sha256: str, codec: str) -> None:
    store.write(Path("s"), SPEC, {"a": rows(3)}, HOP_S)
    index = parquet.read_table(INDEX)
    one = pyarrow.table(index.to_pydict() | {"sha256": [sha256]}, index.schema.remove_metadata())
    parquet.write_table(one.take([0] * n), INDEX, compression=codec)
    with pytest.raises(ValueError, match="expands to much more|compressed in another way"):
        store.read_index(Path("s"), store.Block.__annotations__)


def test_a_bank_spans_stores_and_holds_a_video_once(tmp_path: Path) -> None:
    store.write(tmp_path / "1", SPEC, {"a": rows(3)}, HOP_S)
    store.write(tmp_path / "2", SPEC, {"b": rows(3)}, HOP_S)
    assert Bank.open([tmp_path / "1", tmp_path / "2"], SPEC).videos == {"a", "b"}
    with pytest.raises(StoreError, match="a is in"):
        Bank.open([tmp_path / "1", tmp_path / "1"], SPEC)
    with pytest.raises(StoreError, match=r"hues is 8, not 16$"):
        Bank.open([tmp_path / "1"], replace(SPEC, hues=16))


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


@pytest.mark.parametrize(("start_s", "first"), [(0.3, 3), (0.1 + 0.2, 3), (0.30001, 4), (0.29999, 3), (0.2, 2)])
def test_a_time_is_a_row_s_own_where_only_rounding_parts_them(tmp_path: Path, start_s: float, first: int) -> None:
    store.write(tmp_path / "s", SPEC, {"a": np.arange(10, dtype=np.float32)[:, None].repeat(7, 1)}, 0.1)
    assert Bank.open([tmp_path / "s"], SPEC).window("a", start_s, 9)[0, 0] == first


def test_a_video_of_spans_has_a_block_of_each_and_windows_of_all(tmp_path: Path) -> None:
    line = np.arange(100, dtype=np.float32)[:, None].repeat(7, 1)
    spans = [Part(line[10:15], 2.0, 1.9, 3.0), Part(line[15:15], 4.0, 3.9, 4.0), Part(line[50:60], 10.0, 10.0, 12.0)]
    store.write(tmp_path / "s", SPEC, {"0": rows(4, 1), "a": spans, "b": rows(3)}, HOP_S)
    bank = Bank.open([tmp_path / "s"], SPEC)
    assert [(block.start_s, block.end_s, block.t0_s, block.length) for block in bank.blocks["a"]] == [
        (1.9, 3.0, 2.0, 5),
        (3.9, 4.0, 4.0, 0),
        (10.0, 12.0, 10.0, 10),
    ]
    assert bank.rows["a"][:, 0].tolist() == [*range(10, 15), *range(50, 60)]
    for start_s, end_s, wanted in [
        (2.2, 2.6, [11, 12]),
        (0, 2.2, [10]),
        (2.6, 10.4, [13, 14, 50, 51]),
        (0, 99, [*range(10, 15), *range(50, 60)]),
        (11.7, 99, [59]),
        (5, 6, [14]),
        (6.3, 6.5, [14]),
        (6.4, 6.6, [50]),
        (7, 9, [50]),
        (0, 1, [10]),
    ]:
        assert bank.window("a", start_s, end_s)[:, 0].tolist() == wanted
    assert np.array_equal(bank.window("b", 0, 9), rows(3))
