"""TF-IDF vectors by their formula."""

from math import log

import numpy as np
import pytest

from stepline.models.tf_idf import tf_idf


def test_a_word_weighs_by_the_logarithms_of_its_counts_in_the_text_and_in_documents() -> None:
    """Words of the documents in string order: onion, pan, salt. Stop words and other words weigh nothing."""
    documents = ["the salt", "Salt, salt and onion", "pan"]
    found = tf_idf(["onion salt SALT salt", "the oven", "pan"], documents).toarray()
    salt, onion = (1 + log(3)) * (1 + log(4 / 3)), 1 + log(4 / 2)
    length = np.hypot(salt, onion)
    assert found == pytest.approx(np.array([[onion / length, 0, salt / length], [0, 0, 0], [0, 1, 0]]))


def test_without_a_word_in_the_documents_all_is_0() -> None:
    assert not tf_idf(["salt", "the"], ["the", ""]).toarray().any()
