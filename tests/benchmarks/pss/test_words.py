import pytest

from stepline.benchmarks.pss import words
from stepline.benchmarks.pss.words import UNKNOWN, Words

WORDS = Words({UNKNOWN: 9, "cut": 1, "the": 2, "onion": 3, "low-medium": 4, "heat": 5, "it's": 6})


def test_marks_around_words_are_cut_off() -> None:
    assert WORDS.encode("Cut the (onion). ", 10) == [1, 2, 3]


def test_a_word_with_a_mark_stays_whole_where_it_is_known() -> None:
    assert WORDS.encode("low-medium heat", 10) == [4, 5]
    assert WORDS.encode("onion-heat, it's", 10) == [3, 5, 6]
    assert WORDS.encode("onion(heat)", 10) == [3, 5]


def test_what_is_not_known_is_unknown() -> None:
    assert WORDS.encode("cut a leek", 10) == [1, 9, 9]


def test_no_more_words_than_asked_for() -> None:
    assert WORDS.encode("cut the onion", 2) == [1, 2]


def test_marks_alone_are_no_word() -> None:
    assert WORDS.encode("cut - the ...", 10) == [1, 2]


def test_ids_become_the_sentence_again() -> None:
    assert WORDS.decode(WORDS.encode("Cut the onion.", 10)) == "cut the onion"


@pytest.mark.usefixtures("releases")
def test_a_vocabulary_without_an_unknown_word_gets_one() -> None:
    made = Words.released("tasty")
    assert made.size == made.ids[UNKNOWN] == len(made.ids)
    assert sorted(made.ids.values()) == list(range(1, made.size + 1))


def test_an_unknown_word_of_the_vocabulary_keeps_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "vocabulary", lambda dataset: {UNKNOWN: 1, "cut": 5})
    made = Words.released("tasty")
    assert made.ids == {UNKNOWN: 1, "cut": 5}
    assert made.size == 5, "the largest id, also where there are gaps"


def test_words_are_counted_where_they_stand_twice() -> None:
    made = Words.counted(["The onion, cut.", "cut (the) leek", "fry"])
    assert made.ids == {"cut": 1, "the": 2, UNKNOWN: 3}
