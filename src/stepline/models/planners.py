"""The planners of Open-Event Procedure Planning (Wu et al., Sec. 5.2): from what is seen to a vector for each action.

Both read (B, 6 D): three rows of video features where the plan starts and three where it ends, one after the other.
They give (B, T, E), to be compared with the text features of actions. The layers are those of the released models.
"""

import torch
from torch import Tensor, nn


class MlpPlanner(nn.Module):
    """Three layers, of which the last is T in parallel.

    observation: D, of a row of video features. text: E, of a text feature. horizon: T. dropout: after the first two.
    """

    def __init__(self, observation: int, text: int, horizon: int, dropout: float = 0.3) -> None:
        super().__init__()
        self.layers = nn.Sequential(*_encoder(observation, dropout), *_heads(observation, text, horizon))

    def forward(self, observed: Tensor) -> Tensor:
        """Return the (B, T, E) vectors of actions, given (B, 6 D) rows."""
        planned: Tensor = self.layers(observed)
        return planned


class TransformerPlanner(nn.Module):
    """The same three layers without dropout, then one layer of attention over the T vectors, with one head.

    Sinusoidal positions are added before it (Vaswani et al. 2017, Sec. 3.5); it normalises after each of its parts.
    observation, text, horizon: as of ``MlpPlanner``.
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
    """Return one linear layer that is ``horizon`` parallel ones: PyTorch draws by the number of inputs, here theirs."""
    return [nn.Linear(2 * observation, horizon * text), nn.Unflatten(-1, (horizon, text))]


def _positions(horizon: int, dimension: int) -> Tensor:
    """Return (horizon, dimension) sines (even places) and cosines (odd ones)."""
    waves = torch.arange(horizon)[:, None] / 10000 ** (torch.arange(0, dimension, 2) / dimension)
    return torch.stack([waves.sin(), waves.cos()], dim=-1).flatten(1)[:, :dimension]
