"""Transcripts in the release format of Spacewalk-18: sentences with start and end, as CSV in cp1252."""

import csv
import io
import math
from pathlib import Path

from stepline.asr.transcript import Sentence
from stepline.errors import ReleaseError

HEADER = ("Sentence", "Global start", "Global end")
ENCODING = "cp1252"
AGAIN = "remove it and fetch the release again"


def read(path: Path | str) -> tuple[Sentence, ...]:
    """Return the sentences of a released transcript, in order of their starts; they may overlap.

    Times are in seconds. Raises ReleaseError, naming file and line, if the file does not have this format.
    """
    try:
        content = Path(path).read_bytes().decode(ENCODING)
    except UnicodeDecodeError as error:
        raise ReleaseError(f"{path}: not {ENCODING} (byte {error.start}): {AGAIN}") from None
    rows = csv.reader(io.StringIO(content, newline=""), strict=True)
    sentences: list[Sentence] = []
    last_s = 0.0
    try:
        if tuple(next(rows, ())) != HEADER:
            raise ReleaseError(f"{path}: the first line must be {','.join(HEADER)!r}: {AGAIN}")
        for text, start, end in rows:
            start_s, end_s = float(start), float(end)
            if not last_s <= start_s <= end_s < math.inf:
                raise ReleaseError(
                    f"{path}, line {rows.line_num}: times must ascend: {start}, {end} after {last_s}: {AGAIN}"
                )
            sentences.append(Sentence(text, start_s, end_s, engine="released"))
            last_s = start_s
    except (ValueError, csv.Error) as error:
        reason = f"not a sentence, a start and an end ({error})"
        raise ReleaseError(f"{path}, line {rows.line_num}: {reason}: {AGAIN}") from None
    return tuple(sentences)
