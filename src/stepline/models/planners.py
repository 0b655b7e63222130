"""The planners of Open-Event Procedure Planning (Wu et al., Sec. 5.2): from observations to a vector for each action.

Both take (B, 6 D): three rows of video features at the start of the plan and three at its end, concatenated. They
return (B, T, E), to be compared with the text features of actions. The layers are those of the released models.
"""

import torch
from torch import Tensor, nn


class MlpPlanner(nn.Module):
    """Three linear layers; the last consists of T parallel ones.

    observation: D, the size of a row of video features. text: E, the size of a text feature. horizon: T. dropout: after
    the first two layers.
    """

    def __init__(self, observation: int, text: int, horizon: int, dropout: float = 0.3) -> None:
        super().__init__()
        self.layers = nn.Sequential(*_encoder(observation, dropout), *_heads(observation, text, horizon))

    def forward(self, observed: Tensor) -> Tensor:
        """Return the (B, T, E) vectors of actions, given (B, 6 D) rows."""
        planned: Tensor = self.layers(observed)
        return planned


class TransformerPlanner(nn.Module):
    """The same three layers without dropout, then one transformer layer with one head over the T vectors.

    Sinusoidal positions are added before it (Vaswani et al. 2017, Sec. 3.5); it is post-norm. observation, text,
    horizon: as in ``MlpPlanner``.
    """

    positions: Tensor

    def __init__(self, observation: int, text: int, horizon: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*_encoder(observation, 0.0), *_heads(observation, text, horizon))
        self.register_buffer("positions", _positions(horizon, text), persistent=False)
        self.attention = nn.TransformerEncoderLayer(text, 1, dim_feedforward=text, dropout=0.0, batch_first=True)
        self.last = nn.Linear(text, text)

    def forward(self, observed: Tensor) -> Tensor:
        """Return the (B, T, E) vectors of actions, given (B, 6 D) rows."""
        planned: Tensor = self.last(self.attention(self.layers(observed) + self.positions))
        return planned


def _encoder(observation: int, dropout: float) -> list[nn.Module]:
    first, second = nn.Linear(6 * observation, 4 * observation), nn.Linear(4 * observation, 2 * observation)
    return [first, nn.ReLU(), nn.Dropout(dropout), second, nn.ReLU(), nn.Dropout(dropout)]


def _heads(observation: int, text: int, horizon: int) -> list[nn.Module]:
    """Return ``horizon`` parallel linear layers as one. PyTorch's initialisation depends only on the inputs."""
    return [nn.Linear(2 * observation, horizon * text), nn.Unflatten(-1, (horizon, text))]


def _positions(horizon: int, dimension: int) -> Tensor:
    """Return (horizon, dimension) sines (even indices) and cosines (odd indices)."""
    waves = torch.arange(horizon)[:, None] / 10000 ** (torch.arange(0, dimension, 2) / dimension)
    return torch.stack([waves.sin(), waves.cos()], dim=-1).flatten(1)[:, :dimension]
