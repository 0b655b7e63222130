"""A small joint model of HiREST, and videos for it."""

from typing import Any

import torch

from stepline.models.hirest_joint import Joint, Videos
from stepline.models.hirest_joint_config import JointConfig

SIZES: dict[str, Any] = {
    "feature_dim": 6,
    "text_dim": 5,
    "asr_dim": 4,
    "embed": 8,
    "hidden": 12,
    "heads": 2,
    "feedforward": 16,
    "positions": 64,
    "vocabulary": 110,
    "words": 7,
    "word_positions": 9,
    "slots": 4,
}


def network(seed: int = 0, **fields: Any) -> Joint:
    """Return a network in evaluation mode whose parts all count."""
    torch.manual_seed(seed)
    made = Joint(JointConfig(**(SIZES | fields))).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return made


def videos(*lengths: int, seed: int = 1) -> Videos:
    """Return a batch of random videos."""
    draw = torch.Generator().manual_seed(seed)
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    features, speech = (
        torch.randn(len(lengths), max(lengths), SIZES[name], generator=draw) * real[..., None]
        for name in ("feature_dim", "asr_dim")
    )
    query = torch.randn(len(lengths), SIZES["text_dim"], generator=draw)
    return Videos(features, query, speech, torch.tensor(lengths))


def alone(batch: Videos, number: int) -> Videos:
    """Return a video of a batch without its padding."""
    n = int(batch.lengths[number])
    assert batch.speech is not None
    here = slice(number, number + 1)
    return Videos(batch.features[here, :n], batch.query[here], batch.speech[here, :n], batch.lengths[here])
