"""Zero-shot TF-IDF: dot products of the window with a step's narration and caption, summed.

Vectors are fitted with one document per sentence and one per step (narration and caption), of the recording itself
(``fit: video``) or of the training recordings (``fit: train``).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import Chooser, Outcome, SpacewalkMethod, nearer
from stepline.datasets.studies import RETRIEVAL

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import CountVectorizer


class TfIdf(SpacewalkMethod):
    """Zero-shot TF-IDF."""

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the method at windows of ``context_s`` seconds."""
        assert context_s is not None
        return TfIdfChooser(inputs, context_s)


class TfIdfChooser:
    """What chooses; subclasses count other terms."""

    def __init__(self, inputs: SpacewalkInputs, context_s: float) -> None:
        self.inputs, self.context_s = inputs, context_s
        self.own = inputs.entry.settings["fit"] == "video"
        if not self.own:
            self.vectors = self._fit(inputs.recordings("train"))

    def counter(self) -> "CountVectorizer":
        """Return what counts terms, not fitted."""
        from sklearn.feature_extraction.text import CountVectorizer

        return CountVectorizer(stop_words="english")

    def _fit(self, videos: Sequence[str]) -> "_Vectors":
        documents = []
        for video in videos:
            text = self.inputs.text(video)
            documents += [sentence.text for sentence in text.sentences]
            documents += text.step_documents()
        return _Vectors(self.counter(), documents)

    def __call__(self, video: str, items: list[Item]) -> list[Outcome]:
        """Return the scores of one recording's samples."""
        text = self.inputs.text(video)
        vectors = self._fit([video]) if self.own else self.vectors
        counts = vectors.counts([sentence.text for sentence in text.sentences])
        windows = [vectors.of_sums(counts, each) for each in text.sentences_of(items, self.context_s)]
        if self.inputs.entry.task == RETRIEVAL:
            query, *candidates = windows
            return [nearer(np.stack([query.multiply(c).sum(axis=1).A1 for c in candidates], axis=1))]
        narrations, captions = (vectors.of(texts) for texts in zip(*text.step_texts(), strict=True))
        scores = (windows[0] @ (narrations + captions).T).toarray()
        return [(0, scores.argmax(axis=1), scores)]


class _Vectors:
    """TF-IDF of unit length, with sublinear term frequencies."""

    def __init__(self, counter: "CountVectorizer", documents: list[str]) -> None:
        from sklearn.feature_extraction.text import TfidfTransformer

        self.counter = counter
        self.weights = TfidfTransformer(sublinear_tf=True).fit(counter.fit_transform(documents))

    def counts(self, texts: Iterable[str]) -> "csr_matrix":
        """Return how often each term is in each text, (texts, terms)."""
        return self.counter.transform(texts)

    def of(self, texts: Iterable[str]) -> "csr_matrix":
        """Return the vectors of texts, (texts, terms)."""
        return self.weights.transform(self.counts(texts))

    def of_sums(self, counts: "csr_matrix", chosen: Sequence[NDArray[np.int64]]) -> "csr_matrix":
        """Return the vectors, (windows, terms), of windows that hold the texts ``chosen``: rows of ``counts``."""
        from scipy.sparse import csr_matrix

        ends = np.cumsum([0, *map(len, chosen)])
        numbers = np.concatenate([np.zeros(0, np.int64), *chosen])
        ones = np.ones(len(numbers), counts.dtype)
        sums = csr_matrix((ones, numbers, ends), (len(chosen), counts.shape[0])) @ counts
        sums.sort_indices()
        return self.weights.transform(sums)
