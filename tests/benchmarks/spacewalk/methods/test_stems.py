import pytest

from stepline.asr.transcript import Sentence
from stepline.benchmarks.spacewalk.methods.stems import stem
from tests.benchmarks.spacewalk.conftest import MadeUp, chooser_of


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("translates", "translat"),
        ("translating", "translat"),
        ("translation", "translat"),
        ("bolts", "bolt"),
        ("egressing", "egres"),
        ("egress", "egres"),
        ("bag", "bag"),
        ("eye", "eye"),
        ("bees", "bee"),
        ("series", "ser"),
        ("going", "going"),
        ("controller", "control"),
        ("install", "instal"),
    ],
)
def test_endings_are_cut_where_three_letters_are_left(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_other_forms_of_a_word_match_and_stop_words_do_not(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    fields: dict[str, object] = {"encoder": "tfidf", "settings": {"fit": "video"}, "contexts": [6]}
    scores = {}
    for kind in ("tfidf", "tfidf-stems"):
        inputs = made_up.inputs(fields | {"kind": kind, "inputs": ["window", "recording"]})
        text, items = inputs.text("d"), inputs.items("test")["d"][:1]
        sentence = Sentence("He is cabling and the other works on", items[0].t_s - 1, items[0].t_s + 1)
        object.__setattr__(text, "sentences", (sentence,))
        ((_, _, found),) = chooser_of(inputs, 6.0, [])("d", items)
        assert found is not None
        scores[kind] = found[0]
    assert made_up.release.recordings["d"].steps[1].caption == "cable work"
    assert not scores["tfidf"].any()
    assert scores["tfidf-stems"][1] > scores["tfidf-stems"][2] > 0
    assert scores["tfidf-stems"][0] == 0
