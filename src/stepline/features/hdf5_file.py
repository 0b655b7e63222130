"""Rows in an HDF5 file: read only if all their bytes are in the file, as libhdf5 returns memory in place of others.

libhdf5 also crashes on damaged files, so these functions are for a process that may crash: see ``media.process``.
"""

import math
import os
import zlib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stepline.media.decode import MediaError

if TYPE_CHECKING:
    import h5py

BLOCK = 16 << 20
"""Bytes of rows that are read at a time, if chunks are not larger."""
LARGEST = 4 << 30
"""The maximum number of bytes of a video's compressed rows: 2 hours at 30 fps of 4096 float32 are less."""
EXPANSION = 32
"""The maximum number of bytes of compressed rows for each byte of the file. Zeros would have a thousand."""
SMALL = 64 << 20
"""Bytes of compressed rows that a file of any size may have, as a chunk may be mostly empty."""
PARTS = "has rows of only parts of its video: remove it"
"""What is wrong with an exported array whose rows are not one per hop from 0 s on, as an import assumes."""


def names(path: Path) -> Iterator[str]:
    """Yield the names at the top of an HDF5 file."""
    import h5py

    with h5py.File(path) as file:
        yield from map(os.fsdecode, file)


def read(path: Path, name: str) -> Iterator[np.ndarray]:
    """Yield the array ``name`` at the top of an HDF5 file in blocks of rows, at least one; nothing if it is a group.

    Raises MediaError if it is a link, has values outside of the file, values that are absent or no numbers, other
    filters than gzip, LZF, shuffle and Fletcher32, or too many bytes for its file or for a video. Nothing larger than
    a chunk is allocated before this is known. The same if an export says that its rows are of only parts of the video.
    """
    import h5py

    with h5py.File(path) as file:
        if not isinstance(file.get(name, getlink=True), h5py.HardLink):
            raise MediaError(f"{name} is a link: put its values into this file")
        dataset = file[name]
        if not isinstance(dataset, h5py.Dataset):
            return
        if np.array_equal(dataset.attrs.get("whole", True), False):
            raise MediaError(f"{name} {PARTS}")
        _check(dataset, name)
        chunk = dataset.chunks[0] if dataset.chunks else 1
        at_once = max(1, BLOCK * len(dataset) // max(1, dataset.nbytes) // chunk) * chunk
        for first in range(0, max(1, len(dataset)), at_once):
            yield np.asarray(dataset[first : first + at_once])


def _check(dataset: "h5py.Dataset", name: str) -> None:
    made = dataset.id.get_create_plist()
    if dataset.is_virtual or made.get_external_count():
        raise MediaError(f"the values of {name} are in other files: put them into this file")
    if (
        not dataset.shape
        or dataset.dtype.kind not in "biuf"
        or dataset.id.get_type().get_size() != dataset.dtype.itemsize
    ):
        raise MediaError(f"{name} is no array of numbers")
    if dataset.chunks is not None:
        _check_chunks(dataset, [made.get_filter(number)[0] for number in range(made.get_nfilters())])
    elif dataset.id.get_storage_size() != dataset.nbytes or dataset.nbytes > os.path.getsize(dataset.file.filename):
        raise MediaError(f"the values of {name} are not in the file")


def _check_chunks(dataset: "h5py.Dataset", filters: list[int]) -> None:
    """Raise MediaError unless each chunk has its bytes."""
    from h5py import h5z

    packers = [each for each in filters if each in (h5z.FILTER_DEFLATE, h5z.FILTER_LZF)]
    order = [h5z.FILTER_SHUFFLE, *packers[:1], h5z.FILTER_FLETCHER32]
    if filters != [each for each in order if each in filters]:
        raise MediaError("it has other filters than gzip or LZF, with shuffle and Fletcher32: write it with gzip")
    counts = [-(-length // chunk) for length, chunk in zip(dataset.shape, dataset.chunks, strict=True)]
    size = math.prod(dataset.chunks) * dataset.dtype.itemsize
    file_bytes = os.path.getsize(dataset.file.filename)
    limit = min(LARGEST, EXPANSION * file_bytes + SMALL) if packers else file_bytes
    if math.prod(counts) * size > limit or dataset.id.get_num_chunks() != math.prod(counts):
        raise MediaError(f"values are absent, or have more than {limit} bytes: write them without compression")
    found: dict[tuple[int, ...], int] = {}
    dataset.id.chunk_iter(lambda chunk: found.update({chunk.chunk_offset: chunk.size}))
    for place in product(*map(range, counts)):
        start = tuple(map(int.__mul__, place, dataset.chunks))
        if start not in found or found[start] > min(file_bytes, 2 * size + 64):
            raise MediaError("a chunk is absent, or too large")
        mask, content = dataset.id.read_direct_chunk(start)
        used = [each for number, each in enumerate(filters) if not mask >> number & 1]
        content = content[: found[start] - 4 * (h5z.FILTER_FLETCHER32 in used)]
        if h5z.FILTER_DEFLATE in used:
            length = len(zlib.decompressobj().decompress(content, size + 1))
        else:
            length = _lzf_length(content) if h5z.FILTER_LZF in used else len(content)
        if length != size:
            raise MediaError(f"a chunk has {length} of {size} bytes")


def _lzf_length(content: bytes) -> int:
    """Return the number of bytes that LZF data expand to."""
    length = place = 0
    while place < len(content):
        control = content[place]
        if control < 32:  # literal bytes follow
            length, place = length + control + 1, place + control + 2
        elif control < 224:  # a copy of 3 to 8 bytes
            length, place = length + (control >> 5) + 2, place + 2
        else:
            length, place = length + content[place + 1] + 9, place + 3
    return length
