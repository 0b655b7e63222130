"""TAN against the network, the loss and the word tower of github.com/TengdaHan/TemporalAlignNet."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from stepline.backbones.s3d import WordVectors
from stepline.models.tan import Aligned, Tan, contrastive_loss, said_at, sines
from stepline.models.tan_config import TanConfig
from tests.parity import Golden, Output, weights

INPUTS = {"recipe_json", "video", "text", "video_padding", "text_padding", "start", "end", "ids", "attention_mask"}
TRAINED = "e2d3"
"""The configuration whose loss and gradients are in the golden file."""
UNUSED = ("mlp.", "bert.")
"""A layer that does not affect the outputs, and the text tower, whose outputs are an input here."""
INTERPOLATED = re.compile(r"interp(\d+)")


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
        video_positions="sine" if torch.allclose(table, sines(positions, width)) else "learned",
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
