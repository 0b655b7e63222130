"""Loads checkpoints of the released PDVC (github.com/ttengwang/PDVC, ``model-best.pth``) into ``models.pdvc``."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from stepline.backbones import checkpoint
from stepline.backbones.checkpoint import Tensors
from stepline.errors import StoreError
from stepline.models.pdvc import Pdvc
from stepline.models.pdvc_config import PdvcConfig

CAPTIONS = "caption_head.0."
RNN, ATTENTION = f"{CAPTIONS}core.rnn.weight_", f"{CAPTIONS}core.deformable_att."
REFINED = "transformer.decoder.bbox_head."
"""A second copy of the box head, present if each decoder layer refines the boxes of the previous one."""
UNUSED = (
    REFINED,
    f"{CAPTIONS}core.alpha_net.bias",
    f"{ATTENTION}attention_weights.",
    f"{ATTENTION}output_proj.",
)
"""Parameters that do not affect the outputs, or are stored twice."""
NAMES = (
    (r"base_encoder\.pos_embed\.duration_embed_layer", "duration"),
    (r"base_encoder\.input_proj", "project"),
    (r"transformer\.level_embed", "level"),
    (r"transformer\.pos_trans_norm", "given.1"),
    (r"transformer\.pos_trans", "given.0"),
    (r"transformer\.reference_points", "reference"),
    (r"transformer\.encoder\.layers\.(\d+)\.self_attn", r"encoder.\1.attention"),
    (r"transformer\.encoder\.layers\.(\d+)\.norm1", r"encoder.\1.norms.0"),
    (r"transformer\.encoder\.layers\.(\d+)\.norm2", r"encoder.\1.norms.1"),
    (r"transformer\.decoder\.layers\.(\d+)\.self_attn", r"decoder.\1.among"),
    (r"transformer\.decoder\.layers\.(\d+)\.cross_attn", r"decoder.\1.attention"),
    (r"transformer\.decoder\.layers\.(\d+)\.norm2", r"decoder.\1.norms.0"),
    (r"transformer\.decoder\.layers\.(\d+)\.norm1", r"decoder.\1.norms.1"),
    (r"transformer\.decoder\.layers\.(\d+)\.norm3", r"decoder.\1.norms.2"),
    (r"transformer\.(encoder|decoder)\.layers\.(\d+)\.linear1", r"\1.\2.feed_forward.0"),
    (r"transformer\.(encoder|decoder)\.layers\.(\d+)\.linear2", r"\1.\2.feed_forward.3"),
    (r"query_embed", "queries"),
    (r"class_head", "scores"),
    (r"count_head", "counts"),
    (r"bbox_head\.(\d+)\.layers\.0", r"boxes.\1.0"),
    (r"bbox_head\.(\d+)\.layers\.1", r"boxes.\1.2"),
    (r"bbox_head\.(\d+)\.layers\.2", r"boxes.\1.4"),
    (r"caption_head\.0\.embed", "captions.embed"),
    (r"caption_head\.0\.logit", "captions.logits"),
    (r"caption_head\.0\.core\.deformable_att", "captions"),
    (r"caption_head\.0\.core\.ctx2att", "captions.compare"),
    (r"caption_head\.0\.core\.h2att", "captions.compare_state"),
    (r"caption_head\.0\.core\.alpha_net", "captions.weight"),
)
PARTS = {"sampling_offsets": "locations.offset", "attention_weights": "weight", "value_proj": "value"} | {
    "output_proj": "output"
}


def load_released(path: Path, **settings: Any) -> Pdvc:
    """Return the network of a released checkpoint, on the CPU, in evaluation mode.

    Its sizes come from the tensors. settings: other fields of ``PdvcConfig``, such as ``proposals``. Raises StoreError
    if the file is damaged or contains another network. No code in the file is executed.
    """
    return network_of(checkpoint.state(path, inside=("model",)), path, **settings)


def network_of(tensors: Tensors, path: Path, **settings: Any) -> Pdvc:
    """Return the network of a released state dict; see ``load_released``. path: its file, for error messages."""
    shared = re.compile(r"caption_head\.(\d+)\.")
    state = {}
    for name, value in tensors.items():
        first = shared.sub(CAPTIONS, name)
        if first not in tensors or not torch.equal(value, tensors[first]):
            raise StoreError(f"{path} is not PDVC with one caption head for all layers: {name} is another head's")
        if first == name and not name.startswith(UNUSED):
            state[name] = value
    try:
        with torch.device("meta"):
            network = Pdvc(_config(tensors, settings))
        ours = _ours(state)
    except KeyError as error:
        raise StoreError(f"{path} is not PDVC: {error} is not there; {checkpoint.looks_like(tensors)}") from None
    except (IndexError, RuntimeError, ValueError) as error:
        raise StoreError(f"{path} is not PDVC ({error}); {checkpoint.looks_like(tensors)}") from None
    refined = any(name.startswith(REFINED) for name in tensors)
    if network.config.proposals == "learned" and not refined:
        raise StoreError(f"{path} has no box refinement: use it with given segments, proposals='ground_truth'")
    checkpoint.load(network, ours, model="PDVC", path=path)
    return network.eval()


def _config(tensors: Mapping[str, torch.Tensor], settings: Mapping[str, Any]) -> PdvcConfig:
    levels, hidden = tensors["transformer.level_embed"].shape
    layers = [
        len({name.split(".")[3] for name in tensors if name.startswith(f"transformer.{part}.layers.")})
        for part in ("encoder", "decoder")
    ]
    return PdvcConfig(
        feature_dim=tensors["base_encoder.input_proj.0.0.weight"].shape[1],
        vocabulary=len(tensors[f"{CAPTIONS}embed.weight"]) - 1,
        queries=len(tensors["query_embed.weight"]),
        hidden=hidden,
        feedforward=len(tensors["transformer.encoder.layers.0.linear1.weight"]),
        encoder_layers=layers[0],
        decoder_layers=layers[1],
        levels=levels,
        points=len(tensors[f"{ATTENTION}sampling_offsets.bias"]) // levels,
        most_segments=len(tensors["count_head.0.bias"]) - 1,
        caption_hidden=tensors[f"{RNN}hh_l0"].shape[1],
        attention_hidden=len(tensors[f"{CAPTIONS}core.h2att.bias"]),
        **settings,
    )


def _ours(state: Tensors) -> Tensors:
    """Return the tensors with our names: the LSTM's weights split by input, and its two biases added."""
    state = dict(state)
    word_query, output = state.pop(f"{RNN}ih_l0"), state.pop(f"{RNN}hh_l0")
    width = output.shape[1]
    word, attended, query = word_query.tensor_split((width, (width + word_query.shape[1]) // 2), dim=1)
    state[f"{CAPTIONS}core.h2att.bias"] = state[f"{CAPTIONS}core.h2att.bias"] + state.pop(
        f"{CAPTIONS}core.ctx2att.bias"
    )
    ours = {
        "captions.of_word.weight": word,
        "captions.of_state.weight": torch.cat((attended, output), dim=1),
        "captions.of_query.weight": query,
    }
    for name, value in state.items():
        for pattern, replacement in NAMES:
            renamed, n = re.subn(rf"^{pattern}\b", replacement, name)
            if n:
                break
        ours[".".join(PARTS.get(part, part) for part in renamed.split("."))] = value
    return ours
