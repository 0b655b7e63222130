"""Predictions: what scores are computed from, as Parquet."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stepline.errors import StoreError
from stepline.io import atomic_path, canonical_json


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a method says of one video with one seed.

    segments: [start, end) in seconds, by (start, end). scores: of each, higher is surer; empty where a method has none.
    sentences: of each; empty where a method writes none.
    """

    seed: int
    split: str
    video: str
    segments: tuple[tuple[float, float], ...]
    scores: tuple[float, ...] = ()
    sentences: tuple[str, ...] = ()


def write_predictions(path: Path, predictions: Iterable[Prediction], *, about: Mapping[str, object]) -> None:
    """Write a row per seed and video. about: ``needs`` and ``selection``, kept in the file's metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("seed", pa.int64()),
            ("split", pa.string()),
            ("video", pa.string()),
            ("start_s", pa.list_(pa.float64())),
            ("end_s", pa.list_(pa.float64())),
            ("score", pa.list_(pa.float64())),
            ("sentence", pa.list_(pa.string())),
        ],
        metadata={"about": canonical_json(about)},
    )
    rows = [
        {
            "seed": p.seed,
            "split": p.split,
            "video": p.video,
            "start_s": [start_s for start_s, _ in p.segments],
            "end_s": [end_s for _, end_s in p.segments],
            "score": p.scores,
            "sentence": p.sentences,
        }
        for p in predictions
    ]
    with atomic_path(path) as part:
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), part)


def read_predictions(path: Path) -> tuple[list[Prediction], dict[str, object]]:
    """Return what ``write_predictions`` wrote; raise StoreError where the file is absent or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        raise StoreError(f"{path} is not there: run `stepline predict`")
    try:
        file = pq.ParquetFile(path)
        about: dict[str, object] = json.loads(file.schema_arrow.metadata[b"about"])
        rows = file.read().to_pylist()
        made = [
            Prediction(
                seed=row["seed"],
                split=row["split"],
                video=row["video"],
                segments=tuple(zip(row["start_s"], row["end_s"], strict=True)),
                scores=tuple(row["score"]),
                sentences=tuple(row["sentence"]),
            )
            for row in rows
        ]
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} is damaged ({error}): remove it and run `stepline predict` again") from None
    return made, about
