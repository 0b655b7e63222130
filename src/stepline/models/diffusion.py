"""PDPP* (Wu et al., "Open-Event Procedure Planning in Instructional Videos", Sec. 5.2 and Eq. 7): projected diffusion
(Wang et al., "PDPP", CVPR 2023) whose actions are text embeddings, as the authors' release trains and samples it.

A plan is a row for each action: its embedding beside the observation there, which is known at both ends and zero
between. A network on all rows predicts the plan without its noise; known observations are put back at each step
("projection"). So neither noise nor prediction of an observation ever counts: noise is drawn and the network predicts
for embeddings alone, which changes no result.

What is random in training comes from torch's global generator; sampling is given its noise.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

GROUPS = 32
"""Of every group normalisation."""
KERNEL = 3
"""Rows that a convolution sees."""
MULTIPLES = (1, 2, 4)
"""Of ``width``, at each level of the U-Net; each level but the first is one row shorter than that above it."""
OFFSET = 0.008
"""s of the cosine schedule."""
MOST_BETA = 0.999
"""The most noise that a step adds."""


class Convolution(nn.Module):
    """A convolution of (B, ``rows``, inputs) with stride 1; its output has ``kernel`` - 1 - 2 ``padding`` rows less.

    Equal to `nn.Conv1d`, and with kernel 2 and padding 1 to `nn.ConvTranspose1d` without padding (taps reversed), but
    one matrix product, on a CPU several times as fast for so few rows; and what of its kernel would only ever meet
    padding, two thirds for a single row, is left out: it changes no output and never learns.
    zero: weight and bias start at zero.
    """

    def __init__(
        self, inputs: int, outputs: int, rows: int, *, kernel: int = KERNEL, padding: int = 1, zero: bool = False
    ) -> None:
        super().__init__()
        self.padding, self.made = padding, rows + 2 * padding - kernel + 1
        self.taps = range(max(0, padding + 1 - self.made), min(kernel, rows + padding))
        self.weight = nn.Parameter(torch.zeros(outputs, len(self.taps) * inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        if not zero:
            bound = 1 / math.sqrt(kernel * inputs)
            nn.init.uniform_(self.weight, -bound, bound)
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, rows, outputs)."""
        if self.padding:
            x = functional.pad(x, (0, 0, self.padding, self.padding))
        seen = [x[:, tap : tap + self.made] for tap in self.taps]
        return functional.linear(torch.cat(seen, dim=2) if len(seen) > 1 else seen[0], self.weight, self.bias)


