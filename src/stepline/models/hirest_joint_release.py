"""Loads HiREST's released joint model, ``HiREST_BEST.pth`` of huggingface.co/j-min/HiREST-baseline, and the
CLIP4Caption with which its training starts, ``clip4caption_vit-b-32_model.bin`` in the same repository."""

import re
from pathlib import Path
from typing import Any

import torch

from stepline.backbones import checkpoint
from stepline.backbones.checkpoint import Tensors
from stepline.errors import StoreError
from stepline.models.hirest_joint import Joint
from stepline.models.hirest_joint_config import JointConfig

INSIDE = "clip4cap_model."
"""The prefix of CLIP4Caption's names in the joint model."""
TIED, TABLE = (
    f"{INSIDE}decoder.{name}.weight" for name in ("classifier.cls.predictions.decoder", "embeddings.word_embeddings")
)
"""The output weights and the word embeddings, which are tied."""
UNUSED = ("moment_conv.", f"{INSIDE}visual.pooler.", TIED)
"""Parameters that do not affect the outputs, or are stored twice."""
NAMES = (
    (r"clip_g_map_text", "query"),
    (r"clip_g_map", "frame"),
    (r"asr_enc_layer", "speech"),
    (r"temporal_embed", "time"),
    (r"mask_embed", "inside"),
    (r"boundary_embed", "boundary"),
    (r"(start|end|segment)_predictor\.0", r"\1"),
    (rf"{INSIDE}normalize_video\.visual_norm2d", "norm"),
    (rf"{INSIDE}visual\.embeddings\.word_embeddings", "encoder.project"),
    (rf"{INSIDE}visual\.embeddings", "encoder"),
    (rf"{INSIDE}visual\.encoder\.layer\.(\d+)\.attention\.(?:self|output)", r"encoder.layers.\1.attention"),
    (rf"{INSIDE}visual\.encoder\.layer\.(\d+)", r"encoder.layers.\1.feed_forward"),
    (rf"{INSIDE}decoder\.embeddings\.word_embeddings", "decoder.words"),
    (rf"{INSIDE}decoder\.embeddings", "decoder"),
    (rf"{INSIDE}decoder\.decoder\.layer\.(\d+)\.slf_attn\.(?:att|output)", r"decoder.layers.\1.among"),
    (rf"{INSIDE}decoder\.decoder\.layer\.(\d+)\.enc_attn\.(?:att|output)", r"decoder.layers.\1.attention"),
    (rf"{INSIDE}decoder\.decoder\.layer\.(\d+)", r"decoder.layers.\1.feed_forward"),
    (rf"{INSIDE}decoder\.classifier\.cls\.predictions\.transform\.dense", "decoder.transform"),
    (rf"{INSIDE}decoder\.classifier\.cls\.predictions\.transform\.LayerNorm", "decoder.transform_norm"),
    (rf"{INSIDE}decoder\.classifier\.cls\.predictions", "decoder"),
)
ENDS = (
    (r"attention\.dense\.", "attention.output."),
    (r"among\.dense\.", "among.output."),
    (r"intermediate\.dense\.", "inner."),
    (r"output\.dense\.", "outer."),
    (r"output\.LayerNorm\.", "norm."),
    (r"LayerNorm\.", "norm."),
    (r"position_embeddings\.", "positions."),
)
"""Ends of parameter names, and their replacements."""
TAKEN = ("norm.", "encoder.", "decoder.")
"""The parts of CLIP4Caption in the joint model."""
POSITIONS = "encoder.positions.weight"


def load_released(path: Path, **settings: Any) -> Joint:
    """Return the network of a released checkpoint, on the CPU, in evaluation mode.

    Its sizes come from the tensors. settings: other fields of ``JointConfig``. Raises StoreError if the file is damaged
    or contains another network. No code in the file is executed.
    """
    return network_of(checkpoint.state(path), path, **settings)


def network_of(tensors: Tensors, path: Path, **settings: Any) -> Joint:
    """Return the network of a released state dict; see ``load_released``. path: its file, for error messages."""
    try:
        config = _config(tensors, settings)
        with torch.device("meta"):
            network = Joint(config)
    except KeyError as error:
        raise StoreError(f"{path} is not HiREST's: {error} is not there; {checkpoint.looks_like(tensors)}") from None
    except (IndexError, RuntimeError, ValueError) as error:
        raise StoreError(f"{path} is not HiREST's ({error}); {checkpoint.looks_like(tensors)}") from None
    checkpoint.load(network, _ours(tensors, path), model="HiREST's joint model", path=path)
    return network.eval()


def load_clip4caption(path: Path, config: JointConfig | None = None) -> Joint:
    """Return the initial network of the release, with CLIP4Caption's encoder and decoder, on the CPU.

    Parameters that the checkpoint does not have are drawn from torch's global generator: the layers before the encoder,
    the heads, and the encoder's positions. The checkpoint has 512 positions, which are used only if ``config`` has the
    same number. Raises StoreError if the file is damaged or contains another network. No code in the file is executed.
    """
    network = Joint(config or JointConfig())
    tensors = {f"{INSIDE}{name}": value for name, value in checkpoint.state(path).items()}
    ours, drawn = _ours(tensors, path), network.state_dict()
    if POSITIONS in ours and len(ours[POSITIONS]) != network.config.positions:
        ours[POSITIONS] = drawn[POSITIONS]
    lacking = {name: value for name, value in drawn.items() if not name.startswith(TAKEN)}
    checkpoint.load(network, lacking | ours, model="CLIP4Caption", path=path)
    return network


def _config(tensors: Tensors, settings: dict[str, Any]) -> JointConfig:
    frame, speech = tensors["clip_g_map.weight"], tensors.get("asr_enc_layer.0.weight")
    positions = tensors[f"{INSIDE}visual.embeddings.position_embeddings.weight"]
    layers = re.compile(rf"{re.escape(INSIDE)}visual\.encoder\.layer\.(\d+)\.")
    return JointConfig(
        feature_dim=frame.shape[1],
        text_dim=tensors["clip_g_map_text.weight"].shape[1],
        asr_dim=JointConfig.asr_dim if speech is None else len(speech),
        embed=len(frame),
        hidden=positions.shape[1],
        layers=len({found[1] for name in tensors if (found := layers.match(name))}),
        feedforward=len(tensors[f"{INSIDE}visual.encoder.layer.0.intermediate.dense.weight"]),
        positions=len(positions),
        vocabulary=len(tensors[TABLE]),
        word_positions=len(tensors[f"{INSIDE}decoder.embeddings.position_embeddings.weight"]),
        audio=speech is not None,
        **settings,
    )


def _ours(tensors: Tensors, path: Path) -> Tensors:
    """Return the tensors with our names."""
    if TIED in tensors and TABLE in tensors and not torch.equal(tensors[TIED], tensors[TABLE]):
        raise StoreError(f"{path} is not HiREST's or CLIP4Caption's: its logits have other weights than its words")
    ours = {}
    for name, value in tensors.items():
        if name.startswith(UNUSED):
            continue
        for pattern, replacement in NAMES:
            renamed, n = re.subn(rf"^{pattern}\b", replacement, name)
            if n:
                break
        for pattern, replacement in ENDS:
            renamed = re.sub(rf"\b{pattern}", replacement, renamed)
        ours[renamed] = value
    return ours
