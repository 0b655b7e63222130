"""TAN against the network, the loss and the word tower of github.com/TengdaHan/TemporalAlignNet.

``Tan`` adds to ``JointEncoder`` what step grounding does not need.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepline.backbones.s3d import WordVectors
from stepline.models.step_grounding_config import StepGroundingConfig
from stepline.models.tan import TEMPERATURE, Encoder, JointEncoder, interpolated
from tests.parity import Golden, Output, weights

INPUTS = {"recipe_json", "video", "text", "video_padding", "text_padding", "start", "end", "ids", "attention_mask"}
TRAINED = "e2d3"
"""The configuration whose loss and gradients are in the golden file."""
UNUSED = ("mlp.", "bert.")
"""A layer that does not affect the outputs, and the text tower, whose outputs are an input here."""
INTERPOLATED = re.compile(r"interp(\d+)")


@dataclass(frozen=True, kw_only=True)
class TanConfig(StepGroundingConfig):
    """TAN, whose defaults are those of the release.

    video_layers: the number of blocks in the video encoder. sine: whether the table of the video's positions has sines
    instead of learned values. text_positions: whether texts have positions in the joint encoder. alignability: whether
    a head predicts which texts can be aligned.
    """

    positions: int = 1024
    video_layers: int = 6
    sine: bool = False
    text_positions: bool = False
    alignability: bool = False


class Aligned(NamedTuple):
    """TAN's outputs for A videos and the texts of B videos, which are the same videos.

    dual, joint: (A, stages, T, B, N) cosines of rows with texts. In ``joint``, the texts of video b are encoded with
    video b. dual_alignability, joint_alignability: (B, N, 1) and (B, stages, N, 1) logits; None without the head.
    dual_video, dual_text: (A, stages, T, C) and (B, N, C) unit vectors. joint_video, joint_text: the outputs of the
    joint encoder, (A, stages, T, C) and (B, stages, N, C).
    """

    dual: Tensor
    joint: Tensor
    dual_alignability: Tensor | None
    joint_alignability: Tensor | None
    dual_video: Tensor
    dual_text: Tensor
    joint_video: Tensor
    joint_text: Tensor


class Tan(JointEncoder):
    """The network: separate encoders of video and texts (dual), and a joint encoder of both."""

    config: TanConfig

    def __init__(self, config: TanConfig) -> None:
        super().__init__(config)
        self.video_temporal_encoder = Encoder(config, config.video_layers)
        self.ln_video_post_enc = nn.LayerNorm(config.width)
        if config.sine:
            del self.temporal_pos_embed
            self.register_buffer("temporal_pos_embed", sines(config.positions, config.width))
        if config.alignability:
            self.binary_head = nn.Linear(config.width, 1)

    def forward(
        self,
        features: Tensor,
        texts: Tensor,
        video_padding: Tensor | None = None,
        text_padding: Tensor | None = None,
        *,
        start: int = 0,
        interpolate_from: int | None = None,
        text_interpolate_from: int | None = None,
    ) -> Aligned:
        """Return the outputs for (A, T, D) features and the (A, N, E) texts of the same videos.

        video_padding, text_padding: as in ``joint``. start: the position of the first row; the release draws it from
        0..T // 2 - 1, for each branch. interpolate_from, text_interpolate_from: see ``of_length``.
        """
        video = self.video_rows(
            features, of_length(self.temporal_pos_embed, features.shape[1], start=start, source=interpolate_from)
        )
        text = self.text_rows(texts)
        stages = self.video_temporal_encoder(video, video_padding)
        stages[-1] = self.ln_video_post_enc(stages[-1])
        dual_video = functional.normalize(torch.stack(stages, dim=1), dim=-1)
        dual_text = functional.normalize(text, dim=-1)
        placed = text
        if self.config.text_positions:
            table = of_length(self.text_temporal_pos_embed, texts.shape[1], source=text_interpolate_from)
            placed = text + self.ln_position_init(table)
        joint_video, joint_text = (
            torch.stack(each, dim=1) for each in self.joint(video, placed, video_padding, text_padding)
        )
        joint = torch.einsum(
            "astc,bskc->astbk", functional.normalize(joint_video, dim=-1), functional.normalize(joint_text, dim=-1)
        )
        head = self.binary_head if self.config.alignability else None
        return Aligned(
            torch.einsum("astc,bkc->astbk", dual_video, dual_text),
            joint,
            None if head is None else head(text),
            None if head is None else head(joint_text),
            dual_video,
            dual_text,
            joint_video,
            joint_text,
        )


def of_length(table: Tensor, length: int, *, start: int = 0, source: int | None = None) -> Tensor:
    """Return (length, C) positions: the rows from ``start`` on, or the first ``source`` ones, interpolated."""
    return table[start : start + length] if source is None else interpolated(table[:source], length)


def sines(positions: int, width: int) -> Tensor:
    """Return the (positions, width) table of sines and cosines; the positions span one turn."""
    angle = torch.arange(positions) / (positions - 1 + 1e-6) * 2 * math.pi
    angles = angle[:, None] / 10_000 ** (torch.arange(width, dtype=torch.float32) // 2 * 2 / width)
    return torch.stack((angles[:, 0::2].sin(), angles[:, 1::2].cos()), dim=2).flatten(1)


def said_at(start_s: Tensor, end_s: Tensor, length: int) -> Tensor:
    """Return the (B, N, length) mask of the rows t of sentences, start <= t < end, for (B, N) times in seconds."""
    t = torch.arange(length, device=start_s.device)
    return (start_s[..., None] <= t) & (t < end_s[..., None])


def contrastive_loss(cosines: Tensor, said: Tensor, text_padding: Tensor) -> Tensor:
    """Return the loss of TAN's first stage for the (B, stages, T, B, N) cosines of a branch.

    said: (B, N, T), from ``said_at``. text_padding: (B, N). It is the mean of two softmax losses: each row with a text
    against all texts of the batch, and each text with a row against all rows, including padding. The loss of both
    branches is the mean of their losses.
    """
    n, stages, rows = cosines.shape[:3]
    kept = ~text_padding.flatten()
    positive = torch.zeros(n, rows, *said.shape[:2], dtype=torch.bool, device=said.device)
    every = torch.arange(n)
    positive[every, :, every] = said.transpose(1, 2)
    positive = positive.flatten(2)[..., kept].flatten(0, 1)
    logits = (cosines / TEMPERATURE).flatten(3)[..., kept].transpose(0, 1).reshape(stages, n * rows, -1)
    right = logits.masked_fill(~positive, -6e4)
    of_rows, of_texts = (
        (logits.logsumexp(dim) - right.logsumexp(dim))[:, positive.any(dim - 1)].mean() for dim in (2, 1)
    )
    return (of_rows + of_texts) / 2


def outputs(manifest: Any, golden: Golden, folder: Path) -> Iterator[Output]:
    """Yield every output of every configuration, of the loss and of the word tower."""
    configs = manifest["configs"]
    parts = {name.split("/")[0] for name in golden}
    for part in sorted(parts - {"in", "loss", "words", "recipe_json"}):
        base = max((name for name in configs if f"{part}_".startswith(f"{name}_")), key=len)
        network = _network(configs[base])
        found = INTERPOLATED.search(part)
        yield from _compared(part, _said(network, golden, part, int(found[1]) if found else None), golden)
    if "loss" in parts:
        yield from _compared("loss", _loss(_network(configs[TRAINED]), golden), golden)
    if "words" in parts:
        yield from _compared("words", _words(configs["word_model"], golden), golden)


def network_of(tensors: Mapping[str, Tensor], *, text_positions: bool = False, heads: int = 8) -> Tan:
    """Return the network of a released state dict. text_positions, heads: see ``TanConfig``."""
    table = tensors["temporal_pos_embed"]
    positions, width = table.shape
    video_layers, joint_layers = (
        len({found[1] for name in tensors if (found := re.match(rf"{part}\.resblocks\.(\d+)\.", name))})
        for part in ("video_temporal_encoder", "joint_temporal_encoder")
    )
    config = TanConfig(
        feature_dim=tensors["video_pre_proj.weight"].shape[1],
        text_dim=tensors["text_pre_proj.weight"].shape[1],
        width=width,
        heads=heads,
        joint_layers=joint_layers,
        positions=positions,
        video_layers=video_layers,
        sine=torch.allclose(table, sines(positions, width)),
        text_positions=text_positions,
        alignability="binary_head.weight" in tensors,
    )
    with torch.device("meta"):
        network = Tan(config)
    used = {name: value for name, value in tensors.items() if not name.startswith(UNUSED)}
    network.load_state_dict(used, assign=True)
    return network.eval()


def _tensors(config: Any) -> dict[str, Tensor]:
    filled = weights(config["keys"], config["digest_sha256"])
    return {name: torch.from_numpy(array) for name, array in filled.items()}


def _network(config: Any) -> Tan:
    args, tensors = config["args"], _tensors(config)
    if args.get("pos_enc") == "sine":
        tensors["temporal_pos_embed"] = sines(args["positions"], args["width"])
    text_positions = bool(args.get("use_text_pos_enc"))
    return network_of(tensors, text_positions=text_positions, heads=args["heads"])


def _inputs(golden: Golden, of: str) -> list[Tensor]:
    names = ("video", "text", "video_padding", "text_padding")
    return [torch.from_numpy(golden[f"{of}/{name}"]) for name in names if f"{of}/{name}" in golden]


@torch.inference_mode()
def _said(network: Tan, golden: Golden, part: str, source: int | None) -> dict[str, Tensor]:
    """Return a network's outputs for the batch and for the single video, under their names in the golden file."""
    own = part.partition("_")[0]
    said = network(*_inputs(golden, f"in/{own}" if f"in/{own}/video" in golden else "in"), interpolate_from=source)
    named = _by_name(said) | {"position_table": network.temporal_pos_embed}
    if any(name.startswith(f"{part}/one/") for name in golden):
        one = _inputs(golden, "in/one")
        found = {"": network(*one)}
        for name in golden:
            if name.startswith(f"{part}/one/") and (asked := INTERPOLATED.search(name)):
                found[f"_{asked[0]}"] = network(*one, interpolate_from=int(asked[1]))
        for ending, alone in found.items():
            named[f"one/sim_joint{ending}"], named[f"one/sim_dual{ending}"] = (
                alone.joint[:, :, :, 0],
                alone.dual[:, :, :, 0],
            )
            named[f"one/alignability_dual{ending}"] = alone.dual_alignability
            named[f"one/alignability_joint{ending}"] = alone.joint_alignability
    return named


