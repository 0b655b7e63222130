"""The configuration of ActionFormer's network, training and inference; see ``stepline.models.actionformer``."""

from dataclasses import dataclass
from typing import Literal

from stepline.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ActionFormerConfig:
    """The network and its training targets. Defaults are the release's for THUMOS14, with EPIC-Kitchens' window.

    feature_dim: D of the features. Exactly one of classes (S, for ActionFormer) and text_dim (the size of step vectors,
    for ActionFormer-T) is given. max_length: the number of rows of a training sample; shorter videos are padded to it,
    also in inference. embed: the width of the backbone, a multiple of heads. pyramid_dim, head_dim, text_embed: the
    widths of the pyramid levels, of the heads, and of ActionFormer-T's common space. kernel, head_kernel: of the
    convolutions in the embedding and in the heads. arch: the numbers of embedding convolutions, of blocks in the first
    level, and of further levels with one block each. head_layers: the number of convolutions in a head, including the
    output. window: the odd number of rows that a row attends to, for all levels or for each; -1 or 1 means all rows.
    See ``legal_windows``. ranges: for each level, the minimum and maximum distance in rows from a point to the farther
    end of a segment it is trained on. pyramid: ``identity`` normalises the levels; ``fpn`` also adds each level to the
    finer one. relative: learned relative positions within a window. absolute: add sinusoids to the embedded rows.
    dropout, droppath: probabilities. With droppath 0, blocks have no channel scales, as in the release.

    candidates: the steps a point can predict in training and inference: ``all``, as in the release, or only those of
    its ``article``.
    centre_radius: the maximum distance of a segment's points from its centre, in strides; None means all points inside.
    smoothing: of the labels. loss_weight: of the offset loss; 0 or less balances it with the label loss. prior: the
    score of points at the start of training. init_norm: the initial normaliser of the losses.
    inside: the fraction of a segment that a crop must contain for the segment to be trained on. crop: a video of at
    most max_length rows is cropped to at least this fraction, a longer one to max_length; None crops only longer
    videos.
    """

    feature_dim: int
    classes: int | None = None
    text_dim: int | None = None
    max_length: int = 512
    embed: int = 512
    pyramid_dim: int = 512
    head_dim: int = 512
    text_embed: int = 512
    heads: int = 4
    kernel: int = 3
    head_kernel: int = 3
    arch: tuple[int, int, int] = (2, 2, 5)
    head_layers: int = 3
    window: int | tuple[int, ...] = 9
    ranges: tuple[tuple[float, float], ...] = ((0, 4), (4, 8), (8, 16), (16, 32), (32, 64), (64, 10000))
    pyramid: Literal["identity", "fpn"] = "identity"
    relative: bool = False
    absolute: bool = False
    dropout: float = 0.0
    droppath: float = 0.1
    candidates: Literal["all", "article"] = "all"
    centre_radius: float | None = 1.5
    smoothing: float = 0.0
    loss_weight: float = 1.0
    prior: float = 0.01
    init_norm: float = 100.0
    inside: float = 0.5
    crop: float | None = 0.9

    def __post_init__(self) -> None:
        if (self.classes is None) == (self.text_dim is None):
            raise ConfigError("ActionFormer has either classes or texts of steps: give one of classes and text_dim")
        if self.embed % self.heads:
            raise ConfigError(f"embed is {self.embed}, not a multiple of {self.heads} heads")
        if self.pyramid == "identity" and self.pyramid_dim != self.embed:
            raise ConfigError(f"pyramid_dim is {self.pyramid_dim}; without fpn it is embed, {self.embed}")
        if len(self.ranges) != self.levels:
            raise ConfigError(f"{len(self.ranges)} ranges are not one for each of {self.levels} levels")
        if isinstance(self.window, tuple) and len(self.window) != self.levels:
            raise ConfigError(f"{len(self.window)} windows are not one for each of {self.levels} levels")
        if self.max_length % self.strides[-1]:
            raise ConfigError(f"max_length {self.max_length} is not a multiple of the last stride, {self.strides[-1]}")
        for window, block in zip(self.windows, self.blocks, strict=True):
            if (window > 1 and window % 2 == 0) or self.max_length % block:
                fit = ", ".join(map(str, legal_windows(self.max_length, self.levels)))
                raise ConfigError(
                    f"window {window} does not divide max_length {self.max_length}: use {fit} or -1, for all rows"
                )

    @property
    def levels(self) -> int:
        """The number of levels of the pyramid."""
        return self.arch[2] + 1

    @property
    def strides(self) -> tuple[int, ...]:
        """The number of rows between two points, for each level."""
        return tuple(2**level for level in range(self.levels))

    @property
    def windows(self) -> tuple[int, ...]:
        """The window of each level."""
        return self.window if isinstance(self.window, tuple) else (self.window,) * self.levels

    @property
    def blocks(self) -> tuple[int, ...]:
        """For each level, the released attention needs a multiple of this number of rows."""
        return tuple(map(_block, self.windows, self.strides))

    def padded(self, length: int) -> int:
        """Return the number of rows to which a video of ``length`` rows is padded in inference, as in the release."""
        block = max(self.blocks)
        return self.max_length if length <= self.max_length else -(-length // block) * block


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How segments are decoded from the predictions of points; the defaults are the release's for THUMOS14.

    least_score, most_points: per level, keep at most ``most_points`` pairs of point and step, those with the highest
    scores above ``least_score``. least_rows: drop segments that are not longer. nms: the suppression of segments that
    overlap better ones: ``soft`` multiplies their score by exp(-IoU^2 / sigma) and drops them below ``min_score``;
    ``hard`` drops them from an IoU of ``iou``; ``none``. per_step: suppress only among segments of the same step.
    Otherwise suppression is across steps, and each segment becomes the mean of the segments that overlap it by an IoU
    of at least ``voting``; 0 disables voting. most: the number of segments kept.
    """

    least_score: float = 0.001
    most_points: int = 2000
    least_rows: float = 0.05
    nms: Literal["soft", "hard", "none"] = "soft"
    per_step: bool = True
    iou: float = 0.1
    sigma: float = 0.5
    min_score: float = 0.001
    most: int = 200
    voting: float = 0.7


def legal_windows(max_length: int, levels: int) -> tuple[int, ...]:
    """Return the windows that the released attention supports at all levels for ``max_length`` rows.

    At stride s, a window w needs a multiple of 2 s (w // 2) rows: 512 rows and 6 levels allow 3, 5, 9 and 17.
    Attention to all rows is always possible.
    """
    stride = 2 ** (levels - 1)
    return tuple(window for window in range(3, max_length // stride + 2, 2) if max_length % _block(window, stride) == 0)


def _block(window: int, stride: int) -> int:
    return stride * (window // 2) * 2 if window > 1 else stride
