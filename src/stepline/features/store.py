"""The feature store: one Zarr array of rows, uncompressed in one shard file, and an index of its videos.

``features/`` is the array (rows, D), with the spec in its attributes; ``index.parquet`` has a Block per video, or, of a
video of which spans were read, per span.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepline.errors import StoreError
from stepline.io import atomic_dir, canonical_json, read_json, read_table
from stepline.spec import Spec

if TYPE_CHECKING:
    import pyarrow as pa

Rows = NDArray[np.float32]

CHUNK = 256
"""Rows per chunk: what a reader that cannot map the file has to load for one row."""


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


def digest(rows: Rows) -> str:
    """Return the sha256 of the rows' bytes, in hex."""
    return hashlib.sha256(np.ascontiguousarray(rows, "<f4").data).hexdigest()


class Part(NamedTuple):
    """The rows of one span of a video, the first of which stands at t0_s."""

    rows: Rows
    t0_s: float
    start_s: float
    end_s: float


def write(
    folder: Path,
    spec: Spec,
    parts: Mapping[str, Rows | Sequence[Part]],
    hop_s: float,
    *,
    sources: Mapping[str, str] | None = None,
) -> None:
    """Write the (T, D) float32 rows of each video to the store ``folder``, in the order of their ids.

    Rows alone are a whole video's, from 0 s on. sources: sha256 of the file that a video's rows were made from.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    import zarr

    blocks: list[Block] = []
    pieces: list[Rows] = []
    for video, part in sorted(parts.items()):
        for piece in [Part(part, 0.0, 0.0, math.inf)] if isinstance(part, np.ndarray) else part:
            blocks.append(
                Block(
                    video=video,
                    offset=blocks[-1].offset + blocks[-1].length if blocks else 0,
                    length=len(piece.rows),
                    t0_s=float(piece.t0_s),
                    hop_s=float(hop_s),
                    start_s=float(piece.start_s),
                    end_s=float(piece.end_s),
                    sha256=digest(piece.rows),
                    source_sha256=(sources or {}).get(video, ""),
                )
            )
            pieces.append(piece.rows)
    rows = np.concatenate(pieces) if pieces else np.zeros((0, 1), np.float32)
    index = pa.Table.from_pylist([asdict(block) for block in blocks], _schema(Block.__annotations__))
    with atomic_dir(folder) as staged:
        array = zarr.create_array(
            staged / "features",
            shape=rows.shape,
            dtype="float32",
            chunks=(CHUNK, rows.shape[1]),
            shards=(CHUNK * max(1, -(-len(rows) // CHUNK)), rows.shape[1]),
            compressors=None,
            attributes={"spec": spec.record()},
            config={"write_empty_chunks": True},
        )
        array[:] = rows
        pq.write_table(index, staged / "index.parquet")


def read(folder: Path, spec: Spec) -> tuple[Rows, dict[str, list[Block]]]:
    """Return the (rows, D) array of the store that ``write`` made in ``folder``, and its blocks by video, in order.

    Raises StoreError where the store is absent, damaged or made by another spec.
    """
    with damage_is_one_line(folder, "extract"):
        stored = dict(read_json(folder / "features/zarr.json")["attributes"]["spec"])
        rows = read_array(folder / "features")
        listed = [Block(**line) for line in read_index(folder, Block.__annotations__).to_pylist()]
        ends = [0, *(block.offset + block.length for block in listed)]
        if [*(block.offset for block in listed), len(rows)] != ends:
            raise ValueError("the blocks are not the rows")
        if any((before.video, before.end_s) > (after.video, after.start_s) for before, after in pairwise(listed)):
            raise ValueError("the blocks are not in order")
    blocks: dict[str, list[Block]] = {}
    for block in listed:
        blocks.setdefault(block.video, []).append(block)
    check_spec(folder, stored, spec)
    return rows, blocks


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
    index = read_table(folder / "index.parquet")
    if index.schema != _schema(columns):
        raise ValueError("other columns")
    return index


def _schema(columns: Mapping[str, type]) -> "pa.Schema":
    import pyarrow as pa

    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    return pa.schema([(name, types[kind]) for name, kind in columns.items()])


def read_array(path: Path) -> Rows:
    """Return the (rows, D) float32 array in ``path``: a memory map where one file is the rows in order, else a copy.

    Raises ValueError where a file of it is absent or empty (Zarr would take zeros), and what Zarr raises of other
    damage.
    """
    import zarr

    array = zarr.open_array(path, mode="r")
    if array.ndim != 2 or array.dtype != np.float32:
        raise ValueError("no matrix of float32")
    shard = path / "c/0/0"
    if shard.is_file() and _in_order(shard, read_json(path / "zarr.json")):
        return np.memmap(shard, "<f4", mode="r", shape=array.shape)
    if array.nchunks_initialized < array.nchunks or not all(file.stat().st_size for file in path.glob("c/*/*")):
        raise ValueError("a file of it is absent or empty")
    return np.asarray(array[:], np.float32)


def _in_order(shard: Path, metadata: dict[str, Any]) -> bool:
    """Return whether the shard's chunks are plain rows, one after the other, as the index at its end says.

    The index has offset and length in bytes of each chunk, 8 bytes each, and a checksum of 4 bytes.
    """
    codec = metadata["codecs"][0]
    plain = {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "index_location": "end"}
    if codec["name"] != "sharding_indexed":
        return False
    rows, columns = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    chunk_rows, chunk_columns = codec["configuration"]["chunk_shape"]
    n_chunks, chunk_bytes = rows // chunk_rows, 4 * chunk_rows * chunk_columns
    if (
        any(codec["configuration"][key] != value for key, value in plain.items())
        or (metadata["data_type"], columns) != ("float32", chunk_columns)
        or rows < metadata["shape"][0]
        or shard.stat().st_size != n_chunks * (chunk_bytes + 16) + 4
    ):
        return False
    with open(shard, "rb") as file:
        file.seek(n_chunks * chunk_bytes)
        index = np.frombuffer(file.read(16 * n_chunks), "<u8").reshape(n_chunks, 2)
    wanted = np.stack([np.arange(n_chunks) * chunk_bytes, np.full(n_chunks, chunk_bytes)], 1)
    return bool((index == wanted.astype(np.uint64)).all())