class Block(nn.Module):
    """A convolution, group normalisation over the rows and the channels of a group, and Mish."""

    def __init__(self, inputs: int, outputs: int, rows: int, *, zero: bool = False) -> None:
        super().__init__()
        self.convolution = Convolution(inputs, outputs, rows, zero=zero)
        self.norm = nn.GroupNorm(GROUPS, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, rows, outputs) of (B, rows, inputs)."""
        return functional.mish(self.norm(self.convolution(x).mT).mT.contiguous())


class Residual(nn.Module):
    """Two blocks, the time added between them, beside a linear map of the input, or itself where it is as wide.

    The second block starts at zero, so that all of it starts as what is beside it.
    """

    def __init__(self, inputs: int, outputs: int, rows: int, time: int) -> None:
        super().__init__()
        self.first, self.second = Block(inputs, outputs, rows), Block(outputs, outputs, rows, zero=True)
        self.time = nn.Linear(time, outputs)
        self.beside = nn.Identity() if inputs == outputs else nn.Linear(inputs, outputs)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """Return (B, rows, outputs) of (B, rows, inputs) and (B or 1, time)."""
        found: Tensor = self.second(self.first(x) + self.time(time)[:, None]) + self.beside(x)
        return found


class Pair(nn.Module):
    """Two residual blocks after another."""

    def __init__(self, inputs: int, outputs: int, rows: int, time: int) -> None:
        super().__init__()
        self.first, self.second = Residual(inputs, outputs, rows, time), Residual(outputs, outputs, rows, time)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """Return (B, rows, outputs) of (B, rows, inputs) and (B or 1, time)."""
        found: Tensor = self.second(self.first(x, time), time)
        return found


class TemporalUnet(nn.Module):
    """PDPP's U-Net over the rows of a plan.

    inputs, outputs: channels of a row. rows: of a plan, no fewer than levels. width: of the first level, a multiple of
    ``GROUPS``. Raises ValueError for others.
    """

    def __init__(self, inputs: int, outputs: int, rows: int, *, width: int = 256) -> None:
        super().__init__()
        if width < 1 or width % GROUPS:
            raise ValueError(f"width is {width}, not a multiple of {GROUPS}")
        if rows < len(MULTIPLES):
            raise ValueError(f"a plan of {rows} actions is too short for {len(MULTIPLES)} levels")
        self.width = width
        widths = [multiple * width for multiple in MULTIPLES]
        lengths = [rows - level for level in range(len(widths))]
        self.time = nn.Sequential(nn.Linear(width, 4 * width), nn.Mish(), nn.Linear(4 * width, width), nn.Mish())
        self.down = nn.ModuleList(
            Pair(above, below, length, width)
            for above, below, length in zip([inputs, *widths], widths, lengths, strict=False)
        )
        self.shorter = nn.ModuleList(
            Convolution(each, each, length, kernel=2, padding=0)
            for each, length in zip(widths[:-1], lengths[:-1], strict=True)
        )
        self.middle = Pair(widths[-1], widths[-1], lengths[-1], width)
        rising = [*zip(widths[:0:-1], widths[-2::-1], lengths[:0:-1], strict=True)]
        self.up = nn.ModuleList(Pair(2 * below, above, length, width) for below, above, length in rising)
        self.longer = nn.ModuleList(
            Convolution(above, above, length, kernel=2, padding=1) for _, above, length in rising
        )
        self.last = nn.Sequential(Block(width, width, rows, zero=True), nn.Linear(width, outputs))

    def forward(self, x: Tensor, steps: Tensor) -> Tensor:
        """Return (B, rows, outputs) of (B, rows, inputs) and their diffusion steps from 0, (B,) or (1,) of all."""
        time = self.time(_sinusoids(steps, self.width))
        levels = []
        for level, pair in enumerate(self.down):
            x = pair(self.shorter[level - 1](x) if level else x, time)
            levels.append(x)
        x = self.middle(x, time)
        for pair, longer, beside in zip(self.up, self.longer, reversed(levels[1:]), strict=True):
            x = longer(pair(torch.cat((x, beside), dim=2), time))
        found: Tensor = self.last(x)
        return found


class PlanDiffusion(nn.Module):
    """A planner that turns noise into a plan.

    text: channels of an action's embedding. observation: D of the features of a second; an observation has 3.
    horizon: T, the number of actions, 3 or more. width: see `TemporalUnet`. steps: of the diffusion.
    """

    def __init__(self, text: int, observation: int, horizon: int, *, width: int = 256, steps: int = 200) -> None:
        super().__init__()
        self.horizon, self.text, self.steps = horizon, text, steps
        self.network = TemporalUnet(text + 3 * observation, text, horizon, width=width)
        self.signal: Tensor
        self.register_buffer("signal", signal(steps).float(), persistent=False)

    def forward(self, observed: Tensor, actions: Tensor | None = None) -> Tensor:
        """Return (B, T, text), the embeddings that are found in plans with noise; for training.

        observed: (B, 6 D), o_start and o_end. actions: (B, T, text), the embeddings below the noise, as Eq. 7 has it;
        None are zeros, as released: then the network learns them from observations alone, beside noise of any strength.
        Each plan's diffusion step is drawn uniformly, then the noise.
        """
        steps = torch.randint(self.steps, (len(observed),), device=observed.device)
        x = torch.randn(len(observed), self.horizon, self.text, device=observed.device)
        x = x * (1 - self.signal[steps, None, None]).sqrt()
        if actions is not None:
            x = x + actions * self.signal[steps, None, None].sqrt()
        return self._found(x, observed, steps)

    @torch.no_grad()
    def sample(self, observed: Tensor, noise: Tensor, *, n_steps: int = 10) -> Tensor:
        """Return (B, T, text) embeddings made of noise like them by DDIM without further noise (eta 0).

        As released: the steps are the first ``n_steps`` multiples of steps // ``n_steps``, from the last (180 of 200,
        though the noise is that of no signal at all) down to 0, after which nothing but the network's x0 remains; that
        is nowhere clamped (the release drops its clamp's result).
        """
        if not 1 <= n_steps <= self.steps:
            raise ValueError(f"n_steps is {n_steps}, not in 1..{self.steps}")
        x, stride = noise, self.steps // n_steps
        for number in reversed(range(n_steps)):
            now = self.signal[number * stride]
            then = self.signal[(number - 1) * stride] if number else torch.ones_like(now)
            found = self._found(x, observed, torch.full((1,), number * stride, device=x.device))
            x = then.sqrt() * found + ((1 - then) / (1 - now)).sqrt() * (x - now.sqrt() * found)
        return x

    def _found(self, x: Tensor, observed: Tensor, steps: Tensor) -> Tensor:
        found: Tensor = self.network(torch.cat((x, self.project(observed)), dim=2), steps)
        return found

    def project(self, observed: Tensor) -> Tensor:
        """Return the (B, T, 3 D) observations of plans: o_start first, o_end last, zeros between."""
        start, end = observed.chunk(2, dim=1)
        between = observed.new_zeros(len(observed), self.horizon - 2, start.shape[1])
        return torch.cat((start[:, None], between, end[:, None]), dim=1)


def signal(steps: int) -> Tensor:
    """Return (steps,) float64, the share of the variance of a plan that is left after each diffusion step.

    The cosine schedule (Nichol & Dhariwal 2021, Eq. 17) with ``OFFSET``; no step adds more than ``MOST_BETA``.
    """
    share = (torch.arange(steps + 1, dtype=torch.float64) / steps + OFFSET) / (1 + OFFSET)
    left = (share * math.pi / 2).cos() ** 2
    return (left[1:] / left[:-1]).clamp(min=1 - MOST_BETA).cumprod(dim=0)


def schedule(epochs: int) -> Callable[[float], float]:
    """Return what the learning rate is multiplied by after some of so many epochs; for ``fit_head``.

    As released: it rises from 0 to 1 in the first sixth, then is halved after each further quarter of all; no floor.
    """

    def factor(done: float) -> float:
        risen = 6 * done / epochs
        return risen if risen <= 1 else 0.5 ** ((6 * done - epochs) // (1.5 * epochs))

    return factor


def averaging(decay: float = 0.995, start: int = 400, every: int = 10) -> Callable[[int], float]:
    """Return the share that the average of the parameters keeps of itself after an update, from 1; for ``fit_head``.

    As released: after updates 1, 1 + ``every``, ..., it is the model while fewer than ``start`` were before, and
    keeps ``decay`` from then on; after others it stays.
    """

    def share(update: int) -> float:
        before = update - 1
        if before % every:
            return 1.0
        return 0.0 if before < start else decay

    return share


def _sinusoids(steps: Tensor, width: int) -> Tensor:
    """Return (B, width): sines, then cosines, of (B,) steps at rates from 1 to 1/10,000 in a geometric row."""
    rates = torch.logspace(0, -4, width // 2, device=steps.device)
    angles = steps[:, None] * rates
    return torch.cat((angles.sin(), angles.cos()), dim=1)
