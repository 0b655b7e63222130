"""Entailment of captions by references, with cross-encoder/nli-deberta-v3-base (DeBERTa-v3 on SNLI and MultiNLI).

NOT the model of HiREST, which is AllenNLP's decomposable attention network on ELMo. AllenNLP's development ended in
2022. The ratios are not comparable with published ones.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import stepline.metrics.transformer as transformer
from stepline.errors import StoreError
from stepline.needs import Need
from stepline.progress import progress

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_WEIGHTS = "nli-deberta-v3-base"


def missing() -> tuple[Need, ...]:
    """Return which of torch, transformers and the weights ``nli-deberta-v3-base`` are missing."""
    return transformer.missing(_WEIGHTS)


def entailment(references: Sequence[str], candidates: Sequence[str]) -> NDArray[np.float64]:
    """Return (N,) values: 1 if the reference (premise) entails the candidate (hypothesis), otherwise 0.

    The prediction is the most probable class; the corpus score is the mean. Raises ValueError if the numbers of
    references and candidates differ, StoreError if the model has no class ``entailment``, and the errors of
    ``transformer.load``.
    """
    tokenizer, network, entailed = _loaded()
    import torch

    pairs = [tokenizer.encode(*pair) for pair in zip(references, candidates, strict=True)]
    found = np.zeros(len(pairs))
    for batch in progress(list(transformer.batches([pair.ids for pair in pairs])), what="entailment", unit="batches"):
        tokens, kinds = (torch.tensor([getattr(pairs[i], name) for i in batch]) for name in ("ids", "type_ids"))
        with torch.inference_mode():
            logits = network(input_ids=tokens, token_type_ids=kinds).logits
        found[batch] = logits.argmax(dim=-1).numpy() == entailed
    return found


@cache
def _loaded() -> "tuple[Tokenizer, Any, int]":
    """Return the tokenizer, the network and the index of the class ``entailment``."""
    tokenizer, network = transformer.load(
        _WEIGHTS, "AutoModelForSequenceClassification", ignore=("*.position_ids",), config={}
    )
    labels = network.config.id2label
    named = [index for index, label in labels.items() if label.lower() == "entailment"]
    if len(named) != 1:
        raise StoreError(
            f"weights {_WEIGHTS}: config.json has the classes {', '.join(labels.values())}, not entailment"
        )
    return tokenizer, network, named[0]
