"""A search: loaded once, it answers texts with videos, the moment in each of them, and the moment's steps."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepline.errors import ConfigError
from stepline.features.text import TextEncoder
from stepline.models.moments import around, uniform_rows
from stepline.pipeline import Pipeline
from stepline.search.corpus import Floats, one_thread
from stepline.search.joint import joint_steps, load_joint, raw_query
from stepline.search.sources import Source, sentence_encoder, source
from stepline.search.steps import Step, equal_parts, said_steps
from stepline.search.transcripts import Transcripts, Vectors

if TYPE_CHECKING:
    from stepline.models.hirest_joint import Joint

LONGEST = 500
"""Characters of a text that is searched for."""
FRAMES = 32
"""Rows of a video among which its moment is looked for, where it is seen."""
SEEN = "the most similar of 32 evenly spaced frames, with up to 8 on each side"
SAID = "the most similar sentence, with up to a quarter of all sentences on each side"
"""How moments are found."""
CAPTIONED, SPOKEN, EQUAL = "captions by hirest-joint", "from what is said", "equal parts"
"""How steps are found."""


@dataclass(frozen=True)
class Match:
    """A time of a video and how like the text it is. sentence: what is said, where that was searched."""

    video: str
    time_s: float
    score: float
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A video, how like the text it is as a whole, its moment [start_s, end_s], and the moment's steps.

    peak_s: where in the moment it is most like the text. steps_by: how the steps were found.
    """

    video: str
    score: float
    peak_s: float
    start_s: float
    end_s: float
    steps: tuple[Step, ...]
    steps_by: str


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search found, best first: videos with their moments, and matches, wherever they are.

    backbone: what compared, by ``similarity``, the text with ``what`` of ``searched`` of the ``listed`` videos. unseen:
    words of the text that make no difference to it. moments_by: how the moments were found. window_s: how far apart
    matches of a video are.
    """

    text: str
    backbone: str
    what: str
    similarity: str
    searched: int
    listed: int
    unseen: tuple[str, ...]
    moments_by: str
    window_s: float
    videos: tuple[Ranked, ...]
    matches: tuple[Match, ...]


@dataclass(frozen=True)
class Searcher:
    """A search that is loaded. listed: how many videos the data set has."""

    pipeline: Pipeline
    transcripts: Transcripts
    source: Source
    listed: int

    @classmethod
    def open(cls, pipeline: Pipeline, backbone: str | None = None) -> "Searcher":
        """Load what texts are compared with, and what encodes them.

        backbone: a network with a text tower, of whose features there are some, or a sentence encoder, for transcripts;
        None is the first such network of the data set, else the first such encoder. Raises ConfigError or MissingError
        where there is nothing to search.
        """
        transcripts = Transcripts(pipeline)
        found = source(pipeline, backbone, transcripts)
        return cls(pipeline, transcripts, found, len(pipeline.dataset.videos()))

    def ask(self, text: str, *, top: int = 10, window_s: float = 10.0) -> Found:
        """Return the ``top`` videos and matches that are most like ``text``: equal inputs give equal results.

        A video ranks by the mean of its rows; of equal ones the one whose id is first comes first. A match is a row
        that none less than ``window_s`` away in its video exceeds, see ``Corpus.matches``. Raises ConfigError where the
        text or an option is not allowed, or where the encoder knows no word of the text.
        """
        text = checked(text, top, window_s)
        unseen = _unseen(self.source.encoder, text)
        if len(unseen) == len(text.split()):
            raise ConfigError(f"{self.source.encoder.spec.name} knows no word of {text!r}: choose others")
        corpus, question = self.source.corpus, _Question(self, text)
        return Found(
            text=text,
            backbone=self.source.name,
            what=self.source.what,
            similarity=corpus.similarity,
            searched=len(corpus.videos),
            listed=self.listed,
            unseen=unseen,
            moments_by=SAID if self.source.vectors else SEEN,
            window_s=window_s,
            videos=tuple(question.ranked(*each) for each in corpus.ranking(question.query, top)),
            matches=tuple(question.match(*each) for each in corpus.matches(question.query, top, window_s)),
        )

    @cached_property
    def vectors(self) -> Vectors | None:
        """What makes the vectors of sentences; None where no sentence encoder is installed."""
        name = sentence_encoder()
        return self.source.vectors or (Vectors(name, self.pipeline.name) if name else None)

    @cached_property
    def joint(self) -> "Joint | None":
        """HiREST's joint model; None where it is not at hand, or sees other features than are searched."""
        return load_joint(self.source.name)


