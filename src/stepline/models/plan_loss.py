"""Planned actions as vectors beside the text features of a pool: their similarities, the read-out and the losses.

Wu et al., Open-Event Procedure Planning, Sec. 4.3, as their released training has it where the paper is silent. x is
(B, T, D), a vector for each of T steps; text is (N, D), frozen features of the pool's actions, not normalised;
labels are (B, T) ids, rows of text.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

Loss = Literal["both", "ce", "mse"]
"""Which of the two terms are learned by (Table 4)."""
CeMode = Literal["softmax_twice", "plain"]
"""``softmax_twice``: the cross entropy, which takes logits, is given probabilities, as released; ``plain``: logits."""
TEMPERATURE = 0.1
"""What cosines are divided by; as released, the paper has none."""
EPSILON = 1e-8
"""The least norm that a vector is divided by, torch's in ``cosine_similarity``."""


def similarities(x: Tensor, text: Tensor) -> Tensor:
    """Return the (B, T, N) cosines of x with the pool; those of a zero vector are 0."""
    return functional.normalize(x, dim=-1, eps=EPSILON) @ functional.normalize(text, dim=-1, eps=EPSILON).T


def read_out(x: Tensor, text: Tensor) -> Tensor:
    """Return the (B, T) ids of the most similar actions, of equals the lowest.

    Actions may have one and the same vector. Their cosines can differ by rounding, so it is their first that is read.
    """
    first = (text[:, None] == text).all(dim=-1).int().argmax(dim=-1)
    return first[similarities(x, text).argmax(dim=-1)]


def plan_loss(
    x: Tensor,
    text: Tensor,
    labels: Tensor,
    *,
    loss: Loss,
    temperature: float = TEMPERATURE,
    ce_mode: CeMode = "softmax_twice",
    ce_weight: float = 1.0,
    mse_weight: float = 0.2,
) -> Tensor:
    """Return the weighted sum over steps of the cross entropy of similarities and the squared error to text[labels].

    Cross entropy is a mean over the batch, the squared error one over the batch and D. A term alone keeps its weight.
    """
    entropy, error = _terms(x, text, labels, temperature, ce_mode)
    ce, mse = ce_weight * entropy.sum(), mse_weight * error.sum() / x.shape[-1]
    return {"both": ce + mse, "ce": ce, "mse": mse}[loss]


def balanced_loss(
    x: Tensor,
    text: Tensor,
    labels: Tensor,
    *,
    temperature: float = TEMPERATURE,
    ce_mode: CeMode = "softmax_twice",
    ce_weight: float = 1.0,
    mse_weight: float = 0.2,
) -> Tensor:
    """Return the loss of PDPP*, in which each term of each step is divided by its own value.

    So the value is T * (ce_weight + mse_weight) always, and weights say how large gradients are for their terms. A
    term that is 0, which has nothing more to learn, stays 0.
    """
    entropy, error = (
        term / torch.where(term == 0, 1, term).detach() for term in _terms(x, text, labels, temperature, ce_mode)
    )
    return ce_weight * entropy.sum() + mse_weight * error.sum()


def _terms(x: Tensor, text: Tensor, labels: Tensor, temperature: float, ce_mode: CeMode) -> tuple[Tensor, Tensor]:
    """Return the (T,) cross entropies and squared errors of the steps, means over the batch, the latter sums over D."""
    logits = similarities(x, text) / temperature
    if ce_mode == "softmax_twice":
        logits = logits.softmax(dim=-1)
    entropy = functional.cross_entropy(logits.movedim(-1, 1), labels, reduction="none")
    return entropy.mean(dim=0), (x - text[labels]).square().sum(dim=-1).mean(dim=0)
