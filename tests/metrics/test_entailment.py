import json
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from stepline.errors import MissingError, StoreError
from stepline.metrics import entailment as module
from stepline.metrics.entailment import entailment, missing
from stepline.needs import Need
from tests.metrics import tiny

CONFIG = {
    "model_type": "deberta-v2",
    "num_hidden_layers": 2,
    "max_position_embeddings": 32,
    "max_relative_positions": -1,
    "norm_rel_ebd": "layer_norm",
    "pooler_hidden_act": "gelu",
    "pooler_hidden_size": 8,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "position_buckets": 4,
    "relative_attention": True,
    "share_att_key": True,
    "type_vocab_size": 0,
}
WORDS = ["mix", "add the oil", "a pot of salt, stirred", "x", "add", "", "stir the pot", "a dog"]
PAIRS = [(premise, hypothesis) for premise in WORDS for hypothesis in WORDS]


@pytest.fixture
def classes() -> list[int]:
    """The class of each pair, one after the other, as transformers reads the folder itself."""
    module._loaded.cache_clear()
    config = CONFIG | {"id2label": {0: "contradiction", 1: "entailment", 2: "neutral"}}
    folder = tiny.make("nli-deberta-v3-base", "AutoModelForSequenceClassification", config, layers=1)
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModelForSequenceClassification

    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    found = []
    for premise, hypothesis in PAIRS:
        first, second = (tokenizer.encode(text, add_special_tokens=False).ids for text in (premise, hypothesis))
        with torch.no_grad():
            found.append(int(network(torch.tensor([[0, *first, 2, 2, *second, 2]])).logits.argmax()))
    return found


def label(*names: str) -> None:
    path = Path("weights/nli-deberta-v3-base/config.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"id2label": dict(enumerate(names))}))


@pytest.mark.parametrize(
    ("labels", "entailed"),
    [(("entailment", "not_entailment", "?"), 0), (("CONTRADICTION", "NEUTRAL", "ENTAILMENT"), 2)],
)
def test_pairs_of_the_class_count(classes: list[int], labels: tuple[str, ...], entailed: int) -> None:
    assert missing() == ()
    label(*labels)
    found = entailment(*zip(*PAIRS, strict=True))
    assert found.tolist() == [float(each == entailed) for each in classes]
    assert 0 < found.sum() < len(PAIRS)
    assert entailment(*list(zip(*PAIRS, strict=True))[::-1]).tolist() != found.tolist(), "roles matter"


def test_the_most_probable_class_counts_also_below_a_half(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    tokenizer = SimpleNamespace(encode=lambda *pair: SimpleNamespace(ids=[0], type_ids=[0]))
    logits = torch.tensor([[0.1, 0.2, 0.1], [0.2, 0.1, 0.1]])
    monkeypatch.setattr(module, "_loaded", lambda: (tokenizer, lambda **_: SimpleNamespace(logits=logits), 1))
    assert entailment(["a", "b"], ["c", "d"]).tolist() == [1, 0]


@pytest.mark.usefixtures("classes")
def test_a_model_without_the_class_is_one_line() -> None:
    label("LABEL_0", "LABEL_1", "LABEL_2")
    with pytest.raises(StoreError, match="^weights .*: config.json has the classes LABEL_0, LABEL_1, LABEL_2, not"):
        entailment(["a"], ["a"])


@pytest.mark.usefixtures("classes")
def test_there_must_be_a_candidate_for_each_reference() -> None:
    assert entailment([], []).shape == (0,)
    with pytest.raises(ValueError, match="zip"):
        entailment(["a", "b"], ["a"])


def test_absent_weights_are_a_need_and_never_a_zero() -> None:
    module._loaded.cache_clear()
    assert missing() == (Need("weights", "nli-deberta-v3-base"),)
    with pytest.raises(MissingError, match="run `stepline fetch weights/nli-deberta-v3-base`$"):
        entailment(["a"], ["a"])
