"""What the released planners of OEPP compute, written out by the formulas of their public code and of PDPP's.

Parameters have the release's names and layout; all is float64, and nothing of the package is used. Tests copy the same
parameters into the models of the package and ask for the same numbers.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

Weights = dict[str, Tensor]


def drawn(shapes: Mapping[str, tuple[int, ...]]) -> Weights:
    """Return parameters that their names alone decide: products with them keep the size of what they are given."""

    def value(name: str, shape: tuple[int, ...]) -> Tensor:
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
        normal = np.random.default_rng(seed).standard_normal(shape)
        if len(shape) > 1:
            return torch.from_numpy(normal / math.sqrt(math.prod(shape[1:])))
        return torch.from_numpy(0.2 * normal + ("norm" in name or ".block.2." in name) * name.endswith("weight"))

    return {name: value(name, shape).requires_grad_() for name, shape in shapes.items()}


def _layer(name: str, *shape: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def _linear(w: Weights, name: str, x: Tensor) -> Tensor:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def unet_weights(channels: int, width: int) -> Weights:
    """Return parameters of the U-Net over plans of so many channels."""
    first, second, third = width, 2 * width, 4 * width
    shapes = _layer("time_mlp.1", third, width) | _layer("time_mlp.3", width, third)

    def residual(name: str, inputs: int, outputs: int) -> None:
        for number, seen in enumerate((inputs, outputs)):
            shapes.update(_layer(f"{name}.blocks.{number}.block.0", outputs, seen, 3))
            shapes.update(_layer(f"{name}.blocks.{number}.block.2", outputs))
        shapes.update(_layer(f"{name}.time_mlp.1", outputs, width))
        if inputs != outputs:
            shapes.update(_layer(f"{name}.residual_conv", outputs, inputs, 1))

    for level, (inputs, outputs) in enumerate(((channels, first), (first, second), (second, third))):
        residual(f"downs.{level}.0", inputs, outputs)
        residual(f"downs.{level}.1", outputs, outputs)
        if level < 2:
            shapes.update(_layer(f"downs.{level}.2.conv", outputs, outputs, 2))
    residual("mid_block1", third, third)
    residual("mid_block2", third, third)
    for level, (inputs, outputs) in enumerate(((2 * third, second), (2 * second, first))):
        residual(f"ups.{level}.0", inputs, outputs)
        residual(f"ups.{level}.1", outputs, outputs)
        shapes.update(_layer(f"ups.{level}.2.conv", outputs, outputs, 2))
    shapes |= _layer("final_conv.0.block.0", first, first, 3) | _layer("final_conv.0.block.2", first)
    return drawn(shapes | _layer("final_conv.1", channels, first, 1))


def _mish(x: Tensor) -> Tensor:
    return x * torch.log1p(x.exp()).tanh()


def _block(w: Weights, name: str, x: Tensor) -> Tensor:
    x = functional.conv1d(x, w[f"{name}.block.0.weight"], w[f"{name}.block.0.bias"], padding=1)
    grouped = x.reshape(len(x), 32, -1)
    centred = grouped - grouped.mean(dim=2, keepdim=True)
    x = (centred / (centred.square().mean(dim=2, keepdim=True) + 1e-5).sqrt()).view_as(x)
    return _mish(x * w[f"{name}.block.2.weight"][:, None] + w[f"{name}.block.2.bias"][:, None])


def _residual(w: Weights, name: str, x: Tensor, time: Tensor) -> Tensor:
    beside = x
    if f"{name}.residual_conv.weight" in w:
        beside = functional.conv1d(x, w[f"{name}.residual_conv.weight"], w[f"{name}.residual_conv.bias"])
    found = _block(w, f"{name}.blocks.0", x) + _linear(w, f"{name}.time_mlp.1", _mish(time))[:, :, None]
    return _block(w, f"{name}.blocks.1", found) + beside


def unet(w: Weights, x: Tensor, steps: Tensor) -> Tensor:
    """Return the (B, T, C) plans that the U-Net finds in (B, T, C) plans with the noise of (B,) diffusion steps."""
    half = w["time_mlp.1.weight"].shape[1] // 2
    angle = steps[:, None] * torch.exp(-math.log(10_000) / (half - 1) * torch.arange(half))
    time = torch.cat((angle.sin(), angle.cos()), dim=1)
    time = _linear(w, "time_mlp.3", _mish(_linear(w, "time_mlp.1", time)))
    x, kept = x.mT, []
    for level in range(3):
        x = _residual(w, f"downs.{level}.1", _residual(w, f"downs.{level}.0", x, time), time)
        kept.append(x)
        if level < 2:
            x = functional.conv1d(x, w[f"downs.{level}.2.conv.weight"], w[f"downs.{level}.2.conv.bias"])
    x = _residual(w, "mid_block2", _residual(w, "mid_block1", x, time), time)
    for level in range(2):
        x = torch.cat((x, kept.pop()), dim=1)
        x = _residual(w, f"ups.{level}.1", _residual(w, f"ups.{level}.0", x, time), time)
        x = functional.conv_transpose1d(x, w[f"ups.{level}.2.conv.weight"], w[f"ups.{level}.2.conv.bias"])
    x = _block(w, "final_conv.0", x)
    return functional.conv1d(x, w["final_conv.1.weight"], w["final_conv.1.bias"]).mT


def shares(steps: int) -> Tensor:
    """Return what is left of the signal after each diffusion step, by the noise that each step adds."""
    angle = (np.linspace(0, 1, steps + 1) + 0.008) / 1.008 * np.pi / 2
    betas = 1 - np.cos(angle[1:]) ** 2 / np.cos(angle[:-1]) ** 2
    return torch.from_numpy(np.cumprod(1 - np.minimum(betas, 0.999)))


def projected(x: Tensor, observed: Tensor) -> Tensor:
    """Return plans with what is known: (B, 6 D) observations at both ends of the last channels, zeros between."""
    x, (start, end) = x.clone(), observed.chunk(2, dim=1)
    first = x.shape[2] - start.shape[1]
    x[:, :, first:] = 0
    x[:, 0, first:], x[:, -1, first:] = start, end
    return x


def noised(plans: Tensor, observed: Tensor, steps: Tensor, noise: Tensor) -> Tensor:
    """Return the (B, T, C) plans with the noise of their steps that the network is trained on."""
    left = shares(200)[steps][:, None, None]
    return projected(left.sqrt() * plans + (1 - left).sqrt() * noise, observed)


def sampled(network: Callable[[Tensor, Tensor], Tensor], observed: Tensor, noise: Tensor, steps: int, n: int) -> Tensor:
    """Return the (B, T, C) plans that DDIM without further noise makes of noise."""
    left, grid = shares(steps), [*range(0, steps, steps // n)][:n]
    x = projected(noise, observed)
    for number in reversed(range(n)):
        now, then = left[grid[number]], left[grid[number - 1]] if number else torch.tensor(1.0)
        found = network(x, torch.full((len(x),), grid[number]))
        epsilon = ((1 / now).sqrt() * x - found) / (1 / now - 1).sqrt()
        x = projected(found * then.sqrt() + (1 - then).sqrt() * epsilon, observed)
    return x


def _terms(x: Tensor, text: Tensor, labels: Tensor) -> Iterable[tuple[Tensor, Tensor]]:
    """Yield the cross entropy of probabilities and the squared error, a sum over D, of each step; means of a batch."""
    for step in range(labels.shape[1]):
        said, label = x[:, step], labels[:, step]
        cosine = (said @ text.T) / (said.norm(dim=1)[:, None] * text.norm(dim=1))
        odds = (cosine / 0.1).exp() / (cosine / 0.1).exp().sum(dim=1, keepdim=True)
        entropy = odds.exp().sum(dim=1).log() - odds[torch.arange(len(x)), label]
        yield entropy.mean(), (said - text[label]).square().sum() / len(x)


def heads_loss(x: Tensor, text: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of the MLP and the Transformer."""
    return torch.stack([ce + 0.2 * error / text.shape[1] for ce, error in _terms(x, text, labels)]).sum()


