"""Rows in an HDF5 file: read only if all their bytes are in the file, as libhdf5 returns memory in place of others."""

import math
import os
import zlib
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from stepline.errors import StoreError

if TYPE_CHECKING:
    import h5py

LARGEST = 1 << 30
"""The maximum number of bytes of compressed rows; gzip may claim a thousand times the bytes of the file."""


def read(file: "h5py.File", name: str) -> np.ndarray:
    """Return the array of a dataset at the top of an HDF5 file.

    Raises StoreError if ``name`` is a group, and ValueError if it is a link, has values outside of the file, values
    that are absent or no numbers, other filters than gzip, LZF, shuffle and Fletcher32, or more than ``LARGEST``
    compressed bytes. Nothing is allocated before this is known.
    """
    import h5py

    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{name} is a link: put its values into this file")
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset):
        raise StoreError(
            f"{file.filename}: {name} is a group: put a dataset per video at the top of the file, or exclude it with "
            "--prefix, --suffix"
        )
    made = dataset.id.get_create_plist()
    if dataset.is_virtual or made.get_external_count():
        raise ValueError(f"the values of {name} are in other files: put them into this file")
    if (
        dataset.shape is None
        or dataset.dtype.kind not in "biuf"
        or dataset.id.get_type().get_size() != dataset.dtype.itemsize
    ):
        raise ValueError(f"the values of {name} are {dataset.dtype}, which is no kind of number")
    if dataset.chunks is None:
        if dataset.id.get_storage_size() != dataset.nbytes or dataset.nbytes > os.path.getsize(file.filename):
            raise ValueError(f"the values of {name} are not in the file")
    else:
        _check_chunks(dataset, [made.get_filter(number)[0] for number in range(made.get_nfilters())])
    return np.asarray(dataset[()])


def _check_chunks(dataset: "h5py.Dataset", filters: list[int]) -> None:
    """Raise ValueError unless each chunk has its bytes."""
    from h5py import h5z

    packers = [each for each in filters if each in (h5z.FILTER_DEFLATE, h5z.FILTER_LZF)]
    order = [h5z.FILTER_SHUFFLE, *packers[:1], h5z.FILTER_FLETCHER32]
    if filters != [each for each in order if each in filters]:
        raise ValueError("it has other filters than gzip or LZF, with shuffle and Fletcher32: write it with gzip")
    counts = [-(-length // chunk) for length, chunk in zip(dataset.shape, dataset.chunks, strict=True)]
    size = math.prod(dataset.chunks) * dataset.dtype.itemsize
    limit = LARGEST if packers else os.path.getsize(dataset.file.filename)
    if math.prod(counts) * size > limit or dataset.id.get_num_chunks() != math.prod(counts):
        raise ValueError(f"values are absent, or have more than {limit} bytes: write them without compression")
    found: dict[tuple[int, ...], int] = {}
    dataset.id.chunk_iter(lambda chunk: found.update({chunk.chunk_offset: chunk.size}))
    for place in product(*map(range, counts)):
        start = tuple(map(int.__mul__, place, dataset.chunks))
        if start not in found or found[start] > 2 * size + 64:
            raise ValueError("a chunk is absent, or too large")
        mask, content = dataset.id.read_direct_chunk(start)
        used = [each for number, each in enumerate(filters) if not mask >> number & 1]
        content = content[: found[start] - 4 * (h5z.FILTER_FLETCHER32 in used)]
        if h5z.FILTER_DEFLATE in used:
            length = len(zlib.decompressobj().decompress(content, size + 1))
        else:
            length = _lzf_length(content) if h5z.FILTER_LZF in used else len(content)
        if length != size:
            raise ValueError(f"a chunk has {length} of {size} bytes")


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
