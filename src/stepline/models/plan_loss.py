"""Comparison of planned action vectors with the text features of a pool: similarities, prediction and losses.

Wu et al., Open-Event Procedure Planning, Sec. 4.3; details that the paper omits follow the released training. x is (B,
T, D), a vector for each of T steps. text is (N, D), frozen features of the pool's actions, not normalised. labels are
(B, T) ids, rows of text.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

Loss = Literal["both", "ce", "mse"]
"""Which of the two loss terms are used (Table 4)."""
CeMode = Literal["softmax_twice", "plain"]
"""The input of the cross entropy, which expects logits: ``softmax_twice`` passes probabilities, as in the release;
``plain`` passes logits."""
TEMPERATURE = 0.1
"""The temperature of cosines, from the release; the paper has none."""
EPSILON = 1e-8
"""The minimum norm in a division, as in torch's ``cosine_similarity``."""


def similarities(x: Tensor, text: Tensor) -> Tensor:
    """Return the (B, T, N) cosines of x with the pool; the cosine with a zero vector is 0."""
    return functional.normalize(x, dim=-1, eps=EPSILON) @ functional.normalize(text, dim=-1, eps=EPSILON).T


def read_out(x: Tensor, text: Tensor) -> Tensor:
    """Return the (B, T) ids of the most similar actions; the lowest id wins a tie.

    Several actions may have the same vector. Their cosines can differ by rounding, so the first of them is returned.
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

    Cross entropy is a mean over the batch, the squared error a mean over the batch and D. A single term keeps its
    weight.
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

    The value of the loss is therefore always T * (ce_weight + mse_weight), and the weights scale relative gradients. A
    term that is 0 stays 0.
    """
    entropy, error = (
        term / torch.where(term == 0, 1, term).detach() for term in _terms(x, text, labels, temperature, ce_mode)
    )
    return ce_weight * entropy.sum() + mse_weight * error.sum()


def _terms(x: Tensor, text: Tensor, labels: Tensor, temperature: float, ce_mode: CeMode) -> tuple[Tensor, Tensor]:
    """Return the (T,) cross entropies and squared errors (summed over D) of the steps, averaged over the batch."""
    logits = similarities(x, text) / temperature
    if ce_mode == "softmax_twice":
        logits = logits.softmax(dim=-1)
    entropy = functional.cross_entropy(logits.movedim(-1, 1), labels, reduction="none")
    return entropy.mean(dim=0), (x - text[labels]).square().sum(dim=-1).mean(dim=0)
