"""UMT with only its video encoder against the network, losses and decoding of github.com/TencentARC/UMT."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stepline.models.umt import Queries, Umt
from stepline.models.umt_config import UmtConfig
from stepline.models.umt_moments import moments, targets
from tests.parity import Array, Golden, Output, weights

INPUTS = ("recipe_json", "video", "query", "saliency", "boundary", "index", "center", "window", "offset")
"""The last parts of names of inputs. Some outputs end with them too, so ``outputs`` skips only ``GIVEN``."""
GIVEN = re.compile(r"recipe_json|single/index|(decode/)?in/.*")
DECODED = re.compile(r"decode/unit(\d+)_kernel(\d+)_max(\d+)")
"""The name of a decoding output, with its options."""
NAMES = (
    (r"(video_enc|query_gen)\.mapping\.linear\.", r"\1.project."),
    (r"query_gen\.mapping\.norm\.", "query_gen.norm."),
    (r"video_enc\.pos_enc\.pe$", "video_enc.positions.table"),
    (r"query_dec\.q_pos_enc\.pe$", "query_dec.query_positions.table"),
    (r"query_dec\.k_pos_enc\.pe$", "query_dec.key_positions.table"),
    (r"query_dec\.decoder\.", "query_dec.layers."),
    (r"query_gen\.encoder\.", "query_gen.attention."),
    (r"\.encoder\.", "."),
    (r"\.att1\.", ".among."),
    (r"\.att2?\.", ".attention."),
    (r"\.ffn\.mapping\.", ".feed_forward."),
    (r"\.norm1\.", ".norms.0."),
    (r"\.norm2\.", ".norms.1."),
    (r"\.norm3\.", ".norms.2."),
    (r"\.q\.", ".query."),
    (r"\.k\.", ".key."),
    (r"\.v\.", ".value."),
    (r"\.m\.", ".output."),
    (r"^pred_head\.[01]\.(saliency|center|window|offset)_pred\.linear\.", r"\1."),
    (r"^video_enc\.", "video."),
    (r"^query_gen\.", "query."),
    (r"^query_dec\.", "decoder."),
)
"""Replacements from released names to ours, applied in order."""


def outputs(manifest: Any, golden: Golden, folder: Path) -> Iterator[Output]:
    """Yield the outputs of a padded batch, of one of its videos alone, of other batches, and of decoding only."""
    (config,) = manifest["configs"].values()
    filled = weights(config["keys"], config["digest_sha256"])
    network = network_of({key: torch.from_numpy(array) for key, array in filled.items()})
    units = {int(unit) for name in golden for unit in re.findall(r"_unit(\d+)", name)}
    keys = sorted({key for name in golden for key in re.findall(r"^grad_unit\d+/(.*)", name)})
    batch = _case(network, golden, "in/")
    cases = {"batch/": batch, "": batch}
    for other in {name.split("/")[1] for name in golden if re.fullmatch("in/.*/.*", name)}:
        cases[f"{other}/"] = _case(network, golden, f"in/{other}/")
    if "single/index" in golden:
        cases["single/"] = batch.alone(int(golden["single/index"][0]))
    ours: dict[str, Array] = {}
    for prefix, case in cases.items():
        found = case.outputs(units, keys)
        ours |= {f"{prefix}{name}": each.detach().numpy() for name, each in found.items()}
    for name in golden:
        if decoded := DECODED.fullmatch(name):
            center, window, offset = (
                torch.from_numpy(golden[f"decode/in/{part}"]) for part in ("center", "window", "offset")
            )
            unit, kernel, most = map(int, decoded.groups())
            chosen = replace(network.config, unit=unit, kernel=kernel, moments=most)
            ours[name] = moments(center, window, offset, chosen).numpy()
    for name, reference in golden.items():
        if not GIVEN.fullmatch(name):
            yield Output(name, *_comparable(name, ours[name], reference))


def network_of(tensors: Mapping[str, Tensor]) -> Umt:
    """Return the network of a released state dict."""
    hidden, feature_dim = tensors["video_enc.mapping.linear.weight"].shape
    config = UmtConfig(
        feature_dim=feature_dim,
        text_dim=tensors["query_gen.mapping.linear.weight"].shape[1],
        hidden=hidden,
        feedforward=len(tensors["video_enc.encoder.ffn.mapping.0.weight"]),
        decoder_layers=len({name.split(".")[2] for name in tensors if name.startswith("query_dec.decoder.")}),
        positions=tensors["video_enc.pos_enc.pe"].shape[1],
    )
    with torch.device("meta"):
        network = Umt(config)
    network.load_state_dict({our_name(name): value for name, value in tensors.items()}, assign=True)
    return network.eval()


def our_name(name: str) -> str:
    """Return our name for a released tensor."""
    for pattern, replacement in NAMES:
        name = re.sub(pattern, replacement, name)
    return name


@dataclass(frozen=True)
class _Case:
    """Golden videos with their queries, and a network's outputs for them."""

    network: Umt
    queries: Queries
    saliency: Tensor
    boundary: Tensor

    def alone(self, number: int) -> "_Case":
        """Return one of the videos without padding."""
        rows, there, words, said = (each[[number]] for each in self.queries)
        queries = Queries(rows[:, there[0]], there[:, there[0]], words[:, said[0]], said[:, said[0]])
        return _Case(self.network, queries, self.saliency[[number]][:, there[0]], self.boundary[[number]])

    def outputs(self, units: set[int], keys: list[str]) -> dict[str, Tensor]:
        """Return the outputs by name. keys: the weights whose gradients are wanted."""
        network, there = self.network, self.queries.there
        memory = network.video(self.queries.rows, there)
        generated = network.query(memory, self.queries.words, self.queries.said)
        layers = network.decoder.each(generated, memory, network.seen(there))
        scores = network(self.queries)
        found = {
            "mask": there.long(),
            "video_enc": memory,
            "query_gen": generated,
            "saliency_logit": scores.saliency,
            "center_logit": scores.center,
            "window": scores.window,
            "offset": scores.offset,
            "saliency": scores.saliency.sigmoid() * there,
            **{f"dec{number}": network.decoder.norm(rows) for number, rows in enumerate(layers)},
        }
        parameters = dict(network.named_parameters())
        for unit in units:
            config = replace(network.config, unit=unit)
            of_unit = targets([each[each[:, 0] != -1] for each in self.boundary], there.shape[1], config)
            losses = network.losses(scores, there, self.saliency, of_unit)
            total = torch.stack([*losses.values()]).sum()
            learned = [parameters[our_name(key)] for key in keys]
            gradients = torch.autograd.grad(total, learned, retain_graph=True) if keys else ()
            about = {
                "center": of_unit.center,
                "window": of_unit.window,
                "offset": of_unit.offset,
                "weight": of_unit.weight,
                "avg_factor": torch.tensor([of_unit.moments]),
            }
            found |= {
                f"moments_unit{unit}": moments(scores.center.sigmoid() * there, scores.window, scores.offset, config),
                f"loss_unit{unit}": torch.stack([*losses.values(), total]),
                f"boundary_tensor_after_one_loss_call_unit{unit}": self.boundary - torch.tensor([0, unit]),
                **{f"targets_unit{unit}/{name}": each for name, each in about.items()},
                **{f"grad_unit{unit}/{key}": each for key, each in zip(keys, gradients, strict=True)},
            }
        return found


def _case(network: Umt, golden: Golden, folder: str) -> _Case:
    """Return the videos in a folder of the golden file; the masks of videos and words follow from their padding."""
    rows, words, saliency, boundary = (
        torch.from_numpy(golden[f"{folder}{name}"]) for name in ("video", "query", "saliency", "boundary")
    )
    queries = Queries(rows, saliency >= 0, words.nan_to_num(posinf=0), words[..., 0].isfinite())
    return _Case(network, queries, saliency, boundary)


def _comparable(name: str, ours: Array, reference: Array) -> tuple[Array, Array]:
    """Return losses relative to the reference's, and moments with the times of padding, whose score is 0, set to 0."""
    if "loss_unit" in name:
        return ours / reference, np.ones_like(reference)
    if "moments" in name:
        return ours * (ours[..., 2:] > 0), reference * (reference[..., 2:] > 0)
    return ours, reference
