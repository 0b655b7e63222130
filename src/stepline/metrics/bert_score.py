"""BERTScore (Zhang et al. 2020): greedy token matching with RoBERTa-large, as ``bert_score.score(..., lang="en")``.

The package bert-score has had no release since 2023. With transformers 5 it omits the space before the first word and
fails on an empty text. torchmetrics excludes special tokens from the matching, so its numbers differ.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import stepline.metrics.transformer as transformer
from stepline.needs import Need
from stepline.progress import progress

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_LAYER = 17
"""The layer whose output is compared: bert-score's default for roberta-large."""


def missing() -> tuple[Need, ...]:
    """Return which of torch, transformers and the weights ``roberta-large`` are missing."""
    return transformer.missing("roberta-large")


def bert_score(references: Sequence[str], candidates: Sequence[str]) -> NDArray[np.float64]:
    """Return the (N,) F1 of each candidate with its one reference, without idf or rescaling; 0 if either text is empty.

    Each token scores its highest cosine with any token of the other text. Special tokens can be matched but have no
    score of their own. Values are in [-1, 1], in practice above 0.8. The corpus score is the mean. Surrounding
    whitespace is stripped, and texts are cut to 512 tokens.

    Raises ValueError if the numbers of references and candidates differ, and the errors of ``transformer.load``.
    """
    vectors = _vectors(list(dict.fromkeys([*references, *candidates])))
    pairs = zip(references, candidates, strict=True)
    return np.array([_f1(vectors[ours], vectors[theirs]) for theirs, ours in pairs], dtype=np.float64)


def _vectors(texts: list[str]) -> dict[str, NDArray[np.float32]]:
    """Return the (tokens, D) unit vectors of each text, including its two special tokens."""
    tokenizer, network = _loaded()
    import torch

    tokens = [tokenizer.encode(text.strip()).ids for text in texts]
    found: dict[str, NDArray[np.float32]] = {}
    for batch in progress(list(transformer.batches(tokens)), what="BERTScore", unit="batches"):
        with torch.inference_mode():
            hidden = network(input_ids=torch.tensor([tokens[i] for i in batch])).last_hidden_state
            unit = torch.nn.functional.normalize(hidden, dim=-1).numpy()
        found |= {texts[i]: row for i, row in zip(batch, unit, strict=True)}
    return found


def _f1(candidate: NDArray[np.float32], reference: NDArray[np.float32]) -> float:
    if min(len(candidate), len(reference)) == 2:
        return 0.0
    cosines = candidate @ reference.T
    precision, recall = (float(cosines.max(axis=axis)[1:-1].mean()) for axis in (1, 0))
    return 2 * precision * recall / (precision + recall)


@cache
def _loaded() -> "tuple[Tokenizer, Any]":
    """Return the tokenizer, which adds a space before each text, and RoBERTa-large up to its 17th layer."""
    tokenizer, network = transformer.load(
        "roberta-large",
        "AutoModel",
        prefix="roberta.",
        ignore=("encoder.layer.*", "pooler.*", "embeddings.position_ids"),
        config={"num_hidden_layers": _LAYER},
        add_pooling_layer=False,
    )
    from tokenizers.pre_tokenizers import ByteLevel

    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=True)
    # RoBERTa's position ids start after the padding id.
    tokenizer.enable_truncation(network.config.max_position_embeddings - network.config.pad_token_id - 1)
    return tokenizer, network
