"""Loads checkpoints of the released UMT (github.com/TencentARC/UMT), video encoder only, into networks of ``umt``."""

import re
from pathlib import Path
from typing import Any

import torch

from stepline.backbones import checkpoint
from stepline.backbones.checkpoint import Tensors
from stepline.errors import StoreError
from stepline.models.umt import Umt
from stepline.models.umt_config import UmtConfig

OTHERS = ("audio_enc.", "cross_enc.")
"""The name prefixes of parts that a network with only the video encoder does not have."""
PROJECT, WORDS = "video_enc.mapping.linear.weight", "query_gen.mapping.linear.weight"
TABLE = "video_enc.pos_enc.pe"
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


def load_released(path: Path, **settings: Any) -> Umt:
    """Return the network of a released checkpoint, on the CPU, in evaluation mode.

    Its sizes come from the tensors. settings: other fields of ``UmtConfig``; the released networks have ``unit=2``.
    Raises StoreError if the file is damaged or contains another network. No code in the file is executed.
    """
    return network_of(checkpoint.state(path, inside=("state_dict",)), path, **settings)


def network_of(tensors: Tensors, path: Path, **settings: Any) -> Umt:
    """Return the network of a released state dict; see ``load_released``. path: its file, for error messages."""
    if any(name.startswith(OTHERS) for name in tensors):
        raise StoreError(f"{path} is UMT with an audio encoder: use one with only the video encoder, or train one")
    try:
        with torch.device("meta"):
            network = Umt(_config(tensors, settings))
    except KeyError as error:
        raise StoreError(f"{path} is not UMT: {error} is not there; {checkpoint.looks_like(tensors)}") from None
    except (IndexError, RuntimeError, ValueError) as error:
        raise StoreError(f"{path} is not UMT ({error}); {checkpoint.looks_like(tensors)}") from None
    checkpoint.load(network, {our_name(name): value for name, value in tensors.items()}, model="UMT", path=path)
    return network.eval()


def _config(tensors: Tensors, settings: dict[str, Any]) -> UmtConfig:
    hidden, feature_dim = tensors[PROJECT].shape
    return UmtConfig(
        feature_dim=feature_dim,
        text_dim=tensors[WORDS].shape[1],
        hidden=hidden,
        feedforward=len(tensors["video_enc.encoder.ffn.mapping.0.weight"]),
        decoder_layers=len({name.split(".")[2] for name in tensors if name.startswith("query_dec.decoder.")}),
        positions=tensors[TABLE].shape[1],
        **settings,
    )


def our_name(name: str) -> str:
    """Return our name for a released tensor."""
    for pattern, replacement in NAMES:
        name = re.sub(pattern, replacement, name)
    return name
