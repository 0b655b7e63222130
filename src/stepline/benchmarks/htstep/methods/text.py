"""Grounding by speech, with TF-IDF or MPNet's sentence vectors. The paper has neither."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import Method, UnavailableError
from stepline.benchmarks.htstep import texts
from stepline.benchmarks.htstep.inputs import HtstepInputs
from stepline.benchmarks.htstep.kinds import Found
from stepline.benchmarks.htstep.methods.videos import DECIMALS, found, unit
from stepline.datasets.htstep import Recording
from stepline.datasets.htstep_transfer import Sentence
from stepline.models.grounding import GroundedSegments
from stepline.models.ordering import SKIPPED, ordered_times
from stepline.models.tf_idf import tf_idf
from stepline.needs import Need

BEST = 5
"""The number of sentences per step if the order is free."""
Cosines = Callable[[Sequence[str], Sequence[str]], NDArray[np.float64]]
"""Texts of steps and sentences -> (S, K) cosines of S sentences and K steps."""


class TextGrounding(Method[HtstepInputs, Found]):
    """The sentences most similar to each step's headline, as segments; their cosine is the score.

    The setting ``by`` is ``tfidf``, fitted on the sentences of the video, or ``mpnet``. The setting ``order`` is
    ``free``, the best 5 sentences of each step, or ``article``: at most one sentence per step, in the article's order
    and with the largest sum of cosines. Sentences with a cosine of 0 or less are not segments.
    """

    def predict(self, inputs: HtstepInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the segments of each video; raise UnavailableError if no video has speech."""
        said = {each.video: _spoken(inputs, each) for each in inputs.evaluated}
        if not any(said.values()):
            raise UnavailableError(Need("transcripts", "htstep"))
        steps = [step for _, step in sorted(inputs.steps.items())]
        number = {step.id: place for place, step in enumerate(steps)}
        cosines = _cosines(inputs, [line.text for lines in said.values() for line in lines])
        bank = {split: inputs.bank(split) for split in inputs.predicted}
        in_order = inputs.entry.settings["order"] == "article"
        for each in inputs.evaluated:
            lines, duration = said[each.video], len(bank[each.split][each.video])
            headlines = [steps[number[step]].headline for step in each.steps]
            similarity = (
                cosines(headlines, [line.text for line in lines]).round(DECIMALS)
                if lines
                else np.zeros((0, len(headlines)))
            )
            segments = _segments(lines, similarity, in_order)
            seconds = _each_second(lines, similarity, duration)
            ids = np.array([number[step] for step in each.steps], np.int64)
            yield found(each, segments._replace(step=ids[segments.step]), steps, seed=0, confidence=seconds)


def _spoken(inputs: HtstepInputs, each: Recording) -> list[Sentence]:
    lines = (line for line in inputs.subtitles[each.video] if line.text.strip() and line.start_s < line.end_s)
    return sorted(lines, key=lambda line: (line.start_s, line.end_s))


def _cosines(inputs: HtstepInputs, every: Sequence[str]) -> Cosines:
    """Return the function that compares steps and sentences. every: all sentences to encode."""
    if inputs.entry.settings["by"] == "tfidf":

        def by_words(headlines: Sequence[str], lines: Sequence[str]) -> NDArray[np.float64]:
            vectors = tf_idf([*lines, *headlines], lines)
            return np.asarray((vectors[: len(lines)] @ vectors[len(lines) :].T).toarray())

        return by_words
    encoder = texts.encoder(inputs.benchmark, "mpnet")
    headlines = [step.headline for step in inputs.steps.values()]
    store = texts.stored(encoder, "speech", dict.fromkeys([*every, *headlines]))

    def by_vectors(headlines: Sequence[str], lines: Sequence[str]) -> NDArray[np.float64]:
        of_lines, of_headlines = (unit(store(listed)) for listed in (lines, headlines))
        found: NDArray[np.float64] = of_lines @ of_headlines.T
        return found

    return by_vectors


def _segments(lines: Sequence[Sentence], similarity: NDArray[np.float64], in_order: bool) -> GroundedSegments:
    """Return sentences as segments of the K steps, best first; ties: the earlier sentence, then the earlier step."""
    if in_order:
        rows = ordered_times(similarity, skip=0.0)
        columns = np.flatnonzero(rows != SKIPPED)
        rows = rows[columns]
    else:
        order = np.argsort(-similarity, axis=0, kind="stable")[:BEST]
        rows, columns = order.T.ravel(), np.arange(similarity.shape[1]).repeat(len(order))
    score = similarity[rows, columns]
    best = np.lexsort((columns, rows, -score))
    best = best[score[best] > 0]
    bounds = np.array([(line.start_s, line.end_s) for line in lines]).reshape(-1, 2)[rows[best]]
    return GroundedSegments(bounds[:, 0], bounds[:, 1], columns[best], score[best])


def _each_second(lines: Sequence[Sentence], similarity: NDArray[np.float64], duration: int) -> NDArray[np.float64]:
    """Return the (T, K) similarity of the most similar sentence in each second; 0 in silence."""
    seconds = np.zeros((duration, similarity.shape[1]))
    for line, row in zip(lines, similarity, strict=True):
        part = slice(int(line.start_s), max(int(line.start_s) + 1, int(np.ceil(line.end_s))))
        seconds[part] = np.maximum(seconds[part], row)
    return seconds
