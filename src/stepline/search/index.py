"""An index of the rows of a bank: it finds rows that are probably similar to a vector without comparing all of them."""

from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from stepline.errors import StoreError
from stepline.io import read_arrays, read_json, sha256_file
from stepline.models.moments import Floats, Rows
from stepline.needs import how_to_install

FAISS, ARRAYS, RECORD = "index.faiss", "arrays.npz", "record.json"
"""The files in the folder of an index: for faiss; means of videos and sampled rows; the record."""
LEAST_RECALL = 0.95
"""A search does not use an index whose recall@10 is lower."""
ROWS, TEXTS = "rows", "texts"
"""The kinds of queries: rows of videos, and texts."""


@dataclass(frozen=True, kw_only=True)
class Recall:
    """The recall of an index for one kind of query, measured when it was built.

    queries: their number and description. at_10, at_100: the mean part of the 10 (100) most similar rows that are among
    the candidates. lists: the number of lists that are searched for candidates. look: the number of candidates per
    result, whose exact scores are computed.
    """

    queries: str
    at_10: float
    at_100: float
    lists: int
    look: int

    def __str__(self) -> str:
        return f"recall@10 {self.at_10:.3f}, measured with {self.queries}"


@dataclass(frozen=True)
class Index:
    """An index in a folder. record: its ``record.json``."""

    folder: Path
    record: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> "Index | None":
        """Read the record of an index, None if there is no index."""
        return cls(folder, read_json(folder / RECORD)) if (folder / RECORD).exists() else None

    @property
    def similarity(self) -> str:
        """``cosine`` or ``dot product``."""
        return str(self.record["similarity"])

    @property
    def recalls(self) -> dict[str, Recall]:
        """The recall by kind of query, of the kinds for which it was measured."""
        return {kind: Recall(**values) for kind, values in self.record["recall"].items()}

    def refusal(self, bank: str) -> str:
        """Return why the index cannot be used for a bank with this digest, "" if it can."""
        if self.record["bank"] != bank:
            return "the features have changed since it was built"
        return "" if find_spec("faiss") else f"the package faiss is not installed: {how_to_install('index')}"

    def candidates(self, query: Floats, count: int, kind: str) -> Rows:
        """Return the numbers of up to ``count`` rows that are probably the most similar to a (D,) vector."""
        import faiss

        faiss.extract_index_ivf(self._faiss).nprobe = self.recalls[kind].lists
        found: Rows = self._faiss.search(query[None].astype(np.float32), count)[1][0]
        return found[found >= 0]

    @property
    def means(self) -> Floats:
        """The (V, D) means of the videos, not scaled."""
        means: Floats = self._arrays["means"]
        return means

    @property
    def sample(self) -> Floats:
        """Evenly spaced rows, (S, D)."""
        sample: Floats = self._arrays["sample"].astype(np.float64)
        return sample

    def prepare(self) -> None:
        """Load all files; otherwise the first query loads them. Raises StoreError if one is damaged."""
        _ = self._faiss, self._arrays

    @cached_property
    def _arrays(self) -> dict[str, Any]:
        self._check(ARRAYS)
        return read_arrays(self.folder / ARRAYS)

    @cached_property
    def _faiss(self) -> Any:
        import faiss

        self._check(FAISS)
        faiss.omp_set_num_threads(1)  # a single query has no use for more
        return faiss.read_index(str(self.folder / FAISS))

    def _check(self, name: str) -> None:
        path = self.folder / name
        if not path.exists() or sha256_file(path) != self.record["sha256"][name]:
            raise StoreError(f"{path} is absent or damaged: run `stepline bank index` again, or remove {self.folder}")
