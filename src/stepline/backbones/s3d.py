"""S3D trained with MIL-NCE on HowTo100M (Miech et al., 2020), with its word-vector text tower.

Parameters are named as in the published checkpoint of antoine77340/S3D_HowTo100M.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from stepline.backbones import checkpoint
from stepline.errors import StoreError
from stepline.spec import ClipSpec, TextSpec

Kernel = tuple[int, int, int]
STEM: Kernel = (2, 4, 4)
POINT: Kernel = (1, 1, 1)
SPACE: Kernel = (1, 3, 3)
TIME: Kernel = (3, 1, 1)
STEM_STEPS = 8
"""The number of time steps, over all clips, that the first layers process at once."""
WORDS = 66_249
"""The number of words in the published dictionary."""


class Convolution(nn.Module):
    """A sequence of convolutions with BatchNorm and ReLU: (B, channels, T, H, W) -> (B, filters, T, H, W)."""

    def __init__(self, channels: int, filters: int, *kernels: Kernel) -> None:
        super().__init__()
        for number, kernel in enumerate(kernels, 1):
            padding = (0, 0, 0) if kernel == STEM else (kernel[0] // 2, kernel[1] // 2, kernel[2] // 2)
            self.add_module(f"conv{number}", nn.Conv3d(channels, filters, kernel, padding=padding, bias=False))
            self.add_module(f"bn{number}", nn.BatchNorm3d(filters))
            channels = filters

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for ``x``."""
        for name, layer in self.named_children():
            x = functional.relu_(layer(x)) if name.startswith("bn") else layer(x)
        return x

    def fold(self) -> None:
        """Fold each BatchNorm into its convolution for inference, in float64 so that each weight is rounded once."""
        layers = dict(self.double().named_children())
        for name, layer in layers.items():
            norm = layers[name.replace("conv", "bn")]
            if isinstance(layer, nn.Conv3d) and isinstance(norm, nn.BatchNorm3d):
                setattr(self, name, Folded(fuse_conv_bn_eval(layer, norm)))
                setattr(self, name.replace("conv", "bn"), nn.Identity())
        self.float()


class Folded(nn.Module):
    """A 3D convolution, computed in 2D if its kernel has two dimensions: faster with channels last."""

    def __init__(self, convolution: nn.Conv3d) -> None:
        super().__init__()
        self.kernel = convolution.kernel_size
        self.weight = convolution.weight
        self.bias = convolution.bias

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for ``x``, (B, C, T, H, W)."""
        batch, _, frames, height, width = x.shape
        if self.kernel in (POINT, SPACE):
            pictures = x.transpose(1, 2).flatten(0, 1)
            y = functional.conv2d(pictures, self.weight[:, :, 0], self.bias, padding=self.kernel[1] // 2)
            return y.reshape(batch, frames, -1, height, width).transpose(1, 2)
        if self.kernel == TIME:
            # Reshape with the channels last: otherwise the strides of a single clip do not define a layout.
            y = functional.conv2d(
                x.movedim(1, -1).flatten(2, 3).movedim(-1, 1), self.weight[..., 0], self.bias, padding=(1, 0)
            )
            return y.movedim(1, -1).reshape(batch, frames, height, width, -1).movedim(-1, 1)
        return functional.conv3d(x, self.weight, self.bias)


class Gating(nn.Module):
    """Multiplies each channel by a weight in (0, 1), computed from the means of all channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Multiply ``x``, (B, C, T, H, W), by the weights in place and return it."""
        weights: Tensor = torch.sigmoid(self.fc(x.movedim(1, -1).flatten(1, 3).mean(1)))
        return x.mul_(weights[:, :, None, None, None])


class Inception(nn.Module):
    """Four parallel gated branches: (B, channels, T, H, W) -> (B, b0 + b1[1] + b2[1] + b3, T, H, W)."""

    def __init__(self, channels: int, b0: int, b1: tuple[int, int], b2: tuple[int, int], b3: int) -> None:
        super().__init__()
        self.conv_b0 = Convolution(channels, b0, POINT)
        self.conv_b1_a = Convolution(channels, b1[0], POINT)
        self.conv_b1_b = Convolution(b1[0], b1[1], SPACE, TIME)
        self.conv_b2_a = Convolution(channels, b2[0], POINT)
        self.conv_b2_b = Convolution(b2[0], b2[1], SPACE, TIME)
        self.conv_b3_b = Convolution(channels, b3, POINT)
        self.gating_b0 = Gating(b0)
        self.gating_b1 = Gating(b1[1])
        self.gating_b2 = Gating(b2[1])
        self.gating_b3 = Gating(b3)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of all branches, concatenated along the channels."""
        branches = (
            self.gating_b0(self.conv_b0(x)),
            self.gating_b1(self.conv_b1_b(self.conv_b1_a(x))),
            self.gating_b2(self.conv_b2_b(self.conv_b2_a(x))),
            self.gating_b3(self.conv_b3_b(maxima(x, (3, 3, 3), (1, 1, 1)))),
        )
        return torch.cat(branches, dim=1)


