"""TF-IDF vectors of texts."""

from collections.abc import Sequence
from itertools import chain
from typing import Any


def tf_idf(texts: Sequence[str], documents: Sequence[str]) -> Any:
    """Return the sparse (N, words) unit vectors of texts; zeros for a text without any word of the documents.

    As in Spacewalk-18's baseline: without English stop words, with sublinear frequencies, fitted on the documents.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    options = {"stop_words": "english", "sublinear_tf": True}
    words = set(chain(*map(TfidfVectorizer(**options).build_analyzer(), documents)))
    vocabulary = sorted(words) or [""]  # "", which is no word, where documents have none
    return TfidfVectorizer(**options, vocabulary=vocabulary).fit(documents).transform(texts)
