"""The file of a store's rows: a Zarr array as one shard of uncompressed chunks, which can be mapped into memory."""

from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepline.io import read_json

Rows = NDArray[Any]
"""(rows, D), float16 or float32."""
CHUNK = 256
"""Rows per chunk: a reader that cannot map the file must load this many for one row."""


class Layout(NamedTuple):
    """The files of an array. file_rows: the rows of each. chunk_rows: those of the chunks in it, if it is a shard."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    file_rows: int
    chunk_rows: int | None

    @property
    def file_bytes(self) -> int:
        """The size of each file. After its chunks, a shard has 16 bytes for each of them, and 4 more."""
        index = 16 * (self.file_rows // self.chunk_rows) + 4 if self.chunk_rows else 0
        return self.file_rows * self.shape[1] * self.dtype.itemsize + index


def layout(metadata: dict[str, Any]) -> Layout:
    """Return the layout of an array that Stepline wrote, from its ``zarr.json``; raise an error for any other."""
    rows, columns = metadata["shape"]
    file_rows, file_columns = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    [codec] = codecs = metadata["codecs"]
    chunk_rows = None
    if codec["name"] == "sharding_indexed":
        shard = codec["configuration"]
        codecs, [chunk_rows, chunk_columns] = shard["codecs"], shard["chunk_shape"]
        if (
            [each["name"] for each in shard["index_codecs"]] != ["bytes", "crc32c"]
            or (shard["index_location"], chunk_columns) != ("end", columns)
            or file_rows < rows
            or file_rows % chunk_rows
        ):
            raise ValueError("its rows are not in order in one shard")
    if (
        (metadata["zarr_format"], metadata["node_type"], file_columns) != (3, "array", columns)
        or codecs != [{"name": "bytes", "configuration": {"endian": "little"}}]
        or metadata["data_type"] not in ("float16", "float32")
    ):
        raise ValueError("it is no matrix of float16 or float32 without compression")
    return Layout((rows, columns), np.dtype(metadata["data_type"]).newbyteorder("<"), file_rows, chunk_rows)


def read_array(path: Path) -> Rows:
    """Return the (rows, D) array in ``path``: a memory map if one file has all rows in order, otherwise a copy.

    Raises an error if one of its files does not have exactly the bytes of its rows, before anything is allocated.
    """
    form = layout(read_json(path / "zarr.json"))
    rows, columns = form.shape
    if not rows * columns:
        return np.zeros(form.shape, form.dtype)
    files = []
    for first in range(0, rows, form.file_rows):
        files.append(path / f"c/{first // form.file_rows}/0")
        if files[-1].stat().st_size != form.file_bytes:
            raise ValueError("one of its files has another size than its rows")
    if form.chunk_rows:
        n_chunks, chunk_bytes = form.file_rows // form.chunk_rows, form.chunk_rows * columns * form.dtype.itemsize
        index = np.fromfile(files[0], "<u8", 2 * n_chunks, offset=n_chunks * chunk_bytes).reshape(-1, 2)
        if not np.array_equal(index, _shard_index(n_chunks, chunk_bytes)):
            raise ValueError("its rows are not in order in one shard")
        return np.memmap(files[0], form.dtype, mode="r", shape=form.shape)
    return np.concatenate([np.fromfile(file, form.dtype) for file in files]).reshape(-1, columns)[:rows]


def close_shard(file: BinaryIO, n_rows: int, n_chunks: int) -> None:
    """Fill the last chunk with zeros and write the index after it, as Zarr's sharding codec does."""
    chunk_bytes = file.tell() // max(1, n_rows) * CHUNK
    file.write(bytes(n_chunks * chunk_bytes - file.tell()))
    index = _shard_index(n_chunks, chunk_bytes).tobytes()
    file.write(index + _crc32c(index).to_bytes(4, "little"))


def _shard_index(n_chunks: int, chunk_bytes: int) -> NDArray[np.uint64]:
    """Return the (n_chunks, 2) offset and length in bytes of each of the contiguous chunks."""
    return np.stack([np.arange(n_chunks) * chunk_bytes, np.full(n_chunks, chunk_bytes)], 1).astype("<u8")


def _crc32c(content: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of the bytes."""
    remainder = 0xFFFFFFFF
    for byte in content:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ 0x82F63B78 * (remainder & 1)
    return remainder ^ 0xFFFFFFFF
