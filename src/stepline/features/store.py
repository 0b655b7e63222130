"""The feature store: one Zarr array of rows, uncompressed in one shard file, and an index of its videos.

``features/`` is the array (rows, D), with the spec in its attributes; ``index.parquet`` has a Block per video, or, of a
video of which spans were read, per span. Where rows are listed clips, ``clips.parquet`` says which.
"""

import hashlib
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepline.errors import StoreError
from stepline.io import atomic_dir, canonical_json, read_json, read_table
from stepline.spec import Spec

if TYPE_CHECKING:
    import pyarrow as pa

Rows = NDArray[Any]
"""(rows, D) of float16 or float32."""
Clips = Sequence[tuple[float, float]]
"""[start_s, end_s) of listed clips."""

CHUNK = 256
"""Rows per chunk: what a reader that cannot map the file has to load for one row."""
AT_ONCE = 16 * CHUNK
"""Rows of a video that are looked at together while they are written."""
ALLOWED_ERROR = 5e-4
"""Relative L2 error of a stored row, at most. Rounding to float16 gives 2^-11, unless a row has only tiny values."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A video's part of a store: ``length`` rows from row ``offset`` on; row i stands at t0_s + i hop_s.

    start_s, end_s: the span of the video that it describes; 0 and infinity where that is the whole.
    sha256: of the rows' bytes. source_sha256: of the file that they were made from, empty where nobody said.
    """

    video: str
    offset: int
    length: int
    t0_s: float
    hop_s: float
    start_s: float
    end_s: float
    sha256: str
    source_sha256: str


CLIP = {"video": str, "start_s": float, "end_s": float, "row": int}
"""The columns of ``clips.parquet``; row: counted in the whole store."""


@dataclass(frozen=True, kw_only=True)
class Recorded(Spec):
    """A spec of which only the record is at hand."""

    values: dict[str, Any]
    dimension: int

    def record(self) -> dict[str, Any]:
        """Return the record."""
        return self.values


@dataclass(frozen=True)
class Store:
    """What is in a store. blocks: by video, in time's order. clips: rows of listed clips by video, else none."""

    spec: Recorded
    rows: Rows
    blocks: dict[str, list[Block]]
    clips: dict[str, dict[tuple[float, float], int]]


class Part(NamedTuple):
    """The rows of one span of a video, the first of which stands at t0_s."""

    rows: Rows
    t0_s: float
    start_s: float
    end_s: float


def digest(rows: Rows) -> str:
    """Return the sha256 of stored rows' bytes, in hex."""
    return hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()


