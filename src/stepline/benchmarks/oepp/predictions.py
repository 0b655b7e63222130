"""Predictions: what scores are computed from, as Parquet."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stepline.errors import StoreError
from stepline.io import atomic_path, canonical_json


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The plan of one window with one seed.

    index: the place of the window's first action in its video. plan: places in the pool of its part, or NO_ACTION and
    GUESS of `stepline.metrics.plans`.
    """

    seed: int
    part: str
    video: str
    index: int
    plan: tuple[int, ...]


def write_predictions(path: Path, predictions: Iterable[Prediction], *, about: Mapping[str, object]) -> None:
    """Write a row per seed and window. about: ``needs`` and ``selection``, kept in the file's metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("seed", pa.int64()),
            ("part", pa.string()),
            ("video", pa.string()),
            ("index", pa.int64()),
            ("plan", pa.list_(pa.int64())),
        ],
        metadata={"about": canonical_json(about)},
    )
    made = list(predictions)
    columns = {name: [getattr(each, name) for each in made] for name in schema.names}
    with atomic_path(path) as part:
        pq.write_table(pa.table(columns, schema=schema), part)


def read_predictions(path: Path) -> tuple[list[Prediction], dict[str, object]]:
    """Return what ``write_predictions`` wrote; raise StoreError where the file is absent or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        raise StoreError(f"{path} is not there: run `stepline predict`")
    try:
        file = pq.ParquetFile(path)
        about: dict[str, object] = json.loads(file.schema_arrow.metadata[b"about"])
        made = [Prediction(**row | {"plan": tuple(row["plan"])}) for row in file.read().to_pylist()]
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} is damaged ({error}): remove it and run `stepline predict` again") from None
    return made, about
