"""PDPP* (Wu et al., "Open-Event Procedure Planning in Instructional Videos", Sec. 5.2 and Eq. 7): projected diffusion
(Wang et al., "PDPP", CVPR 2023) with text embeddings as actions, trained and sampled as in the authors' release.

A plan has one row per action: the embedding of the action, and the observation there, which is known at both ends and
zero in between. A network predicts the plan without its noise; the known observations are restored at each step
("projection"). Noise and predictions of observations therefore have no effect, so both are computed only for
embeddings. This does not change any result.

Random numbers in training come from torch's global generator; sampling takes its noise as an argument.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

GROUPS = 32
"""The number of groups in every group normalisation."""
KERNEL = 3
"""The kernel size of convolutions, in rows."""
MULTIPLES = (1, 2, 4)
"""The multiples of ``width`` at the levels of the U-Net. Each level is one row shorter than the previous one."""
OFFSET = 0.008
"""s of the cosine schedule."""
MOST_BETA = 0.999
"""The maximum noise that a step adds."""


class Convolution(nn.Module):
    """A convolution of (B, ``rows``, inputs) with stride 1; its output has ``kernel`` - 1 - 2 ``padding`` fewer rows.

    It equals `nn.Conv1d`, and with kernel 2 and padding 1 `nn.ConvTranspose1d` without padding (taps reversed). It is
    computed as one matrix product, which is several times faster on a CPU for so few rows. Kernel weights that would
    only see padding, two thirds for a single row, are omitted: they affect no output and receive no gradient.
    zero: initialise weight and bias with zero.
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
        """Return the output, (B, rows, outputs)."""
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
    """Two blocks with the time added between them, and a residual connection, linear if the widths differ.

    The second block is initialised with zero, so that initially the output is that of the residual connection.
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
    """Two residual blocks in sequence."""

    def __init__(self, inputs: int, outputs: int, rows: int, time: int) -> None:
        super().__init__()
        self.first, self.second = Residual(inputs, outputs, rows, time), Residual(outputs, outputs, rows, time)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """Return (B, rows, outputs) of (B, rows, inputs) and (B or 1, time)."""
        found: Tensor = self.second(self.first(x, time), time)
        return found


class TemporalUnet(nn.Module):
    """PDPP's U-Net over the rows of a plan.

    inputs, outputs: channels of a row. rows: of a plan, at least the number of levels. width: of the first level, a
    multiple of ``GROUPS``. Raises ValueError for other values.
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
        """Return (B, rows, outputs) of (B, rows, inputs) and their diffusion steps from 0, (B,), or (1,) for all."""
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
    """A planner that denoises a plan.

    text: the size of an action's embedding. observation: D of the features of a second; an observation has three
    seconds. horizon: T, the number of actions, at least 3. width: see `TemporalUnet`. steps: the number of diffusion
    steps.
    """

    def __init__(self, text: int, observation: int, horizon: int, *, width: int = 256, steps: int = 200) -> None:
        super().__init__()
        self.horizon, self.text, self.steps = horizon, text, steps
        self.network = TemporalUnet(text + 3 * observation, text, horizon, width=width)
        self.signal: Tensor
        self.register_buffer("signal", signal(steps).float(), persistent=False)

    def forward(self, observed: Tensor, actions: Tensor | None = None) -> Tensor:
        """Return the predicted embeddings of noisy plans, (B, T, text), for training.

        observed: (B, 6 D), o_start and o_end. actions: (B, T, text), the embeddings to which noise is added (Eq. 7).
        None means zeros, as in the release: the network then learns them only from observations, next to noise of any
        strength. The diffusion step of each plan is drawn uniformly, then the noise.
        """
        steps = torch.randint(self.steps, (len(observed),), device=observed.device)
        x = torch.randn(len(observed), self.horizon, self.text, device=observed.device)
        x = x * (1 - self.signal[steps, None, None]).sqrt()
        if actions is not None:
            x = x + actions * self.signal[steps, None, None].sqrt()
        return self._found(x, observed, steps)

    @torch.no_grad()
    def sample(self, observed: Tensor, noise: Tensor, *, n_steps: int = 10) -> Tensor:
        """Return (B, T, text) embeddings, denoised from ``noise`` of the same shape by DDIM with eta 0.

        As in the release, the steps are the first ``n_steps`` multiples of steps // ``n_steps``, from the last (180 of
        200, although the noise has no signal at all) down to 0, after which only the network's x0 remains. Nothing is
        clamped, because the release discards the result of its clamp.
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
        """Return the (B, T, 3 D) observations of plans: o_start first, o_end last, zeros in between."""
        start, end = observed.chunk(2, dim=1)
        between = observed.new_zeros(len(observed), self.horizon - 2, start.shape[1])
        return torch.cat((start[:, None], between, end[:, None]), dim=1)


def signal(steps: int) -> Tensor:
    """Return (steps,) float64, the fraction of a plan's variance that remains after each diffusion step.

    This is the cosine schedule (Nichol & Dhariwal 2021, Eq. 17) with ``OFFSET``; no step adds more than ``MOST_BETA``.
    """
    share = (torch.arange(steps + 1, dtype=torch.float64) / steps + OFFSET) / (1 + OFFSET)
    left = (share * math.pi / 2).cos() ** 2
    return (left[1:] / left[:-1]).clamp(min=1 - MOST_BETA).cumprod(dim=0)


def schedule(epochs: int) -> Callable[[float], float]:
    """Return the factor on the learning rate, as a function of the finished epochs, for ``fit_head``.

    As in the release, it rises from 0 to 1 in the first sixth of all epochs and is halved after each further quarter,
    without a minimum.
    """

    def factor(done: float) -> float:
        risen = 6 * done / epochs
        return risen if risen <= 1 else 0.5 ** ((6 * done - epochs) // (1.5 * epochs))

    return factor


def averaging(decay: float = 0.995, start: int = 400, every: int = 10) -> Callable[[int], float]:
    """Return the decay of the parameter average as a function of the update, counted from 1, for ``fit_head``.

    As in the release, the average changes only at updates 1, 1 + ``every``, ...: it is the model itself until ``start``
    updates are done, and has the decay ``decay`` from then on.
    """

    def share(update: int) -> float:
        before = update - 1
        if before % every:
            return 1.0
        return 0.0 if before < start else decay

    return share


def _sinusoids(steps: Tensor, width: int) -> Tensor:
    """Return (B, width): sines, then cosines, of (B,) steps at geometrically spaced rates from 1 to 1/10,000."""
    rates = torch.logspace(0, -4, width // 2, device=steps.device)
    angles = steps[:, None] * rates
    return torch.cat((angles.sin(), angles.cos()), dim=1)
