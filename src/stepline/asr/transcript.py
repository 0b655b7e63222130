"""Transcripts: sentences and words with times, one Parquet file per video."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.errors import StoreError
from stepline.io import read_table, write_table

if TYPE_CHECKING:
    import pyarrow as pa

AGAIN = "remove it and the folder manifests next to it, then run the same command again"


@dataclass(frozen=True)
class Word:
    """One spoken word. Times are in seconds from the start of the video; confidence is in [0, 1], or None."""

    text: str
    start_s: float
    end_s: float
    confidence: float | None = None


@dataclass(frozen=True)
class Sentence:
    """One spoken sentence, with times and confidence as in ``Word``.

    words: in order of their starts; empty if the engine returns none. chunk: the index of the recording's chunk.
    engine: the engine's name.
    """

    text: str
    start_s: float
    end_s: float
    confidence: float | None = None
    words: tuple[Word, ...] = ()
    chunk: int = 0
    engine: str = ""


def read(path: Path | str) -> tuple[Sentence, ...]:
    """Return the sentences of a transcript, in order of their starts; they may overlap.

    Raises StoreError if the file is absent, damaged or not a transcript.
    """
    if not Path(path).is_file():
        raise StoreError(f"{path} is absent: remove the folder manifests next to it, then run the same command again")
    table = read_table(path)
    if not table.schema.equals(_schema()):
        raise StoreError(f"{path} is not a transcript: {AGAIN}")
    rows = table.to_pylist()
    sentences = tuple(Sentence(**row | {"words": tuple(Word(**word) for word in row["words"])}) for row in rows)
    if problem := _problem(sentences):
        raise StoreError(f"{path}: {problem}: {AGAIN}")
    return sentences


def write(path: Path | str, sentences: Iterable[Sentence]) -> None:
    """Write ``sentences``, which must be in order of their starts: equal sentences give equal bytes.

    Raises ValueError if they are in another order, or a number is not finite or out of range.
    """
    import pyarrow as pa

    rows = tuple(sentences)
    if problem := _problem(rows):
        raise ValueError(problem)
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=_schema())
    write_table(path, table, compression="zstd")


def _schema() -> "pa.Schema":
    import pyarrow as pa

    def column(name: str, of: pa.DataType) -> pa.Field:
        return pa.field(name, of, nullable=name == "confidence")

    said = [
        column("text", pa.string()),
        column("start_s", pa.float64()),
        column("end_s", pa.float64()),
        column("confidence", pa.float64()),
    ]
    words = pa.list_(column("element", pa.struct(said)))
    return pa.schema([*said, column("words", words), column("chunk", pa.int32()), column("engine", pa.string())])


def _problem(sentences: Sequence[Sentence]) -> str:
    last = 0.0
    for number, sentence in enumerate(sentences):
        spoken: list[tuple[Sentence | Word, float]] = [(sentence, last)]
        spoken += zip(sentence.words, [0.0, *(word.start_s for word in sentence.words)], strict=False)
        for said, after in spoken:
            if not after <= said.start_s <= said.end_s < math.inf:
                return f"sentence {number}: times must ascend: {said.start_s}, {said.end_s} after {after}"
            if said.confidence is not None and not 0 <= said.confidence <= 1:
                return f"sentence {number}: confidence must be in [0, 1]: {said.confidence}"
        last = sentence.start_s
    return ""