def cast(rows: Rows, spec: Spec, video: str, first: int = 0) -> Rows:
    """Return the (n, D) ``rows`` of a video, from its row ``first`` on, as the spec's ``dtype``.

    Raises StoreError where one is not finite then, or too small: where its relative L2 error is above 5e-4.
    """
    dtype = np.dtype(spec.record()["dtype"])
    with np.errstate(all="ignore"):
        stored = np.asarray(rows, dtype)
        wrong = ~np.isfinite(stored).all(axis=1)
        if stored.dtype != rows.dtype:
            exact = np.asarray(rows, np.float64)
            wrong |= np.linalg.norm(exact - stored, axis=1) > ALLOWED_ERROR * np.linalg.norm(exact, axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        largest = np.abs(rows[row]).max()
        raise StoreError(f"{video}: row {first + row} cannot be stored as {dtype}: its largest value is {largest:.3g}")
    return stored


def write(
    folder: Path,
    spec: Spec,
    parts: Mapping[str, Rows | Sequence[Part]],
    hop_s: float,
    *,
    sources: Mapping[str, str] | None = None,
    clips: Mapping[str, Clips] | None = None,
) -> None:
    """Write the (T, D) rows of each video to the store ``folder``, in the order of their ids.

    Rows alone are a whole video's, from 0 s on; they are asked for and written video by video, as the spec's ``dtype``.
    sources: sha256 of the file that a video's rows were made from. clips: what each row is, where the spec's clips are
    listed. Raises StoreError where rows cannot be stored, see ``cast``, or differ in D.
    """
    import zarr

    blocks: list[Block] = []
    dimension = 0
    with atomic_dir(folder) as staged:
        shard = staged / "features/c/0/0"
        shard.parent.mkdir(parents=True)
        with open(shard, "wb") as file:
            for video in sorted(parts):
                part = parts[video]
                for piece in [Part(part, 0.0, 0.0, math.inf)] if isinstance(part, np.ndarray) else part:
                    dimension = dimension or piece.rows.shape[1]
                    if piece.rows.shape[1:] != (dimension,):
                        raise StoreError(f"{video}: its rows are {piece.rows.shape[1]} values, others' {dimension}")
                    blocks.append(
                        Block(
                            video=video,
                            offset=blocks[-1].offset + blocks[-1].length if blocks else 0,
                            length=len(piece.rows),
                            t0_s=float(piece.t0_s),
                            hop_s=float(hop_s),
                            start_s=float(piece.start_s),
                            end_s=float(piece.end_s),
                            sha256=_append(file, piece.rows, spec, video),
                            source_sha256=(sources or {}).get(video, ""),
                        )
                    )
            n_rows = sum(block.length for block in blocks)
            n_chunks = max(1, -(-n_rows // CHUNK))
            _close_shard(file, n_rows, n_chunks)
        if not n_rows:
            shutil.rmtree(staged / "features/c")
        columns: int = dimension or getattr(spec, "dimension", 1)
        zarr.create_array(
            staged / "features",
            shape=(n_rows, columns),
            dtype=spec.record()["dtype"],
            chunks=(CHUNK, columns),
            shards=(CHUNK * n_chunks, columns),
            compressors=None,
            attributes={"spec": spec.record()},
        )
        _write_table(staged / "index.parquet", Block.__annotations__, [asdict(block) for block in blocks])
        if clips is not None:
            _write_table(staged / "clips.parquet", CLIP, list(_clip_lines(blocks, clips)))


def _append(file: BinaryIO, rows: Rows, spec: Spec, video: str) -> str:
    """Write rows as they are stored and return their sha256."""
    sha256 = hashlib.sha256()
    for first in range(0, len(rows), AT_ONCE):
        stored = np.ascontiguousarray(cast(rows[first : first + AT_ONCE], spec, video, first))
        sha256.update(stored.data)
        file.write(stored.data)
    return sha256.hexdigest()


def _close_shard(file: BinaryIO, n_rows: int, n_chunks: int) -> None:
    """Fill the last chunk with zeros and write the index after it, as Zarr's sharding codec does."""
    chunk_bytes = file.tell() // max(1, n_rows) * CHUNK
    file.write(bytes(n_chunks * chunk_bytes - file.tell()))
    index = _shard_index(n_chunks, chunk_bytes).tobytes()
    file.write(index + _crc32c(index).to_bytes(4, "little"))


def _shard_index(n_chunks: int, chunk_bytes: int) -> NDArray[np.uint64]:
    """Return offset and length in bytes of each of the chunks, one after the other."""
    return np.stack([np.arange(n_chunks) * chunk_bytes, np.full(n_chunks, chunk_bytes)], 1).astype("<u8")


def _crc32c(content: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of the bytes."""
    remainder = 0xFFFFFFFF
    for byte in content:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ 0x82F63B78 * (remainder & 1)
    return remainder ^ 0xFFFFFFFF


def _clip_lines(blocks: list[Block], clips: Mapping[str, Clips]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        listed = clips[block.video]
        if len({*listed}) != block.length:
            raise StoreError(f"{block.video}: {block.length} rows for {len({*listed})} different clips")
        for row, (start_s, end_s) in enumerate(listed, block.offset):
            yield {"video": block.video, "start_s": float(start_s), "end_s": float(end_s), "row": row}


def _write_table(path: Path, columns: Mapping[str, type], lines: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(lines, _schema(columns)), path, write_page_checksum=True)


def read(folder: Path) -> Store:
    """Return the store that ``write`` made in ``folder``; its rows are read when they are asked for.

    Raises StoreError where it is absent or damaged.
    """
    with damage_is_one_line(folder, "extract"):
        record = dict(read_json(folder / "features/zarr.json")["attributes"]["spec"])
        rows = read_array(folder / "features")
        if rows.dtype != record["dtype"]:
            raise ValueError("the rows are not what the spec says")
        listed = [Block(**line) for line in read_index(folder, Block.__annotations__).to_pylist()]
        ends = [0, *(block.offset + block.length for block in listed)]
        if [*(block.offset for block in listed), len(rows)] != ends:
            raise ValueError("the blocks are not the rows")
        if any((before.video, before.end_s) > (after.video, after.start_s) for before, after in pairwise(listed)):
            raise ValueError("the blocks are not in order")
        blocks: dict[str, list[Block]] = {}
        for block in listed:
            blocks.setdefault(block.video, []).append(block)
        clips: dict[str, dict[tuple[float, float], int]] = {}
        if record.get("placement", "grid") != "grid":
            lines = _read_table(folder / "clips.parquet", CLIP).to_pylist()
            if [(line["video"], line["row"]) for line in lines] != [
                (block.video, block.offset + i) for block in listed for i in range(block.length)
            ]:
                raise ValueError("the clips are not the rows")
            clips = {video: {} for video in blocks}
            for line in lines:
                row = line["row"] - blocks[line["video"]][0].offset
                clips[line["video"]][line["start_s"], line["end_s"]] = row
        named = {key: record[key] for key in ("name", "label", "revision")}
        spec = Recorded(**named, values=record, dimension=rows.shape[1])
    return Store(spec, rows, blocks, clips)


@contextmanager
def damage_is_one_line(folder: Path, verb: str) -> Iterator[None]:
    """Raise StoreError for whatever the reading of a store in ``folder`` raises; ``verb`` makes it anew."""
    try:
        yield
    except (MemoryError, PermissionError):
        raise
    except Exception as error:
        raise StoreError(f"{folder} is absent or damaged: remove it and run `stepline {verb}`") from error


def check_spec(folder: Path, stored: dict[str, Any], spec: Spec) -> None:
    """Raise StoreError, naming the difference, where the ``stored`` record is not that of ``spec``."""
    asked = spec.record()
    if canonical_json(stored) != canonical_json(asked):
        differences = [
            f"{key} is {stored.get(key)!r}, not {asked.get(key)!r}"
            for key in sorted(stored.keys() | asked.keys())
            if stored.get(key) != asked.get(key)
        ]
        raise StoreError(f"{folder} was made by another spec: {'; '.join(differences)}")


def read_index(folder: Path, columns: Mapping[str, type]) -> "pa.Table":
    """Return the table ``index.parquet``; raise ValueError where it has other columns."""
    return _read_table(folder / "index.parquet", columns)


def _read_table(path: Path, columns: Mapping[str, type]) -> "pa.Table":
    table = read_table(path, page_checksum_verification=True)
    if table.schema != _schema(columns):
        raise ValueError("other columns")
    return table


def _schema(columns: Mapping[str, type]) -> "pa.Schema":
    import pyarrow as pa

    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    return pa.schema([(name, types[kind]) for name, kind in columns.items()])


def read_array(path: Path) -> Rows:
    """Return the (rows, D) array in ``path``: a memory map where one file is the rows in order, else a copy.

    Raises ValueError where a file of it is absent or empty (Zarr would take zeros), and what Zarr raises of other
    damage.
    """
    import zarr

    array = zarr.open_array(path, mode="r")
    if array.ndim != 2 or array.dtype not in (np.float16, np.float32):
        raise ValueError("no matrix of float16 or float32")
    shard = path / "c/0/0"
    if shard.is_file() and _in_order(shard, read_json(path / "zarr.json"), array.dtype):
        return np.memmap(shard, array.dtype.newbyteorder("<"), mode="r", shape=array.shape)
    if array.nchunks_initialized < array.nchunks or not all(file.stat().st_size for file in path.glob("c/*/*")):
        raise ValueError("a file of it is absent or empty")
    return np.asarray(array[:])


def _in_order(shard: Path, metadata: dict[str, Any], dtype: np.dtype[Any]) -> bool:
    """Return whether the shard's chunks are plain rows, one after the other, as the index at its end says.

    The index has offset and length in bytes of each chunk, 8 bytes each, and a checksum of 4 bytes.
    """
    codec = metadata["codecs"][0]
    plain = {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "index_location": "end"}
    if codec["name"] != "sharding_indexed":
        return False
    rows, columns = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    chunk_rows, chunk_columns = codec["configuration"]["chunk_shape"]
    n_chunks, chunk_bytes = rows // chunk_rows, dtype.itemsize * chunk_rows * chunk_columns
    if (
        any(codec["configuration"][key] != value for key, value in plain.items())
        or (metadata["data_type"], columns) != (dtype.name, chunk_columns)
        or rows < metadata["shape"][0]
        or shard.stat().st_size != n_chunks * (chunk_bytes + 16) + 4
    ):
        return False
    with open(shard, "rb") as file:
        file.seek(n_chunks * chunk_bytes)
        index = np.frombuffer(file.read(16 * n_chunks), "<u8").reshape(n_chunks, 2)
    return np.array_equal(index, _shard_index(n_chunks, chunk_bytes))
