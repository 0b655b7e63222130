"""Metrics of step captions with one reference each, by name, as in HiREST (Zala et al. 2023, Sec. 4.3).

CLIPScore takes vectors instead of texts; it is in ``stepline.metrics.clip_score``.
"""

import atexit
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from stepline.metrics.captions import Scorer, Scores, Tokens, bleu, cider, meteor_stem, rouge_l, tokenise
from stepline.metrics.meteor import Meteor
from stepline.needs import Need

StepScorer = Callable[[Sequence[str], Sequence[str]], Scores]
"""Scores N candidates against N references. Scores are fractions, except CIDEr, which is in [0, 10].

Texts are lower-cased first. All metrics except BERTScore and entailment see the tokens of coco-caption's tokeniser,
without punctuation. The corpus score is the mean, except for METEOR, METEOR-stem and BLEU. Raises ValueError if there
are no texts or the two numbers differ, and MissingError if a requirement that ``missing`` names is absent.
"""


def missing(metric: str) -> tuple[Need, ...]:
    """Return the missing requirements of a metric in ``SCORERS``: packages, Java, weights."""
    if metric in TOKENS:
        return ()
    found: tuple[Need, ...] = import_module(f"stepline.metrics.{metric}").missing()
    return found


def _meteor(references: Sequence[str], candidates: Sequence[str]) -> Scores:
    return _process().score(*_tokenised(references, candidates))


@cache
def _process() -> Meteor:
    """Return one METEOR process for all calls; it ends when Python exits."""
    meteor = Meteor().__enter__()
    atexit.register(meteor.__exit__, None, None, None)
    return meteor


def _spice(references: Sequence[str], candidates: Sequence[str]) -> Scores:
    from stepline.metrics.spice import spice

    groups, ours = _tokenised(references, candidates)
    return _mean(spice([" ".join(tokens) for (tokens,) in groups], [" ".join(tokens) for tokens in ours]))


def _bert_score(references: Sequence[str], candidates: Sequence[str]) -> Scores:
    from stepline.metrics.bert_score import bert_score

    return _mean(bert_score([text.lower() for text in references], [text.lower() for text in candidates]))


def _entailment(references: Sequence[str], candidates: Sequence[str]) -> Scores:
    from stepline.metrics.entailment import entailment

    return _mean(entailment([text.lower() for text in references], [text.lower() for text in candidates]))


def _on_tokens(scorer: Scorer) -> StepScorer:
    return lambda references, candidates: scorer(*_tokenised(references, candidates))


TOKENS: Mapping[str, Scorer] = {"cider": cider, "bleu4": bleu, "rouge_l": rouge_l, "meteor_stem": meteor_stem}
"""The metrics that use tokens only."""
SCORERS: Mapping[str, StepScorer] = {
    **{name: _on_tokens(scorer) for name, scorer in TOKENS.items()},
    "meteor": _meteor,
    "spice": _spice,
    "bert_score": _bert_score,
    "entailment": _entailment,
}
WEIGHTS = {"corenlp": "spice", "roberta-large": "bert_score", "nli-deberta-v3-base": "entailment"}
"""Weights -> the metric that uses them."""


def _tokenised(references: Sequence[str], candidates: Sequence[str]) -> tuple[list[list[Tokens]], list[Tokens]]:
    return [[tokenise(text.lower())] for text in references], [tokenise(text.lower()) for text in candidates]


def _mean(values: NDArray[np.float64]) -> Scores:
    if not len(values):
        raise ValueError("no segments to score")
    return Scores(float(values.mean()), values)
