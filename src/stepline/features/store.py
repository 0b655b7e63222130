"""The feature store: one Zarr array of rows, uncompressed in one shard file, and an index of its videos.

``features/`` is the array (rows, D), with the spec in its attributes. ``index.parquet`` has a Block per video, or per
span if spans of a video were read. If rows are listed clips, ``clips.parquet`` lists them. On object storage, these are
objects of the same names and bytes.
"""

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from stepline.aside import folder_beside
from stepline.availability import check_video_id
from stepline.errors import StoreError
from stepline.features import objects
from stepline.features.objects import ARRAY, CLIPS, INDEX, METADATA, ObjectError
from stepline.features.partial import PartialCopy
from stepline.features.zarr_file import CHUNK, Rows, close_shard, layout, read_array
from stepline.io import atomic_dir, canonical_json, read_json, sha256_file, write_table
from stepline.media.spans import Spans
from stepline.media.timeline import Gap
from stepline.paths import Location, Remote
from stepline.seal import CHANGED, intact
from stepline.spec import Spec

if TYPE_CHECKING:
    import pyarrow as pa

Clips = Sequence[tuple[float, float]]
"""[start_s, end_s) of listed clips."""

AT_ONCE = 16 * CHUNK
"""Rows of a video that are checked and written together."""
LINES_AT_ONCE, MOST_EXPANDED = 1024, 100
"""Lines of a table that are read together, and the maximum ratio of their bytes in memory to those of the file."""
ALLOWED_ERROR = 5e-4
"""The maximum relative L2 error of a stored row. Rounding to float16 gives 2^-11, unless a row has only tiny values."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A video's part of a store: ``length`` rows from row ``offset`` on; row i is at the time t0_s + i hop_s.

    start_s, end_s: the span of the video that it covers; 0 and infinity for the whole video.
    sha256: of the rows' bytes. source_sha256: of the file that they were computed from, empty if unknown.
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


CLIPS_SHA256 = b"clips_sha256"
"""In the metadata of ``index.parquet``, the sha256 of ``clips.parquet``."""
DAMAGED = "damaged"
"""The array's attribute with the key, requested spans and gaps of each damaged video; absent if there are none."""
ATTRIBUTES_SHA256 = b"attributes_sha256"
"""In the same metadata, the sha256 of the array's attributes as canonical JSON, as their file format may change."""
CLIP = {"video": str, "start_s": float, "end_s": float, "row": int}
"""The columns of ``clips.parquet``; row: an index into all rows of the store."""


class Damaged(NamedTuple):
    """A video with rows for only a part of its length.

    key: the cache key of its rows, see ``cache.FeatureCache``. spans: the requested ones; none for the whole video.
    """

    key: str
    spans: Spans
    gaps: list[Gap]


@dataclass(frozen=True, kw_only=True)
class Recorded(Spec):
    """A spec that is known only from its record."""

    values: dict[str, Any]
    dimension: int

    def record(self) -> dict[str, Any]:
        """Return the record."""
        return self.values


@dataclass(frozen=True)
class Store:
    """The content of a store. blocks: by video, in order of time. clips: rows of listed clips by video, or empty.

    damaged: the videos with rows for only a part of their length. copy: for a remote store, the local copy of its rows,
    which ``fetch`` downloads. checked: the offsets of the blocks whose rows were found to match the index.
    """

    location: Location
    spec: Recorded
    rows: Rows
    blocks: dict[str, list[Block]]
    clips: dict[str, dict[tuple[float, float], int]]
    damaged: dict[str, Damaged]
    copy: PartialCopy | None = None
    checked: set[int] = field(default_factory=set)

    def rows_of(self, block: Block) -> Rows:
        """Return a block's rows; rows that are not downloaded yet are undefined."""
        return self.rows[block.offset : block.offset + block.length]


class Part(NamedTuple):
    """The rows of one span of a video; the first row is at the time t0_s."""

    rows: Rows
    t0_s: float
    start_s: float
    end_s: float


def digest(rows: Rows) -> str:
    """Return the sha256 of the bytes of stored rows, in hex."""
    return hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()


