"""Loads checkpoints of the released TAN (github.com/TengdaHan/TemporalAlignNet) into networks of ``models.tan``."""

import re
from pathlib import Path

import torch

from stepline.backbones import checkpoint
from stepline.backbones.checkpoint import Tensors
from stepline.errors import StoreError
from stepline.models.tan import Tan, sines
from stepline.models.tan_config import TanConfig

ONLINE = "online."
"""The name prefix in checkpoints of the second training stage, which also contain a moving average."""
UNUSED = ("mlp.*", "bert.*")
"""A layer that does not affect the outputs, and the text tower, whose outputs are an input here."""


def load_released(path: Path, *, text_positions: bool = False, heads: int = 8) -> Tan:
    """Return the network of a released checkpoint, on the CPU, in evaluation mode.

    Its sizes come from the tensors. text_positions, heads: see ``TanConfig``. From the second training stage, the
    trained network is loaded, not the moving average. Raises StoreError if the file is damaged or contains another
    network. No code in the file is executed.
    """
    tensors = checkpoint.state(path, inside=("state_dict",))
    online = {name.removeprefix(ONLINE): each for name, each in tensors.items() if name.startswith(ONLINE)}
    return network_of(online or tensors, path, text_positions=text_positions, heads=heads)


def network_of(tensors: Tensors, path: Path, *, text_positions: bool = False, heads: int = 8) -> Tan:
    """Return the network of a released state dict; see ``load_released``. path: its file, for error messages."""
    try:
        config = _config(tensors, text_positions, heads)
        with torch.device("meta"):
            network = Tan(config)
    except KeyError as error:
        raise StoreError(f"{path} is not TAN: {error} is not there; {checkpoint.looks_like(tensors)}") from None
    except (IndexError, ValueError) as error:
        raise StoreError(f"{path} is not TAN ({error}); {checkpoint.looks_like(tensors)}") from None
    checkpoint.load(network, tensors, model="TAN", path=path, ignore=UNUSED)
    return network.eval()


def _config(tensors: Tensors, text_positions: bool, heads: int) -> TanConfig:
    table = tensors["temporal_pos_embed"]
    positions, width = table.shape
    video_layers, joint_layers = (
        len({found[1] for name in tensors if (found := re.match(rf"{part}\.resblocks\.(\d+)\.", name))})
        for part in ("video_temporal_encoder", "joint_temporal_encoder")
    )
    return TanConfig(
        feature_dim=tensors["video_pre_proj.weight"].shape[1],
        text_dim=tensors["text_pre_proj.weight"].shape[1],
        width=width,
        heads=heads,
        joint_layers=joint_layers,
        positions=positions,
        video_layers=video_layers,
        video_positions="sine" if torch.allclose(table.float(), sines(positions, width)) else "learned",
        text_positions=text_positions,
        alignability="binary_head.weight" in tensors,
    )
