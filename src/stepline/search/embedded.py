"""The rows and sentences of a small data set, encoded so that the search page can search them itself."""

import base64
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepline.search.corpus import Corpus
from stepline.search.sources import Source
from stepline.search.transcripts import Transcripts
from stepline.search.words import WordCorpus

EMBEDDED_MB, EMBEDDED_VIDEOS = 4, 200
"""The limits of a page: MB of rows and of sentences, and number of videos."""
LIMIT = f"up to {EMBEDDED_VIDEOS} videos, {EMBEDDED_MB} MB"


@dataclass(frozen=True)
class Embedded:
    """rows, lines: whether rows and sentences are included. videos: their videos. data: JSON for a script element."""

    rows: bool
    lines: bool
    videos: frozenset[str]
    data: str


def embed(source: Source, transcripts: Transcripts) -> Embedded | None:
    """Return the rows of a source in float16 and the sentences, each if it fits; None if neither fits.

    Rows of networks are stored as float16. For other rows, the relative rounding error of 2**-11 changes a cosine by
    less than 0.001.
    """
    rows = _rows(source.corpus)
    lines = _lines(transcripts)
    if not rows and not lines:
        return None
    if rows and lines and source.said:
        rows["texts"] = lines["texts"]
    videos = frozenset([*(source.corpus.videos if rows else ()), *(lines["ids"] if lines else ())])
    return Embedded(rows is not None, lines is not None, videos, script({"rows": rows, "lines": lines}))


def script(value: Any) -> str:
    """Return a value as JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _rows(corpus: Corpus) -> dict[str, Any] | None:
    size = sum(part.shape[0] * (2 * part.shape[1] + 16) for part in corpus.parts)
    if isinstance(corpus, WordCorpus) or size > 1e6 * EMBEDDED_MB or len(corpus.videos) > EMBEDDED_VIDEOS:
        return None
    rows = np.concatenate([np.asarray(part) for part in corpus.exact.parts]).astype("<f2")
    return {
        "ids": [*corpus.videos],
        "lengths": [*map(int, corpus.lengths)],
        "spans": corpus.spans_s.round(6).tolist(),
        "dimension": rows.shape[1],
        "values": base64.b64encode(rows.tobytes()).decode(),
    }


def _lines(transcripts: Transcripts) -> dict[str, Any] | None:
    if not 0 < len(transcripts.videos) <= EMBEDDED_VIDEOS:
        return None
    spoken = {video: lines for video in sorted(transcripts.videos) if (lines := transcripts(video))}
    said = [line for lines in spoken.values() for line in lines]
    if not said or sum(len(line.text.encode()) + 16 for line in said) > 1e6 * EMBEDDED_MB:
        return None
    return {
        "ids": [*spoken],
        "lengths": [*map(len, spoken.values())],
        "spans": [(line.start_s, line.end_s) for line in said],
        "texts": [line.text for line in said],
        "engine": transcripts.source,
    }
