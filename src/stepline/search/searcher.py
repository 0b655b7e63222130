"""A searcher, which is loaded once and returns the videos, moments and steps for each query."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stepline.errors import ConfigError
from stepline.features.text import TextEncoder
from stepline.models.moments import around, uniform_rows
from stepline.pipeline import Pipeline
from stepline.search.corpus import Corpus, Floats, one_thread
from stepline.search.embedded import Embedded, embed
from stepline.search.index import ROWS, TEXTS
from stepline.search.indexed import IndexedCorpus
from stepline.search.joint import joint_steps, load_joint, raw_query
from stepline.search.sources import Source, sentence_encoder, source
from stepline.search.steps import Step, equal_parts, said_steps
from stepline.search.transcripts import Transcripts, Vectors
from stepline.search.words import Vocabulary, vocabulary

if TYPE_CHECKING:
    from stepline.models.hirest_joint import Joint

LONGEST = 500
"""Maximum number of characters of a query."""
FRAMES = 32
"""Number of rows among which the moment of a video is chosen, for frame features."""
PIECES = 240
"""Maximum number of pieces of a curve."""
TAIL = 1.25
"""Factor by which unrelated scores may exceed the expected maximum of normal variables."""
FEW = 10
"""With fewer rows, the significance of the best one is not assessed."""
SEEN = "the most similar of 32 evenly spaced frames, with up to 8 on each side"
SAID = "the most similar sentence, with up to a quarter of all sentences on each side"
"""How moments are found."""
CAPTIONED, SPOKEN, EQUAL = "captions by hirest-joint", "from the transcript", "equal parts"
"""How steps are found."""


@dataclass(frozen=True)
class Match:
    """A time of a video and its similarity to the query. sentence: the sentence, if transcripts were searched."""

    video: str
    time_s: float
    score: float
    sentence: str = ""


Curve = tuple[tuple[float, float, float], ...]
"""Similarity over time: start and end in seconds and highest score of each piece of a video."""


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A video with its overall similarity to the query, its moment [start_s, end_s], and the moment's steps.

    peak_s: the time of the highest similarity in the moment. steps_by: how the steps were found.
    """

    video: str
    score: float
    peak_s: float
    start_s: float
    end_s: float
    steps: tuple[Step, ...]
    steps_by: str


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The best score compared with the scores of all rows, or of a sample of them; ``usual`` is their median.

    expected: the expected maximum of as many unrelated rows: median + 1.25 x deviation x sqrt(2 ln N). Without the
    factor 1.25 this is the asymptotic maximum of N normal variables; scores have a heavier upper tail. The deviation is
    the distance from the 15.87th percentile to the median, so that rows that match the query do not increase it.
    sampled: the number of rows in the sample; 0 if all rows were compared.
    """

    rows: int
    best: float
    usual: float
    expected: float
    sampled: int = 0

    @classmethod
    def of(cls, scores: Floats, of: int = 0, best: float = -inf) -> "Spread":
        """scores: (n,), of all rows, or of a sample ``of`` so many rows; then ``best`` is the best score of all."""
        low, usual = np.quantile(scores, [0.1587, 0.5]).tolist()
        rows = of or len(scores)
        expected = usual + TAIL * (usual - low) * sqrt(2 * log(rows))
        best = max(best, float(scores.max()))
        return cls(rows=rows, best=best, usual=usual, expected=expected, sampled=len(scores) if of else 0)

    @property
    def stands_out(self) -> bool:
        """Whether the best score is higher than expected by chance."""
        return self.best > self.expected or self.rows < FEW


@dataclass(frozen=True, kw_only=True)
class Found:
    """The results of a search, best first: videos with their moments, and matches in all videos.

    text: the query, or ``VIDEO@SECONDS`` if the query is a moment (``is_like``). among: the videos that the search was
    limited to, if any. backbone: the model that compared the query with ``what`` by ``similarity``, in ``searched`` of
    the ``listed`` videos. unseen: words of the query that do not affect its vector. unsaid: words that occur in no
    transcript, if transcripts were searched. moments_by: how moments were found. top: the requested number of results.
    window_s: the minimum distance of matches in a video. curves: the curve of each video in the results. compared: how
    many rows were compared for the matches, or the recall of the index that found them. hint: a warning about the
    results, or "".
    """

    text: str
    backbone: str
    what: str
    similarity: str
    searched: int
    listed: int
    unseen: tuple[str, ...]
    unsaid: tuple[str, ...]
    moments_by: str
    top: int
    window_s: float
    spread: Spread
    videos: tuple[Ranked, ...]
    matches: tuple[Match, ...]
    curves: Mapping[str, Curve]
    hint: str = ""
    among: tuple[str, ...] = ()
    is_like: bool = False
    compared: str = ""


@dataclass(frozen=True)
class Searcher:
    """A loaded search. listed: the number of videos in the data set."""

    pipeline: Pipeline
    transcripts: Transcripts
    source: Source
    listed: int

    @classmethod
    def open(
        cls, pipeline: Pipeline, backbone: str | None = None, *, needs_text: bool = True, exact: bool = False
    ) -> "Searcher":
        """Load the features or transcripts to search and the text encoder.

        backbone: a network with a text tower and existing features, a sentence encoder, or ``words``. None means the
        first such network of the data set, otherwise the first installed sentence encoder, otherwise ``words``. Without
        ``needs_text`` any backbone is allowed, but only ``like`` can be used. exact: whether all rows are compared,
        also if there is an index. Raises ConfigError or MissingError if there is nothing to search.
        """
        transcripts = Transcripts(pipeline)
        found = source(pipeline, backbone, transcripts, needs_text=needs_text, exact=exact)
        return cls(pipeline, transcripts, found, len(pipeline.dataset.videos()))

    def ask(self, text: str, *, top: int = 10, window_s: float = 10.0, videos: Sequence[str] = ()) -> Found:
        """Return the ``top`` videos and matches that are most similar to ``text``. Equal inputs give equal results.

        Videos are ranked by the mean of their rows, ties by id. A match is a row without a better row within
        ``window_s`` in its video, see ``Corpus.matches``. videos: the videos to search, all if empty. Raises
        ConfigError if the text, a video or an option is not allowed, or if the encoder knows no word of the text.
        """
        text = checked(text, top, window_s)
        assert self.source.encoder is not None, "opened for texts"
        unseen = _unseen(self.source.encoder, text)
        if len(unseen) == len(text.split()):
            raise ConfigError(f"{self.source.name} knows no word of {text!r}: choose others")
        unsaid = self.vocabulary.unknown(text) if self.source.said and not unseen else ()
        question = self._question(TEXTS, videos, encoded(self.source.encoder, text), text)
        return question.found(top, window_s, text=text, unseen=unseen, unsaid=unsaid, among=tuple(videos))

    def like(
        self, video: str, time_s: float, *, top: int = 10, window_s: float = 10.0, videos: Sequence[str] = ()
    ) -> Found:
        """Return the ``top`` videos and matches that are most similar to a moment, by the cosine with its row.

        The row is the last one that starts at or before ``time_s``; it is not a match itself. Otherwise like ``ask``.
        """
        checked("like", top, window_s)
        whole = self.source.corpus
        if video not in whole.videos:
            raise ConfigError(f"video {video!r} is not searched; choose from {', '.join(whole.videos[:20])}")
        row = whole.at(video, time_s)
        own = video, float(whole.spans_s[row, 0])
        question = self._question(ROWS, videos, whole.vector(row), own=own, similarity="cosine")
        values = {"text": f"{video}@{time_s:g}", "unseen": (), "unsaid": (), "among": tuple(videos), "is_like": True}
        return question.found(top, window_s, **values)

    def _question(self, kind: str, videos: Sequence[str], query: Floats, text: str = "", **more: Any) -> "_Question":
        """Return a question to the given videos, or all; to the index if it can be used for this kind of query."""
        corpus, hint = self.source.corpus, self.source.hint
        if unknown := [video for video in videos if video not in corpus.videos]:
            raise ConfigError(f"video {unknown[0]!r} is not searched; choose from {', '.join(corpus.videos[:20])}")
        similarity = more.pop("similarity", corpus.similarity)
        if videos:
            corpus, hint = corpus.only(videos), (hint if self.source.said else "")
        elif isinstance(corpus, IndexedCorpus) and (reason := corpus.refusal(kind, similarity)):
            corpus, hint = corpus.exact, f"the index is not used: {reason}"
        if corpus.similarity != similarity:
            corpus = replace(corpus, similarity=similarity)
        return _Question(self, corpus, query, text, kind=kind, hint=hint, **more)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of all transcripts."""
        lines = (self.transcripts(video) for video in sorted(self.transcripts.videos))
        return vocabulary([line.text for each in lines for line in each])

    @cached_property
    def embedded(self) -> Embedded | None:
        """The data that pages can search themselves."""
        return embed(self.source, self.transcripts)

    @cached_property
    def vectors(self) -> Vectors | None:
        """The embedding function of sentences; None if no sentence encoder is installed."""
        name = sentence_encoder()
        return self.source.vectors or (Vectors(name, self.pipeline.name) if name else None)

    @cached_property
    def joint(self) -> "Joint | None":
        """HiREST's joint model; None if it is not available or needs other features than the searched ones."""
        return load_joint(self.source.name)