def _by_name(said: Aligned) -> dict[str, Any]:
    return {
        "logits_dual": said.dual,
        "logits_joint": said.joint,
        "dual_logits_alignability": said.dual_alignability,
        "joint_logits_alignability": said.joint_alignability,
        "dual_feature_video": said.dual_video,
        "dual_feature_text": said.dual_text,
        "joint_video": said.joint_video,
        "joint_text": said.joint_text,
        "joint_video_last": said.joint_video[:, -1],
        "joint_text_last": said.joint_text[:, -1],
    }


def _loss(network: Tan, golden: Golden) -> dict[str, Tensor]:
    """Return the targets, the losses of both branches and their mean, and its gradients."""
    given = _inputs(golden, "in")
    text_padding = given[-1]
    start_s, end_s = (torch.from_numpy(golden[f"in/{name}"]) for name in ("start", "end"))
    said = said_at(start_s, end_s, given[0].shape[1])
    aligned = network(*given)
    losses = [contrastive_loss(each, said, text_padding) for each in (aligned.dual, aligned.joint)]
    total = (losses[0] + losses[1]) / 2
    total.backward()
    gradients = {f"grad/{name}": each.grad for name, each in network.named_parameters() if each.grad is not None}
    return {"text_time_mask": said, "dual_joint_total": torch.stack([*losses, total]).detach(), **gradients}


@torch.inference_mode()
def _words(config: Any, golden: Golden) -> dict[str, Tensor]:
    args = config["args"]
    tower = WordVectors(args["vocab"], args["embed"], args["hidden"], args["out"])
    tower.load_state_dict(_tensors(config))
    ids = torch.from_numpy(golden["words/in/ids"])
    vectors = functional.relu(tower.fc1(tower.word_embd(ids)))
    return {
        "pooled_masked": tower(ids, masked=True),
        "pooled_unmasked": tower(ids),
        "last_hidden_state": tower.fc2(vectors),
    }


def _compared(part: str, ours: Mapping[str, Tensor], golden: Golden) -> Iterator[Output]:
    """Yield the outputs of a part that the golden file has."""
    for name, reference in golden.items():
        if name.startswith(f"{part}/") and name.rpartition("/")[2] not in INPUTS:
            yield Output(name, ours[name.removeprefix(f"{part}/")].numpy(), reference)