def cast(rows: Rows, spec: Spec, video: str, first: int = 0) -> Rows:
    """Return the (n, D) ``rows`` of a video, which start at its row ``first``, in the spec's ``dtype``.

    Raises StoreError if the result is not finite, or if the relative L2 error of a row is above 5e-4.
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
    location: Location,
    spec: Spec,
    parts: Mapping[str, Rows | Sequence[Part]],
    hop_s: float,
    *,
    sources: Mapping[str, str] | None = None,
    clips: Mapping[str, Clips] | None = None,
    damaged: Mapping[str, Damaged] | None = None,
) -> None:
    """Write the (T, D) rows of each video to a store, in the order of their ids.

    parts: plain rows cover a whole video, from 0 s on. They are read and written video by video, in the spec's
    ``dtype``. sources: sha256 of the file that a video's rows were computed from. clips: the clip of each row, if the
    spec uses listed clips. damaged: the videos with rows for only a part of their length. A remote store is written to
    the disk first, and stays there until all of it is sent. Raises StoreError if rows cannot be stored, see ``cast``,
    or differ in D, and StorageError if object storage cannot be written.
    """
    if isinstance(location, Path):
        _write(location, spec, parts, hop_s, sources or {}, clips, damaged or {})
    else:
        _write(_outgoing(location), spec, parts, hop_s, sources or {}, clips, damaged or {})
        send(location)


def send(location: Location) -> None:
    """Send a remote store that a kill or an error left unsent, if there is one; raise StorageError on failure."""
    if isinstance(location, Remote) and _outgoing(location).exists():
        objects.put_store(_outgoing(location), location.url)
        with folder_beside(location.folder) as sent:  # a half-deleted store must not be sent
            _outgoing(location).replace(sent / "sent")


def _outgoing(location: Remote) -> Path:
    return location.folder.with_name(f"{location.folder.name}.outgoing")


def _write(
    folder: Path,
    spec: Spec,
    parts: Mapping[str, Rows | Sequence[Part]],
    hop_s: float,
    sources: Mapping[str, str],
    clips: Mapping[str, Clips] | None,
    damaged: Mapping[str, Damaged],
) -> None:
    import zarr

    blocks: list[Block] = []
    dimension = 0
    with atomic_dir(folder) as staged:
        shard = staged / ARRAY
        shard.parent.mkdir(parents=True)
        with open(shard, "wb") as file:
            for video in sorted(parts):
                part = parts[video]
                for piece in [Part(part, 0.0, 0.0, math.inf)] if isinstance(part, np.ndarray) else part:
                    dimension = dimension or piece.rows.shape[1]
                    if piece.rows.shape[1:] != (dimension,):
                        raise StoreError(f"{video}: its rows have {piece.rows.shape[1]} values, other rows {dimension}")
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
                            source_sha256=sources.get(video, ""),
                        )
                    )
            n_rows = sum(block.length for block in blocks)
            n_chunks = max(1, -(-n_rows // CHUNK))
            close_shard(file, n_rows, n_chunks)
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
            attributes={"spec": spec.record(), **({DAMAGED: _listed(damaged)} if damaged else {})},
        )
        about = {ATTRIBUTES_SHA256: _sha256_of(read_json(staged / METADATA)["attributes"])}
        if clips is not None:
            _write_table(staged / CLIPS, CLIP, list(_clip_lines(blocks, clips)))
            about[CLIPS_SHA256] = sha256_file(staged / CLIPS).encode()
        _write_table(staged / INDEX, Block.__annotations__, [asdict(block) for block in blocks], about)


def read_gaps(given: Sequence[Any]) -> list[Gap]:
    """Return gaps from their JSON form."""
    return [(float(start_s), float(end_s), str(reason)) for start_s, end_s, reason in given]


def _sha256_of(attributes: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(canonical_json(attributes).encode()).hexdigest().encode()


def _listed(damaged: Mapping[str, Damaged]) -> dict[str, Any]:
    return {video: each._asdict() for video, each in sorted(damaged.items())}


def _append(file: BinaryIO, rows: Rows, spec: Spec, video: str) -> str:
    """Write rows in their stored form and return the sha256 of their bytes."""
    sha256 = hashlib.sha256()
    for first in range(0, len(rows), AT_ONCE):
        stored = np.ascontiguousarray(cast(rows[first : first + AT_ONCE], spec, video, first))
        sha256.update(stored.data)
        file.write(stored.data)
    return sha256.hexdigest()


def _clip_lines(blocks: list[Block], clips: Mapping[str, Clips]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        listed = clips[block.video]
        if len({*listed}) != block.length:
            raise StoreError(f"{block.video}: {block.length} rows for {len({*listed})} different clips")
        for row, (start_s, end_s) in enumerate(listed, block.offset):
            yield {"video": block.video, "start_s": float(start_s), "end_s": float(end_s), "row": row}


def _write_table(
    path: Path, columns: Mapping[str, type], lines: list[dict[str, Any]], about: Mapping[bytes, bytes] | None = None
) -> None:
    import pyarrow as pa

    schema = _schema(columns).with_metadata(about or None)
    write_table(path, pa.Table.from_pylist(lines, schema), write_page_checksum=True)


def read(location: Location) -> Store:
    """Open a store that ``write`` wrote. Rows are read on access; ``fetch`` downloads the rows of a remote store.

    Raises StoreError if the store is absent or damaged, and StorageError if this is unknown.
    """
    with damage_is_one_line(location, "extract"):
        metadata = json.loads(_content(location, METADATA))
        record = dict(metadata["attributes"]["spec"])
        index = _parsed(_content(location, INDEX), Block.__annotations__)
        known = (index.schema.metadata or {}).get(ATTRIBUTES_SHA256)
        if known and known != _sha256_of(metadata["attributes"]):
            raise ValueError("the array's attributes do not match the index")
        listed = [Block(**line) for line in index.to_pylist()]
        copy = None
        if isinstance(location, Path):
            rows = read_array(location / "features")
        else:
            copy = _partial(location.url, metadata)
            rows = copy.rows
        if rows.dtype != record["dtype"] or not rows.shape[1]:
            raise ValueError("the rows have another dtype than in the spec, or no values")
        ends = [0, *(block.offset + block.length for block in listed)]
        if [*(block.offset for block in listed), len(rows)] != ends:
            raise ValueError("the blocks do not match the rows")
        if any((before.video, before.end_s) > (after.video, after.start_s) for before, after in pairwise(listed)):
            raise ValueError("the blocks are not in order")
        if not all(0 < block.hop_s < math.inf and abs(block.t0_s) < math.inf for block in listed):
            raise ValueError("the times of the rows are no numbers")
        blocks: dict[str, list[Block]] = {}
        for block in listed:
            blocks.setdefault(check_video_id(block.video), []).append(block)
        clips: dict[str, dict[tuple[float, float], int]] = {}
        if record.get("placement", "grid") != "grid":
            clips = _read_clips(location, listed, (index.schema.metadata or {}).get(CLIPS_SHA256, b"").decode())
        named = {key: record[key] for key in ("name", "label", "revision")}
        spec = Recorded(**named, values=record, dimension=rows.shape[1])
        damaged = {
            video: Damaged(each["key"], each["spans"], read_gaps(each["gaps"]))
            for video, each in metadata["attributes"].get(DAMAGED, {}).items()
        }
        if damaged.keys() - blocks.keys():
            raise ValueError("a damaged video is not in the index")
    return Store(location, spec, rows, blocks, clips, damaged, copy)


def _read_clips(location: Location, listed: Sequence[Block], sha256: str) -> dict[str, dict[tuple[float, float], int]]:
    """Return the row of each clip by video. sha256: as in the index; "" for an old store whose index has none."""
    content = _content(location, CLIPS)
    if hashlib.sha256(content).hexdigest() != sha256 and (sha256 or isinstance(location, Remote)):
        raise ValueError("the clips do not match the index")
    lines = _parsed(content, CLIP).to_pylist()
    if [(line["video"], line["row"]) for line in lines] != [
        (block.video, block.offset + i) for block in listed for i in range(block.length)
    ]:
        raise ValueError("the clips do not match the rows")
    clips: dict[str, dict[tuple[float, float], int]] = {block.video: {} for block in listed}
    first = {block.video: block.offset for block in reversed(listed)}
    for line in lines:
        clips[line["video"]][line["start_s"], line["end_s"]] = line["row"] - first[line["video"]]
    return clips


def read_all(locations: Iterable[Location]) -> list[Store]:
    """Open stores as ``read`` does, in parallel."""
    return objects.at_once(partial(read, location) for location in locations)


def fetch(wanted: Iterable[tuple[Store, Sequence[Block]]], *, check: bool = True) -> None:
    """Download the rows of blocks of remote stores in parallel, and check all rows against their sha256.

    Blocks that were checked before are skipped. check: False only downloads. Raises StorageError if object storage
    cannot be read, and StoreError if rows do not match the index.
    """
    lacking = [
        (held, missing) for held, blocks in wanted if (missing := [b for b in blocks if b.offset not in held.checked])
    ]
    objects.at_once(
        partial(_bring, held, piece)
        for held, blocks in lacking
        if held.copy
        for piece in held.copy.pieces(_spans(blocks))
    )
    if check:
        objects.at_once(partial(_compare, held, block) for held, blocks in lacking for block in blocks)
        for held, blocks in lacking:
            held.checked.update(block.offset for block in blocks)


def _bring(held: Store, piece: Callable[[], None]) -> None:
    try:
        piece()
    except ObjectError:
        raise StoreError(_damaged(held.location, "its rows are absent or")) from None


def _compare(held: Store, block: Block) -> None:
    if digest(held.rows_of(block)) != block.sha256:
        raise StoreError(_damaged(held.location, f"the rows of {block.video} are"))


def _spans(blocks: Iterable[Block]) -> list[tuple[int, int]]:
    return [(block.offset, block.length) for block in blocks]


def _partial(url: str, metadata: dict[str, Any]) -> PartialCopy:
    """Return an empty copy of a remote array; raise ValueError if its rows are not in order in one shard."""
    form = layout(metadata)
    if form.shape[0] and (form.chunk_rows is None or objects.size(f"{url}/{ARRAY}") != form.file_bytes):
        raise ValueError("its rows are not in order in one shard")
    return PartialCopy(f"{url}/{ARRAY}", form.shape, form.dtype)


def _content(location: Location, name: str) -> bytes:
    return (location / name).read_bytes() if isinstance(location, Path) else objects.get(f"{location.url}/{name}")


@contextmanager
def damage_is_one_line(location: Location, verb: str) -> Iterator[None]:
    """Raise StoreError for any error while a store is read; ``verb`` is the command that writes it again."""
    try:
        yield
    except (MemoryError, PermissionError, objects.StorageError):
        raise
    except Exception as error:
        if isinstance(location, Remote):
            raise StoreError(_damaged(location, "it is absent or")) from error
        raise StoreError(f"{location} is absent or damaged: remove it and run `stepline {verb}`") from error


def _damaged(location: Location, what: str) -> str:
    return (
        f"{location}: {what} damaged: copy the store there, or run `stepline verify` and `snakemake`, which computes "
        "the lost rows"
    )


def check_spec(location: Location, stored: dict[str, Any], spec: Spec) -> None:
    """Raise StoreError, naming the differences, if the ``stored`` record is not the record of ``spec``."""
    asked = spec.record()
    if canonical_json(stored) != canonical_json(asked):
        differences = [
            f"{key} is {stored.get(key)!r}, not {asked.get(key)!r}"
            for key in sorted(stored.keys() | asked.keys())
            if stored.get(key) != asked.get(key)
        ]
        raise StoreError(f"{location} has another spec: {'; '.join(differences)}")


def read_index(folder: Path, columns: Mapping[str, type]) -> "pa.Table":
    """Return the table ``index.parquet``; raise ValueError if it has other columns."""
    return _parsed((folder / INDEX).read_bytes(), columns)


def _parsed(content: bytes, columns: Mapping[str, type]) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not intact(content):
        raise ValueError(CHANGED)
    file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    if file.schema_arrow != _schema(columns):
        raise ValueError("it has other columns")
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    if any(group.column(place).compression != "SNAPPY" for group in groups for place in range(len(columns))):
        raise ValueError("it is compressed in another way")
    batches, left = [], MOST_EXPANDED * len(content)
    for batch in file.iter_batches(LINES_AT_ONCE):
        batches.append(batch)
        left -= batch.nbytes
        if left < 0:
            raise ValueError("it expands to much more than its size")
    return pa.Table.from_batches(batches, file.schema_arrow)


def _schema(columns: Mapping[str, type]) -> "pa.Schema":
    import pyarrow as pa

    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    return pa.schema([(name, types[kind]) for name, kind in columns.items()])