@dataclass(frozen=True)
class _Question:
    """text: "" if the query is a moment; the moment is then the video and start of the ``own`` row.

    kind: ``texts`` or ``rows``, for an index. hint: see ``Found``.
    """

    searcher: Searcher
    corpus: Corpus
    query: Floats
    text: str
    own: tuple[str, float] | None = None
    kind: str = TEXTS
    hint: str = ""

    @cached_property
    def heard(self) -> Floats:
        """The vector of the text in the space of sentence embeddings."""
        vectors = self.searcher.vectors
        assert vectors is not None
        return self.query if self.searcher.source.vectors else encoded(vectors.encoder, self.text)

    @cached_property
    def raw(self) -> NDArray[np.float32]:
        encoder = self.searcher.source.encoder
        assert encoder is not None
        assert not isinstance(encoder, Vocabulary)
        return raw_query(encoder, self.text)

    @cached_property
    def whole(self) -> Floats:
        return self.corpus.whole(self.query)

    def found(self, top: int, window_s: float, **values: Any) -> Found:
        """Return the results with further ``values``."""
        source, corpus = self.searcher.source, self.corpus
        if isinstance(corpus, IndexedCorpus):
            near = corpus.near(self.query, top + (self.own is not None), window_s, self.kind)
            if near is None:  # too few matches
                return replace(self, corpus=corpus.exact).found(top, window_s, **values)
            spread = Spread.of(corpus.sampled(self.query), len(corpus.spans_s), near[0][1])
            compared = f"by index: {corpus.index.recalls[self.kind]}"
        else:
            near = corpus.matches(self.query, self.whole, top + (self.own is not None), window_s)
            spread = Spread.of(self.whole)
            compared = f"all {len(self.whole):,} {'sentences' if source.said else 'rows'} were compared"
        videos = tuple(self.ranked(*each) for each in corpus.ranking(self.query, top) if each[1] > corpus.least)
        matches = [self.match(*each) for each in near if each[1] > corpus.least]
        matches = [match for match in matches if (match.video, match.time_s) != self.own][:top]
        shown = {each.video for each in videos} | {match.video for match in matches}
        whole = replace(self, corpus=corpus.only(shown)) if isinstance(corpus, IndexedCorpus) else self
        return Found(
            **values,
            backbone=source.name,
            what=source.what,
            hint=self.hint,
            similarity=corpus.similarity,
            searched=len(corpus.videos),
            listed=self.searcher.listed,
            moments_by=SAID if source.said else SEEN,
            top=top,
            window_s=window_s,
            spread=spread,
            videos=videos,
            matches=tuple(matches),
            curves={video: whole.curve(number) for number, video in enumerate(whole.corpus.videos) if video in shown},
            compared=compared,
        )

    def curve(self, number: int) -> Curve:
        """Return the similarity of a video over time, in at most 240 pieces with equal numbers of rows."""
        numbers = self.corpus.numbers(number)
        spans_s, scores = self.corpus.spans_s[numbers], self.whole[numbers]
        firsts = np.arange(0, len(numbers), ceil(len(numbers) / PIECES))
        ends_s, best = (np.maximum.reduceat(each, firsts) for each in (spans_s[:, 1], scores))
        return tuple(zip(spans_s[firsts, 0].tolist(), ends_s.tolist(), best.round(4).tolist(), strict=True))

    def match(self, row: int, score: float) -> Match:
        """Return a row as a match."""
        video, number = self.corpus.place(row)
        sentence = self.searcher.transcripts(video)[number].text if self.searcher.source.said else ""
        return Match(video, float(self.corpus.spans_s[row, 0]), score, sentence)

    def ranked(self, number: int, score: float) -> Ranked:
        """Return a video with its moment and steps."""
        rows = self.corpus.numbers(number)
        if not self.searcher.source.said:
            rows = rows[uniform_rows(len(rows), min(FRAMES, len(rows)))]
        likeness, spans_s = self.corpus.scores(rows, self.query), self.corpus.spans_s[rows]
        first, last = around(likeness, len(rows) // 4)
        start_s, end_s = float(spans_s[first, 0]), float(spans_s[first : last + 1, 1].max())
        steps, steps_by = self.steps(number, start_s, end_s)
        return Ranked(
            video=self.corpus.videos[number],
            score=score,
            peak_s=float(spans_s[likeness.argmax(), 0]),
            start_s=start_s,
            end_s=end_s,
            steps=steps,
            steps_by=steps_by,
        )

    def steps(self, number: int, start_s: float, end_s: float) -> tuple[tuple[Step, ...], str]:
        """Return the steps of a moment, and how they were found."""
        searcher, corpus = self.searcher, self.corpus
        lines = searcher.transcripts(corpus.videos[number]) if self.text else ()
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
    """Return the text with single spaces; raise ConfigError if it or an option is not allowed."""
    text = " ".join(text.split())
    if not 0 < len(text) <= LONGEST or not text.isprintable():
        raise ConfigError(f"the search text must have 1 to {LONGEST} printable characters, not {len(text)}")
    if top < 1 or not 0 <= window_s < inf:
        raise ConfigError(f"top must be at least 1 and window not negative, not {top} and {window_s:g}")
    return text


def encoded(encoder: TextEncoder | Vocabulary, text: str) -> Floats:
    """Return the vector of a text without storing it."""
    with one_thread():
        if isinstance(encoder, Vocabulary):
            return encoder.query(text)
        query: Callable[[str], NDArray[np.float32]] | None = getattr(encoder, "query", None)
        return (query(text) if query else encoder.encode(encoder.tokens(text))).astype(np.float64)


def _unseen(encoder: TextEncoder | Vocabulary, text: str) -> tuple[str, ...]:
    """Return the words that do not affect the encoding: they are unknown or after the maximum text length."""
    words, tokens = text.split(), encoder.tokens(text)
    without = (" ".join([*words[:place], *words[place + 1 :]]) for place in range(len(words)))
    return tuple(word for word, rest in zip(words, without, strict=True) if encoder.tokens(rest) == tokens)
