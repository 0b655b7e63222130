"""The file of a store's rows: a Zarr array as one shard of uncompressed chunks, which can be mapped into memory."""

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from stepline.io import read_json

Rows = NDArray[Any]
"""(rows, D), float16 or float32."""
CHUNK = 256
"""Rows per chunk: a reader that cannot map the file must load this many for one row."""


def read_array(path: Path) -> Rows:
    """Return the (rows, D) array in ``path``: a memory map if one file has all rows in order, otherwise a copy.

    Raises ValueError if one of its files is absent or empty, which Zarr would read as zeros, and Zarr's errors for
    other damage.
    """
    import zarr

    array = zarr.open_array(path, mode="r", zarr_format=3)
    if array.ndim != 2 or array.dtype not in (np.float16, np.float32):
        raise ValueError("it is not a float16 or float32 matrix")
    shard = path / "c/0/0"
    if shard.is_file() and _in_order(shard, read_json(path / "zarr.json"), array.dtype):
        return np.memmap(shard, array.dtype.newbyteorder("<"), mode="r", shape=array.shape)
    if array.nchunks_initialized < array.nchunks or not all(file.stat().st_size for file in path.glob("c/*/*")):
        raise ValueError("one of its files is absent or empty")
    return np.asarray(array[:])


def _in_order(shard: Path, metadata: dict[str, Any], dtype: np.dtype[Any]) -> bool:
    """Return whether the shard's chunks are plain contiguous rows, according to the index at its end.

    The index has the offset and length in bytes of each chunk, 8 bytes each, and a checksum of 4 bytes.
    """
    if not is_plain(metadata, dtype) or shard.stat().st_size != shard_bytes(metadata, dtype):
        return False
    n_chunks, chunk_bytes = _chunks(metadata, dtype)
    with open(shard, "rb") as file:
        file.seek(n_chunks * chunk_bytes)
        index = np.frombuffer(file.read(16 * n_chunks), "<u8").reshape(n_chunks, 2)
    return np.array_equal(index, _shard_index(n_chunks, chunk_bytes))


def is_plain(metadata: dict[str, Any], dtype: np.dtype[Any]) -> bool:
    """Return whether an array is a single shard of uncompressed chunks of whole rows."""
    codec = metadata["codecs"][0]
    plain = {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "index_location": "end"}
    if codec["name"] != "sharding_indexed":
        return False
    rows, columns = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    return (
        all(codec["configuration"][key] == value for key, value in plain.items())
        and (metadata["data_type"], columns) == (dtype.name, codec["configuration"]["chunk_shape"][1])
        and rows >= metadata["shape"][0]
    )


def _chunks(metadata: dict[str, Any], dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the number of chunks of the shard, and the bytes of a chunk."""
    chunk_rows, chunk_columns = metadata["codecs"][0]["configuration"]["chunk_shape"]
    rows = metadata["chunk_grid"]["configuration"]["chunk_shape"][0]
    return rows // chunk_rows, dtype.itemsize * chunk_rows * chunk_columns


def shard_bytes(metadata: dict[str, Any], dtype: np.dtype[Any]) -> int:
    """Return the size of the whole shard in bytes."""
    n_chunks, chunk_bytes = _chunks(metadata, dtype)
    return n_chunks * (chunk_bytes + 16) + 4


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
