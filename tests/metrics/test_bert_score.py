import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from stepline.errors import MissingError, StoreError
from stepline.metrics import bert_score as module
from stepline.metrics import transformer
from stepline.metrics.bert_score import bert_score, missing
from stepline.needs import Need
from tests.metrics import tiny

REFERENCES = ["mix the oil well and add salt", "add", "a dog", "stir the pot, then", "x", "mix it", "  add oil ", ""]
CANDIDATES = ["mix oil", "add the salt to the big bowl of oil and mix", "a cat", "stir", "mix", "", "add oil", "mix"]
PUBLISHED = [
    *(0.9694619178771973, 0.9666749238967896, 0.9534010291099548, 0.9878396391868591, 0.7505401372909546),
    *(0, 1, 0),
]
"""By ``bert_score.score(..., num_layers=17)`` of bert-score 0.3.13 with transformers 4.57.3, of the tiny network."""


@pytest.fixture(autouse=True)
def _weights() -> None:
    """A RoBERTa of 18 layers, for texts of at most 24 tokens."""
    module._loaded.cache_clear()
    config = {"model_type": "roberta", "max_position_embeddings": 26}
    tiny.make("roberta-large", "AutoModelForMaskedLM", config, layers=0.1)


def test_values_are_those_of_the_package() -> None:
    """Words with and without the space before them, a text that is cut, space around one, and empty ones."""
    assert missing() == ()
    found = bert_score(REFERENCES, CANDIDATES)
    assert found.dtype == np.float64
    assert found == pytest.approx(PUBLISHED, abs=1e-6)


def test_order_and_company_do_not_matter() -> None:
    found = bert_score(REFERENCES[::-1], CANDIDATES[::-1])
    assert found[::-1] == pytest.approx(PUBLISHED, abs=1e-6)
    assert bert_score(REFERENCES[:1], CANDIDATES[:1]) == pytest.approx(PUBLISHED[:1], abs=1e-6)


def test_there_must_be_a_candidate_for_each_reference() -> None:
    assert bert_score([], []).shape == (0,)
    with pytest.raises(ValueError, match="zip"):
        bert_score(["a", "b"], ["a"])


def test_absent_weights_are_a_need_and_never_a_zero() -> None:
    Path("weights/roberta-large/tokenizer.json").unlink()
    assert missing() == (Need("weights", "roberta-large"),)
    line = "roberta-large needs weights:roberta-large: run `stepline fetch weights/roberta-large`"
    with pytest.raises(MissingError, match=f"^{re.escape(line)}$"):
        bert_score(["a"], ["a"])


def test_absent_packages_are_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "find_spec", lambda name: None)
    assert missing() == (Need("package", "torch"), Need("package", "transformers"))


def test_other_weights_are_one_line() -> None:
    path = Path("weights/roberta-large/config.json")
    path.write_text(path.read_text().replace('"intermediate_size": 16', '"intermediate_size": 32'))
    with pytest.raises(StoreError, match="model.safetensors is not .*roberta-large: 51 of another form"):
        bert_score(["a"], ["a"])


def test_batches_hold_texts_of_one_length() -> None:
    lengths = [3, 5, 3, 4] * 40 + [6] * 65
    made = list(transformer.batches([[0] * length for length in lengths]))
    assert sorted(i for batch in made for i in batch) == list(range(225))
    assert [len({lengths[i] for i in batch}) for batch in made] == [1] * len(made)
    assert [len(batch) for batch in made] == [64, 16, 40, 40, 64, 1]
