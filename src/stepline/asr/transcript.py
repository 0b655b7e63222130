"""Transcripts: sentences with start and end, as CSV."""

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from stepline.errors import StoreError
from stepline.io import write_text

HEADER = ("Sentence", "Global start", "Global end")
AGAIN = "remove it and the folder manifests beside it, then run the same again"


@dataclass(frozen=True)
class Sentence:
    """One spoken sentence; times in seconds from the start of the video."""

    text: str
    start_s: float
    end_s: float


def read(path: Path | str, encoding: str = "utf-8") -> tuple[Sentence, ...]:
    """Return the sentences of a transcript file, which stand in the order of their starts; they may overlap.

    Raises StoreError, naming file and line, where it is not such a file.
    """
    try:
        content = Path(path).read_bytes().decode(encoding)
    except UnicodeDecodeError as error:
        raise StoreError(f"{path}: not {encoding} (byte {error.start}): {AGAIN}") from None
    rows = csv.reader(io.StringIO(content, newline=""), strict=True)
    sentences: list[Sentence] = []
    last_s = 0.0
    try:
        if tuple(next(rows, ())) != HEADER:
            raise StoreError(f"{path}: the first line must be {','.join(HEADER)!r}: {AGAIN}")
        for text, start, end in rows:
            sentences.append(Sentence(text, float(start), float(end)))
            if not last_s <= sentences[-1].start_s <= sentences[-1].end_s < math.inf:
                raise StoreError(
                    f"{path}, line {rows.line_num}: times must ascend: {start}, {end} after {last_s}: {AGAIN}"
                )
            last_s = sentences[-1].start_s
    except (ValueError, csv.Error) as error:
        reason = f"not a sentence, a start and an end ({error})"
        raise StoreError(f"{path}, line {rows.line_num}: {reason}: {AGAIN}") from None
    return tuple(sentences)


def write(path: Path | str, sentences: Iterable[Sentence]) -> None:
    """Write ``sentences`` to ``path`` as UTF-8, times with 2 decimals."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows((s.text, f"{s.start_s:.2f}", f"{s.end_s:.2f}") for s in sentences)
    write_text(path, buffer.getvalue())
