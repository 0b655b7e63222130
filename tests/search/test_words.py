"""BM25 of sentences, against its formula written out."""

from math import log

import numpy as np
import pytest

from stepline.search import words
from stepline.search.words import WordCorpus, vocabulary

TEXTS = ["Boil the water, the WATER", "peel the potatoes", "wait", "über_4 water"]


def slow(text: str, asked: str) -> float:
    said = [words.words(each) for each in TEXTS]
    own, mean = words.words(text), sum(map(len, said)) / len(said)
    score = 0.0
    for word in {*words.words(asked)}:
        n, count = sum(word in each for each in said), own.count(word)
        weight = log(1 + (len(said) - n + 0.5) / (n + 0.5)) if n else 0
        score += weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(own) / mean))
    return round(score, 6)


def corpus() -> WordCorpus:
    rows = words.rows(TEXTS, vocabulary(TEXTS))
    spans_s = np.float64([(0, 1), (5, 6), (0, 2), (3, 4)])
    return WordCorpus(["a", "b"], [rows], [2, 2], spans_s, "BM25", 0)


@pytest.mark.parametrize("asked", ["water", "the the water", "ÜBER_4 wait", "boil potatoes nothing"])
def test_scores_are_those_of_the_formula(asked: str) -> None:
    query = vocabulary(TEXTS).query(asked)
    scores = corpus().whole(query)
    assert scores == pytest.approx([slow(text, asked) for text in TEXTS], abs=1e-6)
    means = dict(corpus().ranking(query, 2))
    assert means == pytest.approx({0: scores[:2].mean(), 1: scores[2:].mean()}, abs=1e-6)
    assert corpus().only(["b"]).whole(query) == pytest.approx(scores[2:], abs=1e-6)


def test_scripts_without_spaces_are_searched_by_pairs_of_characters() -> None:
    assert words.words("電子レンジで3分、火。") == ["電子", "子レ", "レン", "ンジ", "ジで", "3", "分", "火"]
    assert words.words("ข้าวผัด น้ำ") == ["ข้", "้า", "าว", "วผ", "ผั", "ัด", "น้", "้ำ"]
    assert words.words("한국어 K-Pop") == ["한국", "국어", "k", "pop"]
    assert words.words("हिन्दी में Größe cafe\u0301") == ["हिन्दी", "में", "größe", "cafe\u0301"]
    assert vocabulary(["電子レンジ"]).unknown("電子鍋") == ("子鍋",)


def test_words_are_in_lower_case_and_unknown_ones_are_named_once() -> None:
    assert words.words("It's naïve – 3,5 l_x") == ["it", "s", "naïve", "3", "5", "l_x"]
    assert vocabulary(TEXTS).unknown("Water foo bar FOO") == ("foo", "bar")
