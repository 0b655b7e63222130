"""The cache of text embeddings: each distinct truncated text is encoded once.

A store is a folder with a Zarr array ``embeddings`` (N, D) and ``index.parquet`` (sha256 of the text, row). Texts that
are equal after truncation share a row.
"""

import fcntl
import hashlib
import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stepline import paths
from stepline.aside import sweep
from stepline.errors import StoreError
from stepline.features.store import check_spec, damage_is_one_line, read_index
from stepline.features.zarr_file import read_array
from stepline.io import atomic_dir, read_arrays, read_json, write_arrays, write_json, write_table
from stepline.lock import acquire
from stepline.progress import progress
from stepline.spec import Spec

PART = 256
"""The number of texts that are committed together, and so the most that a kill can lose."""
COLUMNS = {"text_sha256": str, "tokens_sha256": str, "row": int}
SHA256 = b"embeddings_sha256"
"""In the metadata of ``index.parquet``, the sha256 of the rows' bytes."""


class TextEncoder(Protocol):
    """An encoder of texts to vectors."""

    @property
    def spec(self) -> Spec:
        """The spec that identifies the encoder's vectors."""

    def tokens(self, text: str) -> list[int]:
        """Return the token ids of ``text`` after truncation."""

    def encode(self, tokens: list[int]) -> NDArray[np.float32]:
        """Return the (D,) embedding of those tokens."""


class TextStore:
    """The text embeddings of one store."""

    def __init__(self, folder: Path, spec: Spec) -> None:
        """Open the store in ``folder``.

        A shared lock next to the store keeps writers from replacing it while it is read. Readers write nothing, so the
        folder may be read-only; a copy of a store without the lock file is read without locking.
        Raises StoreError if the store is absent, damaged or has another spec.
        """
        with ExitStack() as stack:
            with suppress(OSError):
                fcntl.flock(stack.enter_context(open(_swap_lock(folder))), fcntl.LOCK_SH)
            stack.enter_context(damage_is_one_line(folder, "encode"))
            stored = dict(read_json(folder / "spec.json"))
            table = read_index(folder, COLUMNS)
            index = table.to_pydict()
            self.embeddings = read_array(folder / "embeddings")
            if {*index["row"]} != {*range(len(self.embeddings))}:
                raise ValueError("the index does not match the rows")
            if (known := (table.schema.metadata or {}).get(SHA256)) and known != _digest(self.embeddings):
                raise ValueError("the rows do not match the index")
        check_spec(folder, stored, spec)
        self.rows: dict[str, int] = dict(zip(index["text_sha256"], index["row"], strict=True))
        self.tokens: list[str] = index["tokens_sha256"]

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the (N, D) embeddings of ``texts``; raise StoreError if a text is not in the store."""
        try:
            return self.embeddings[[self.rows[_sha256(text.encode())] for text in texts]]
        except KeyError:
            raise StoreError(
                "a text has no embedding: run `stepline encode` for this release, task and video"
            ) from None


def kept(study: str, what: str, texts: Iterable[str], encoder: TextEncoder) -> TextStore:
    """Encode the missing ``texts`` into the store of ``what`` of a study, and return the store."""
    folder = paths.text_store(study, what, encoder.spec)
    write_json(paths.spec_record(encoder.spec), encoder.spec.record())
    encode_texts(texts, encoder, folder, what=f"{encoder.spec.name} on {what}")
    return TextStore(folder, encoder.spec)


def encode_texts(texts: Iterable[str], encoder: TextEncoder, folder: Path, *, what: str) -> int:
    """Encode the ``texts`` that are missing in the store in ``folder``; return the number of computed vectors.

    Existing vectors are kept. A kill loses at most 256 vectors: they are committed in parts and compacted at the end,
    in the order of their keys, so that the bytes do not depend on the history.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with acquire(f"{folder}.lock"):
        sweep(folder.parent)
        token_key: dict[str, str] = {}
        vectors: dict[str, NDArray[np.float32]] = {}
        if folder.exists():
            store = TextStore(folder, encoder.spec)
            token_key = dict(zip(store.rows, store.tokens, strict=True))
            vectors = {key: store.embeddings[row] for key, row in zip(store.tokens, store.rows.values(), strict=True)}
        parts = folder.with_name(f"{folder.name}.parts")
        for part in sorted(parts.glob("[!.]*.npz")):
            loaded = read_arrays(part)
            vectors.update(zip(loaded["keys"].tolist(), loaded["vectors"], strict=True))

        wanted: dict[str, list[int]] = {}
        known = len(token_key)
        for text in texts:
            key = _sha256(text.encode())
            if key in token_key:
                continue
            tokens = encoder.tokens(text)
            token_key[key] = _sha256(np.asarray(tokens, dtype="<i4").tobytes())
            if token_key[key] not in vectors:
                wanted[token_key[key]] = tokens
        staged: dict[str, NDArray[np.float32]] = {}
        for count, (key, tokens) in enumerate(progress(wanted.items(), what=what, unit="texts", total=len(wanted)), 1):
            staged[key] = encoder.encode(tokens)
            if len(staged) == PART or count == len(wanted):
                write_arrays(
                    parts / f"{next(iter(staged))}.npz", keys=np.array([*staged]), vectors=np.stack([*staged.values()])
                )
                vectors |= staged
                staged = {}
        if len(token_key) > known:
            _compact(folder, encoder.spec, token_key, vectors)
        shutil.rmtree(parts, ignore_errors=True)
        return len(wanted)


def _compact(folder: Path, spec: Spec, token_key: dict[str, str], vectors: dict[str, NDArray[np.float32]]) -> None:
    import pyarrow as pa
    import zarr

    keys = sorted(set(token_key.values()))
    row = {key: number for number, key in enumerate(keys)}
    texts = sorted(token_key)
    with acquire(_swap_lock(folder)), atomic_dir(folder) as part:
        matrix = np.stack([vectors[key] for key in keys])
        chunks = min(1024, len(keys)), matrix.shape[1]
        zarr.create_array(
            part / "embeddings", data=matrix, chunks=chunks, compressors=None, config={"write_empty_chunks": True}
        )
        columns = {
            "text_sha256": texts,
            "tokens_sha256": [token_key[text] for text in texts],
            "row": [row[token_key[text]] for text in texts],
        }
        table = pa.table(columns).replace_schema_metadata({SHA256: _digest(matrix)})
        write_table(part / "index.parquet", table)
        write_json(part / "spec.json", spec.record())


def _digest(matrix: NDArray[np.float32]) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(matrix).data).hexdigest().encode()


def _swap_lock(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.swap.lock")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
