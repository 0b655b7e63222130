"""Predictions: what scores are computed from, as Parquet."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.errors import StoreError
from stepline.io import atomic_path, canonical_json


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a method says of one recording's samples with one seed.

    ids: of the N samples. chosen: (N,) labels, -1 for a guess with equal odds.
    scores: (N, K+1), with NaN in column 0 where Irrelevant has no score of its own; (N, 2) in retrieval, of the
    candidates; or None.
    """

    seed: int
    split: str
    video: str
    ids: list[int]
    chosen: NDArray[np.int64]
    scores: NDArray[np.float32] | None


def write_predictions(path: Path, predictions: list[Prediction], *, about: Mapping[str, object]) -> None:
    """Write one row per seed and sample: seed, split, video, sample, prediction (null for a guess), scores (or null).

    about: what the scorer must know besides, kept in the file's metadata: ``thresholded`` (Irrelevant is where the best
    score is below a threshold chosen on validation), ``needs`` and ``selection``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("seed", pa.int64()),
            ("split", pa.string()),
            ("video", pa.string()),
            ("sample", pa.int64()),
            ("prediction", pa.int64()),
            ("scores", pa.list_(pa.float32())),
        ],
        metadata={"about": canonical_json(about)},
    )
    with atomic_path(path) as part, pq.ParquetWriter(part, schema) as writer:
        for p in predictions:
            n = len(p.ids)
            scores = pa.nulls(n, pa.list_(pa.float32()))
            if p.scores is not None:
                offsets = np.arange(n + 1, dtype=np.int32) * p.scores.shape[1]
                scores = pa.ListArray.from_arrays(offsets, pa.array(p.scores.astype(np.float32).ravel()))
            columns = [
                pa.array(np.full(n, p.seed)),
                pa.array([p.split] * n),
                pa.array([p.video] * n),
                pa.array(p.ids),
                pa.array(p.chosen, mask=p.chosen == -1),
                scores,
            ]
            writer.write_table(pa.table(columns, schema=schema))


def read_predictions(path: Path) -> tuple[list[Prediction], dict[str, object]]:
    """Return what ``write_predictions`` wrote; raise StoreError where the file is absent or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        raise StoreError(f"{path} is not there: run `stepline predict`")
    try:
        file = pq.ParquetFile(path)
        tables = [file.read_row_group(number) for number in range(file.num_row_groups)]
        about: dict[str, object] = json.loads(file.schema_arrow.metadata[b"about"])
    except (pa.ArrowException, OSError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged ({error}): remove it and run `stepline predict` again") from None
    predictions = []
    for table in tables:
        n = table.num_rows
        scores = table["scores"].combine_chunks()
        predictions.append(
            Prediction(
                seed=table["seed"][0].as_py(),
                split=table["split"][0].as_py(),
                video=table["video"][0].as_py(),
                ids=table["sample"].to_pylist(),
                chosen=table["prediction"].fill_null(-1).to_numpy(),
                scores=None if scores.null_count else scores.flatten().to_numpy().reshape(n, -1),
            )
        )
    return predictions, about