@dataclass(frozen=True)
class _Question:
    searcher: Searcher
    text: str

    @cached_property
    def query(self) -> Floats:
        return encoded(self.searcher.source.encoder, self.text)

    @cached_property
    def heard(self) -> Floats:
        """The vector of the text among those of sentences."""
        vectors = self.searcher.vectors
        assert vectors is not None
        return self.query if self.searcher.source.vectors else encoded(vectors.encoder, self.text)

    @cached_property
    def raw(self) -> NDArray[np.float32]:
        return raw_query(self.searcher.source.encoder, self.text)

    def match(self, row: int, score: float) -> Match:
        """Return a row as a match."""
        source = self.searcher.source
        video, number = source.corpus.place(row)
        sentence = self.searcher.transcripts(video)[number].text if source.vectors else ""
        return Match(video, float(source.corpus.spans_s[row, 0]), score, sentence)

    def ranked(self, number: int, score: float) -> Ranked:
        """Return a video with its moment and steps."""
        source = self.searcher.source
        rows = source.corpus.numbers(number)
        if source.vectors is None:
            rows = rows[uniform_rows(len(rows), min(FRAMES, len(rows)))]
        likeness, spans_s = source.corpus.scores(rows, self.query), source.corpus.spans_s[rows]
        first, last = around(likeness, len(rows) // 4)
        start_s, end_s = float(spans_s[first, 0]), float(spans_s[first : last + 1, 1].max())
        steps, steps_by = self.steps(number, start_s, end_s)
        return Ranked(
            video=source.corpus.videos[number],
            score=score,
            peak_s=float(spans_s[likeness.argmax(), 0]),
            start_s=start_s,
            end_s=end_s,
            steps=steps,
            steps_by=steps_by,
        )

    def steps(self, number: int, start_s: float, end_s: float) -> tuple[tuple[Step, ...], str]:
        """Return the steps of a moment, and how they were found."""
        searcher, corpus = self.searcher, self.searcher.source.corpus
        lines = searcher.transcripts(corpus.videos[number])
        if lines and searcher.vectors:
            vectors = searcher.vectors([line.text for line in lines])
            if searcher.joint and corpus.is_each_second(number):
                rows = corpus.rows(number)
                if steps := joint_steps(searcher.joint, rows, self.raw, lines, vectors, start_s, end_s):
                    return steps, CAPTIONED
            if steps := said_steps(lines, vectors, self.heard, start_s, end_s):
                return steps, SPOKEN
        return equal_parts(start_s, end_s), EQUAL


def checked(text: str, top: int, window_s: float) -> str:
    """Return the text with single spaces; raise ConfigError where it or an option is not allowed."""
    text = " ".join(text.split())
    if not 0 < len(text) <= LONGEST or not text.isprintable():
        raise ConfigError(f"a text to search for has 1 to {LONGEST} characters that can be printed, not {len(text)}")
    if top < 1 or not 0 <= window_s < inf:
        raise ConfigError(f"top must be at least 1 and window not negative, not {top} and {window_s:g}")
    return text


def encoded(encoder: TextEncoder, text: str) -> Floats:
    """Return the vector of a text, which nobody keeps."""
    with one_thread():
        query: Callable[[str], NDArray[np.float32]] | None = getattr(encoder, "query", None)
        return (query(text) if query else encoder.encode(encoder.tokens(text))).astype(np.float64)


def _unseen(encoder: TextEncoder, text: str) -> tuple[str, ...]:
    """Return the words without which the encoder sees the same: unknown to it, or beyond what it can take."""
    words, tokens = text.split(), encoder.tokens(text)
    without = (" ".join([*words[:place], *words[place + 1 :]]) for place in range(len(words)))
    return tuple(word for word, rest in zip(words, without, strict=True) if encoder.tokens(rest) == tokens)
