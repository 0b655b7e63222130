"""Zero-shot TF-IDF: dot products of the window with a step's narration and caption, summed.

Vectors are fitted with one document per sentence and one per step (narration and caption), of the recording itself
(``fit: video``) or of the training recordings (``fit: train``).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.material import Material
from stepline.benchmarks.spacewalk.methods import Method, Outcome, nearer
from stepline.datasets.studies import RETRIEVAL

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer


def make(material: Material, context_s: float | None, fits: list[Path]) -> Method:
    """Return the method at windows of ``context_s`` seconds."""
    assert context_s is not None
    return TfIdf(material, context_s)


class TfIdf:
    """The method; subclasses count other terms."""

    def __init__(self, material: Material, context_s: float) -> None:
        self.material, self.context_s = material, context_s
        self.own = material.entry.settings["fit"] == "video"
        if not self.own:
            self.vectors = self._fit(material.recordings("train"))

    def vectoriser(self) -> "TfidfVectorizer":
        """Return what counts terms, not fitted."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        return TfidfVectorizer(sublinear_tf=True, stop_words="english")

    def _fit(self, videos: Sequence[str]) -> "TfidfVectorizer":
        documents = []
        for video in videos:
            text = self.material.text(video)
            documents += [sentence.text for sentence in text.sentences]
            documents += text.step_documents()
        return self.vectoriser().fit(documents)

    def __call__(self, video: str, items: list[Item]) -> list[Outcome]:
        """Return the scores of one recording's samples."""
        text = self.material.text(video)
        vectors = self._fit([video]) if self.own else self.vectors
        windows = [vectors.transform(texts) for texts in text.windows(items, self.context_s)]
        if self.material.entry.task == RETRIEVAL:
            query, *candidates = windows
            return [nearer(np.stack([query.multiply(c).sum(axis=1).A1 for c in candidates], axis=1))]
        narrations, captions = zip(*text.step_texts(), strict=True)
        scores = (windows[0] @ (vectors.transform(narrations) + vectors.transform(captions)).T).toarray()
        return [(0, scores.argmax(axis=1), scores)]
