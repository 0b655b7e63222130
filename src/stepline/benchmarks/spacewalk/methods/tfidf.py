"""Zero-shot TF-IDF: the sum of the window's dot products with a step's narration and caption.

Document frequencies are counted over sentences and steps (narration and caption), one document each, of the recording
itself (``fit: video``) or of the training recordings (``fit: train``).
"""

from collections.abc import Iterable, Sequence
from functools import partial
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
    """Zero-shot TF-IDF. Counts of a recording are shared by all window lengths; subclasses count other terms."""

    def __init__(self) -> None:
        self._counted: dict[str, tuple[_Vectors, csr_matrix]] = {}
        self._trained: _Vectors | None = None

    def counter(self) -> "CountVectorizer":
        """Return an unfitted vectoriser that counts terms."""
        from sklearn.feature_extraction.text import CountVectorizer

        return CountVectorizer(stop_words="english")

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the chooser for windows of ``context_s`` seconds."""
        assert context_s is not None
        if inputs.entry.settings["fit"] == "train" and self._trained is None:
            self._trained = self._fit(inputs, inputs.recordings("train"))
        return partial(self._choose, inputs, context_s)

    def _choose(self, inputs: SpacewalkInputs, context_s: float, video: str, items: list[Item]) -> list[Outcome]:
        if video not in self._counted:
            self._counted[video] = self._count(inputs, video)
        vectors, counts = self._counted[video]
        text = inputs.text(video)
        windows = [vectors.of_sums(counts, each) for each in text.sentences_of(items, context_s)]
        if inputs.entry.task == RETRIEVAL:
            query, *candidates = windows
            return [nearer(np.stack([query.multiply(c).sum(axis=1).A1 for c in candidates], axis=1))]
        narrations, captions = (vectors.of(texts) for texts in zip(*text.step_texts(), strict=True))
        scores = (windows[0] @ (narrations + captions).T).toarray()
        return [(0, scores.argmax(axis=1), scores)]

    def _count(self, inputs: SpacewalkInputs, video: str) -> "tuple[_Vectors, csr_matrix]":
        """Return the vectors fitted for a recording, and the (sentences, terms) counts of its sentences."""
        sentences = [sentence.text for sentence in inputs.text(video).sentences]
        if self._trained:
            return self._trained, self._trained.counts(sentences)
        vectors = self._fit(inputs, [video])
        return vectors, vectors.documents[: len(sentences)]

    def _fit(self, inputs: SpacewalkInputs, videos: Sequence[str]) -> "_Vectors":
        documents = []
        for video in videos:
            text = inputs.text(video)
            documents += [sentence.text for sentence in text.sentences]
            documents += text.step_documents()
        return _Vectors(self.counter(), documents)


class _Vectors:
    """TF-IDF vectors of unit length, with sublinear term frequencies. ``documents``: (documents, terms) counts."""

    def __init__(self, counter: "CountVectorizer", documents: list[str]) -> None:
        from sklearn.feature_extraction.text import TfidfTransformer

        self.counter = counter
        self.documents = counter.fit_transform(documents)
        self.weights = TfidfTransformer(sublinear_tf=True).fit(self.documents)

    def counts(self, texts: Iterable[str]) -> "csr_matrix":
        """Return the (texts, terms) counts."""
        return self.counter.transform(texts)

    def of(self, texts: Iterable[str]) -> "csr_matrix":
        """Return the (texts, terms) vectors."""
        return self.weights.transform(self.counts(texts))

    def of_sums(self, counts: "csr_matrix", chosen: Sequence[NDArray[np.int64]]) -> "csr_matrix":
        """Return the (windows, terms) vectors of windows. chosen: for each window, its rows of ``counts``."""
        from scipy.sparse import csr_matrix

        ends = np.cumsum([0, *map(len, chosen)])
        numbers = np.concatenate([np.zeros(0, np.int64), *chosen])
        ones = np.ones(len(numbers), counts.dtype)
        sums = csr_matrix((ones, numbers, ends), (len(chosen), counts.shape[0])) @ counts
        sums.sort_indices()
        return self.weights.transform(sums)
