"""Retrieval by speech, with TF-IDF or MiniLM's sentence vectors. The paper has neither.

TF-IDF for videos is fitted on the transcripts of the pool. For moments and steps it is fitted on the sentences of the
video itself: a prediction then depends on no other video, and words that are frequent in the video count least.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import Method, UnavailableError
from stepline.benchmarks.hirest import texts
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.benchmarks.hirest.methods.found import DECIMALS, asked, found, rankings, sampled, stepped
from stepline.datasets.hirest import Subtitle
from stepline.models.moments import around, pooled, topic_boundaries
from stepline.models.tf_idf import tf_idf
from stepline.needs import Need

if TYPE_CHECKING:
    from stepline.features.text import TextStore

STEPS = 7
"""The maximum number of steps in a moment, as in ``uniform-7``."""
SILENCE = -inf
"""The similarity of a query with a time or a video without speech: below any similarity with speech."""
Vectors = Callable[[Sequence[str], Sequence[str]], NDArray[np.floating]]
"""Texts, and the documents that TF-IDF is fitted on -> the (N, D) vectors of the texts."""


class TextRetrieval(Method[HirestInputs, Found]):
    """The pool by the cosine of query and transcript; with MiniLM, a transcript is the mean of its sentences.

    The setting ``by`` is ``tfidf`` or ``minilm``. Videos without speech come last.
    """

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the ranking of each query."""
        pool = [each.video for each in inputs.used("pool")]
        queries, said = asked(inputs, pool), _said(inputs, pool)
        spoken = [place for place, video in enumerate(pool) if said[video]]
        transcripts = [[line.text for line in said[pool[place]]] for place in spoken]
        compared = _by_words if inputs.entry.settings["by"] == "tfidf" else _by_sentences
        scores = np.full((len(queries), len(pool)), SILENCE)
        scores[:, spoken] = compared(queries, transcripts)
        yield from rankings(queries, pool, scores)


class TextMoments(Method[HirestInputs, Found]):
    """The second whose sentence is most similar to the query, among 32 evenly spaced ones, with up to 8 on each side.

    If sentences overlap, the most similar one counts. The first second wins a tie, so the moment of a video without
    speech begins at its start.
    """

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the moment of each pair."""
        said = _said(inputs, [pair.video for pair in inputs.evaluated])
        vectors = _encoder(inputs, [*(pair.query for pair in inputs.evaluated), *_texts(said)])
        for pair in inputs.evaluated:
            times_s, lines = sampled(pair.duration_s), said[pair.video]
            similarity = np.full(len(times_s), SILENCE)
            if lines:
                sentences = [line.text for line in lines]
                query, *rows = vectors([pair.query, *sentences], sentences)
                cosines = (np.stack(rows) @ query).round(DECIMALS)
                starts_s, ends_s = np.array([[line.start_s, line.end_s] for line in lines]).T[..., None]
                on = (starts_s <= times_s) & (times_s < ends_s)
                similarity = np.where(on, cosines[:, None], SILENCE).max(axis=0)
            yield found(pair, moment=tuple(times_s[list(around(similarity))].astype(float).tolist()))


class TextSegments(Method[HirestInputs, Found]):
    """Parts of the moment that meet where the topic changes, see `topic_boundaries`; one part without speech."""

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the parts of each moment whose steps are annotated."""
        pairs = stepped(inputs)
        said = _said(inputs, [pair.video for pair, _ in pairs])
        vectors = _encoder(inputs, _texts(said))
        for pair, (start_s, end_s) in pairs:
            boundaries_s, lines = list[float](), said[pair.video]
            if lines:
                sentences, times_s = [line.text for line in lines], np.array([line.start_s for line in lines])
                boundaries_s = topic_boundaries(vectors(sentences, sentences), times_s, start_s, end_s, STEPS)
            yield found(pair, segments=tuple(pairwise((start_s, *boundaries_s, end_s))))


def _said(inputs: HirestInputs, videos: Iterable[str]) -> dict[str, list[Subtitle]]:
    """Return the transcript of each video by start time, without empty lines.

    Raises UnavailableError if no video has speech.
    """
    said = {
        video: sorted(
            (replace(line, text=text) for line in inputs.subtitles[video] if (text := " ".join(line.text.split()))),
            key=attrgetter("start_s"),
        )
        for video in videos
    }
    if not any(said.values()):
        raise UnavailableError(Need("transcripts", "hirest"))
    return said


def _texts(said: Mapping[str, Sequence[Subtitle]]) -> list[str]:
    return [line.text for lines in said.values() for line in lines]


def _by_words(queries: Sequence[str], transcripts: Sequence[Sequence[str]]) -> NDArray[np.floating]:
    """Return the (queries, transcripts) cosines by TF-IDF."""
    documents = [" ".join(each) for each in transcripts]
    vectors = tf_idf([*queries, *documents], documents)
    return np.asarray((vectors[: len(queries)] @ vectors[len(queries) :].T).toarray())


def _by_sentences(queries: Sequence[str], transcripts: Sequence[Sequence[str]]) -> NDArray[np.floating]:
    """Return the (queries, transcripts) cosines by MiniLM."""
    vectors = _sentence_vectors([*queries, *chain(*transcripts)])
    return vectors(queries) @ np.stack([pooled(vectors(each), len(each), "cosine") for each in transcripts]).T


def _encoder(inputs: HirestInputs, every: Iterable[str]) -> Vectors:
    """Return the entry's encoder. every: all texts to encode."""
    if inputs.entry.settings["by"] == "tfidf":
        return lambda listed, documents: np.asarray(tf_idf(listed, documents).toarray())
    stored = _sentence_vectors(every)
    return lambda listed, documents: stored(listed)


def _sentence_vectors(every: Iterable[str]) -> "TextStore":
    return texts.stored(texts.sentence_encoder(), "speech", every)