def diffusion_loss(x: Tensor, text: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of PDPP*."""
    terms = [ce / ce.item() + 0.2 * error / error.item() for ce, error in _terms(x, text, labels)]
    return torch.stack(terms).sum()


class Adam:
    """Adam, with decay added to the gradient; without it AdamW's as well."""

    def __init__(self, weights: Weights, decay: float = 0.0) -> None:
        self.weights, self.decay, self.done = weights, decay, 0
        self.moments = {name: (torch.zeros_like(each), torch.zeros_like(each)) for name, each in weights.items()}

    def update(self, loss: Tensor, rate: float) -> None:
        """Move the weights by a loss."""
        self.done += 1
        gradients = torch.autograd.grad(loss, [*self.weights.values()])
        for (name, each), gradient in zip(self.weights.items(), gradients, strict=True):
            g = gradient + self.decay * each.detach()
            m, v = self.moments[name]
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
            self.moments[name] = m, v
            corrected = (v / (1 - 0.999**self.done)).sqrt() + 1e-8
            with torch.no_grad():
                each -= rate * m / (1 - 0.9**self.done) / corrected


def rate(update: int, total: int) -> float:
    """Return what the learning rate of PDPP* is multiplied by in an update, from 0."""
    warm, decay = total * 20 / 120, total * 30 / 120
    return update / warm if update <= warm else 0.5 ** ((update - warm) // decay)


def mlp_weights(size: int, horizon: int) -> Weights:
    """Return parameters of the MLP on features of so many channels."""
    shapes = _layer("linear1", 4 * size, 6 * size) | _layer("linear2", 2 * size, 4 * size)
    for number in range(horizon):
        shapes |= _layer(f"linears.{number}", size, 2 * size)
    return drawn(shapes)


def mlp(w: Weights, observed: Tensor, dropout: float = 0.0) -> Tensor:
    """Return the (B, T, D) vectors of (B, 6 D) observations; dropout draws by the global generator."""
    x = functional.dropout(_linear(w, "linear1", observed).clamp(min=0), dropout)
    x = functional.dropout(_linear(w, "linear2", x).clamp(min=0), dropout)
    return torch.stack([_linear(w, f"linears.{n}", x) for n in range(_horizon(w, "linears"))], dim=1)


def transformer_weights(size: int, horizon: int) -> Weights:
    """Return parameters of the Transformer on features of so many channels."""
    shapes = _layer("state_encoder.0", 4 * size, 6 * size) | _layer("state_encoder.2", 2 * size, 4 * size)
    for number in range(horizon):
        shapes |= _layer(f"state_linears.{number}", size, 2 * size)
    attention = "self_attention_layers.0"
    shapes |= {f"{attention}.in_proj_weight": (3 * size, size), f"{attention}.in_proj_bias": (3 * size,)}
    square = (f"{attention}.out_proj", "feed_forward_layers.0.0", "feed_forward_layers.0.2", "out_linear")
    for name in square:
        shapes |= _layer(name, size, size)
    return drawn(shapes | _layer("attention_norm_layers.0", size) | _layer("ffn_norm_layers.0", size))


def transformer(w: Weights, observed: Tensor) -> Tensor:
    """Return the (B, T, D) vectors of (B, 6 D) observations."""
    x = _linear(w, "state_encoder.0", observed).clamp(min=0)
    x = _linear(w, "state_encoder.2", x).clamp(min=0)
    x = torch.stack([_linear(w, f"state_linears.{n}", x) for n in range(_horizon(w, "state_linears"))], dim=1)
    horizon, size = x.shape[1:]
    angle = torch.arange(horizon)[:, None] * torch.exp(torch.arange(0, size, 2) * (-math.log(10_000) / size))
    places = torch.zeros(horizon, size)
    places[:, 0::2], places[:, 1::2] = angle.sin(), angle.cos()
    x = x + places
    attention = "self_attention_layers.0"
    query, key, value = (x @ w[f"{attention}.in_proj_weight"].T + w[f"{attention}.in_proj_bias"]).chunk(3, dim=2)
    seen = (query @ key.mT / math.sqrt(size)).softmax(dim=2) @ value
    x = _normalised(w, "attention_norm_layers.0", x + _linear(w, f"{attention}.out_proj", seen))
    inner = _linear(w, "feed_forward_layers.0.0", x).clamp(min=0)
    x = _normalised(w, "ffn_norm_layers.0", x + _linear(w, "feed_forward_layers.0.2", inner))
    return _linear(w, "out_linear", x)


def _normalised(w: Weights, name: str, x: Tensor) -> Tensor:
    centred = x - x.mean(dim=2, keepdim=True)
    x = centred / (centred.square().mean(dim=2, keepdim=True) + 1e-5).sqrt()
    return x * w[f"{name}.weight"] + w[f"{name}.bias"]


def _horizon(w: Weights, heads: str) -> int:
    return sum(name.startswith(f"{heads}.") for name in w) // 2