class WordVectors(nn.Module):
    """The text tower: a layer on word vectors, a maximum over positions, and a second layer.

    words: rows of the table. embed, hidden, output: the width of word vectors, of the first layer and of the second.
    """

    def __init__(self, words: int = WORDS + 1, embed: int = 300, hidden: int = 2048, output: int = 512) -> None:
        super().__init__()
        self.word_embd = nn.Embedding(words, embed)
        self.fc1 = nn.Linear(embed, hidden)
        self.fc2 = nn.Linear(hidden, output)

    def forward(self, tokens: Tensor, *, masked: bool = False) -> Tensor:
        """Return the (B, D) embeddings of (B, positions) token ids; row 0 of the table counts like any other.

        masked: as in TAN, exclude positions with id 0, padding and unknown words, from the maximum, unless the text has
        no other positions.
        """
        vectors = functional.relu(self.fc1(self.word_embd(tokens)))
        if masked:
            hidden = (tokens == 0) & (tokens != 0).any(dim=1, keepdim=True)
            vectors = vectors.masked_fill(hidden[..., None], -torch.inf)
        embedding: Tensor = self.fc2(vectors.amax(dim=1))
        return embedding


class S3D(nn.Module):
    """The video network; ``text_module`` is its text tower.

    output: ``mixed_5c`` (1024), the mean of the last feature map, or ``video_embedding`` (512), which is compared with
    texts by the dot product. Outputs are L2-normalised only if ``normalise`` is set.
    """

    def __init__(self, output: str, *, normalise: bool = False) -> None:
        super().__init__()
        self.output = output
        self.normalise = normalise
        self.conv1 = Convolution(24, 64, STEM)
        self.conv_2b = Convolution(64, 64, POINT)
        self.conv_2c = Convolution(64, 192, SPACE, TIME)
        self.gating = Gating(192)
        self.mixed_3b = Inception(192, 64, (96, 128), (16, 32), 32)
        self.mixed_3c = Inception(256, 128, (128, 192), (32, 96), 64)
        self.mixed_4b = Inception(480, 192, (96, 208), (16, 48), 64)
        self.mixed_4c = Inception(512, 160, (112, 224), (24, 64), 64)
        self.mixed_4d = Inception(512, 128, (128, 256), (24, 64), 64)
        self.mixed_4e = Inception(512, 112, (144, 288), (32, 64), 64)
        self.mixed_4f = Inception(528, 256, (160, 320), (32, 128), 128)
        self.mixed_5b = Inception(832, 256, (160, 320), (32, 128), 128)
        self.mixed_5c = Inception(832, 384, (192, 384), (48, 128), 128)
        self.fc = nn.Linear(1024, 512)
        self.text_module = WordVectors()

    def forward(self, clips: Tensor) -> Tensor:
        """Return the (B, D) vectors of (B, 3, T, H, W) clips, RGB in [0, 1]; T, H and W must be even."""
        # The reference pads by (1, 2, 2) and drops the first value of each axis, which equals one zero less in front.
        x = self._stem(functional.pad(space_to_depth(clips), (1, 2, 1, 2, 0, 1)))
        x = self.gating(self.conv_2c(x))
        x = pool(x, (1, 3, 3), (1, 2, 2))
        x = self.mixed_3c(self.mixed_3b(x))
        x = pool(x, (3, 3, 3), (2, 2, 2))
        for mixed in (self.mixed_4b, self.mixed_4c, self.mixed_4d, self.mixed_4e, self.mixed_4f):
            x = mixed(x)
        x = pool(x, (2, 2, 2), (2, 2, 2))
        x = self.mixed_5c(self.mixed_5b(x)).mean((2, 3, 4))
        if self.output == "video_embedding":
            x = self.fc(x)
        return functional.normalize(x, dim=1) if self.normalise else x

    def _stem(self, x: Tensor) -> Tensor:
        """Map (B, 24, T + 1, H + 3, W + 3) to (B, 64, T, H/2, W/2), a few time steps at once.

        Allocating large blocks costs time on a CPU; the C library reuses freed blocks of up to 32 MiB.
        """
        count, at_once = x.shape[2] - 1, max(1, STEM_STEPS // len(x))
        parts = (self.conv1(x[:, :, first : first + at_once + 1]) for first in range(0, count, at_once))
        return torch.cat([self.conv_2b(pool(part, (1, 3, 3), (1, 2, 2))) for part in parts], dim=2)


def space_to_depth(clips: Tensor) -> Tensor:
    """Map (B, 3, T, H, W) clips to (B, 24, T/2, H/2, W/2); channel order: offset in time, row, column, then colour."""
    batch, _, frames, height, width = clips.shape
    x = clips.reshape(batch, 3, frames // 2, 2, height // 2, 2, width // 2, 2)
    return x.permute(0, 2, 4, 6, 3, 5, 7, 1).flatten(4).movedim(-1, 1)


def pool(x: Tensor, kernel: Kernel, stride: Kernel) -> Tensor:
    """Return the window maxima of ``x`` with zero padding as in TensorFlow's SAME.

    Windows are at most 1 longer than the stride, so there is no padding in front, and padding at the end only if the
    last window would be partial.
    """
    padding: list[int] = []
    for size, step, length in zip(reversed(kernel), reversed(stride), reversed(x.shape), strict=False):
        padding += [0, size - step if length % step else 0]
    return maxima(functional.pad(x, padding) if any(padding) else x, kernel, stride)


def maxima(x: Tensor, kernel: Kernel, stride: Kernel) -> Tensor:
    """Return the window maxima, one axis after another: faster than all axes at once with channels last.

    Windows are centred if the stride is 1 and start at their position otherwise. Values outside ``x`` are ignored.
    """
    for axis, (size, step) in enumerate(zip(kernel, stride, strict=True), 2):
        made = _every(step, x, axis, 0).clone()
        first = -(size // 2) if step == 1 else 0
        for offset in {*range(first, first + size)} - {0}:
            others, start = _every(step, x, axis, max(offset, 0)), max(-offset, 0)
            count = min(others.shape[axis], made.shape[axis] - start)
            place = made.narrow(axis, start, count)
            torch.maximum(place, others.narrow(axis, 0, count), out=place)
        x = made
    return x


def _every(step: int, x: Tensor, axis: int, first: int) -> Tensor:
    return x.movedim(axis, 0)[first::step].movedim(0, axis)


def folded(network: S3D) -> S3D:
    """Convert the network in place for extraction: BatchNorm folded, weights in channels-last layout."""
    network.eval().requires_grad_(False)
    for module in list(network.modules()):
        if isinstance(module, Convolution):
            module.fold()
    return network.to(memory_format=torch.channels_last_3d)  # type: ignore[call-overload,no-any-return]


def load(spec: ClipSpec, files: Mapping[str, Path]) -> S3D:
    """Return the network of ``spec`` with the published weights; raises the errors of ``checkpoint``."""
    return folded(_loaded(S3D(spec.output, normalise=spec.normalise), files))


def _loaded(network: S3D, files: Mapping[str, Path]) -> S3D:
    path = files["s3d_howto100m.pth"]
    checkpoint.load(network, checkpoint.state(path, inside=(), prefix=""), model="s3d", path=path)
    return network


class TextEncoder:
    """The text tower with its dictionary."""

    def __init__(self, spec: TextSpec, tower: WordVectors, words: Path) -> None:
        """Read the dictionary ``words``; raise StoreError if it does not have 66,249 words."""
        self.spec = spec
        self._tower, self._masked = tower.eval().requires_grad_(False), spec.output.startswith("masked")
        try:
            listed = np.load(words, mmap_mode="r", allow_pickle=False)
            if listed.shape != (WORDS,) or listed.dtype.kind != "U":
                raise ValueError(f"it does not have the {WORDS} words published with s3d_howto100m.pth")
            self._tokens = {word: number for number, word in enumerate(listed.tolist(), 1)}
        except Exception as error:
            raise StoreError(f"{words} is not a word dictionary: {error}") from error

    def tokens(self, text: str) -> list[int]:
        """Return the ids of the first words, padded with 0. Unknown words are dropped, or become 0 if masked."""
        words = [self._tokens.get(word, 0) for word in re.findall(r"[\w']+", text.lower())]
        kept = words if self._masked else [word for word in words if word]
        return (kept + [0] * self.spec.max_tokens)[: self.spec.max_tokens]

    def encode(self, tokens: list[int]) -> NDArray[np.float32]:
        """Return the (512,) embedding of one text's tokens."""
        with torch.inference_mode():
            vector: NDArray[np.float32] = self._tower(torch.tensor([tokens]), masked=self._masked)[0].numpy()
        return vector


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> TextEncoder:
    """Return the text tower with the published weights and words; raises the errors of ``checkpoint``."""
    return TextEncoder(spec, _loaded(S3D("video_embedding"), files).text_module, files["s3d_dict.npy"])
