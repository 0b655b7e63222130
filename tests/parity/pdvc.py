"""PDVC against the network, the criterion and the decoding of github.com/ttengwang/PDVC."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stepline.models.pdvc import Pdvc
from stepline.models.pdvc_config import PdvcConfig
from stepline.models.pdvc_loss import Matched, as_boxes, as_segments, match, overlaps
from tests.parity import TOLERANCE, Array, Golden, Output, recipe, same_input, weight, weights

VARIANTS: dict[str, dict[str, Any]] = {
    "gpu": {},
    "cpu": {"transformer_padding": "border"},
    "zeros": {"caption_padding": "zeros"},
    "gpu_gt_proposals": {"proposals": "ground_truth"},
}
"""The settings of each variant of the released code that differ from our defaults."""
FACTOR = 5
"""The largest allowed error, as a multiple of float32 noise: the release's in the manifest, or ours if it is larger."""
RUNS = 3
"""The runs in float32 that measure our noise."""
INPUTS = {"recipe_json", "features", "duration_s", "segments_s", "caption_ids", "video_mask", "margin", "stable_words"}
ARGS = {
    "nheads": "heads",
    "max_caption_len": "words",
    "set_cost_class": "cost_score",
    "set_cost_giou": "cost_giou",
    "focal_alpha": "focal_alpha",
    "focal_gamma": "focal_gamma",
    "cls_loss_coef": "score_weight",
    "giou_loss_coef": "giou_weight",
    "count_loss_coef": "count_weight",
    "caption_loss_coef": "caption_weight",
}
"""Released option -> field of ``PdvcConfig``; the other fields follow from the weights."""
CAPTIONS = "caption_head.0."
RNN, ATTENTION = f"{CAPTIONS}core.rnn.weight_", f"{CAPTIONS}core.deformable_att."
UNUSED = re.compile(
    r"transformer\.decoder\.bbox_head\.|caption_head\.[1-9]|"
    r"caption_head\.0\.core\.(alpha_net\.bias|deformable_att\.(attention_weights|output_proj)\.)"
)
"""Parameters that do not affect the outputs, or are stored twice: all layers share a caption head."""
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
LOSSES = {"score": "loss_ce", "giou": "loss_giou", "count": "loss_counter", "caption": "loss_caption"}


def outputs(manifest: Any, golden: Golden, folder: Path) -> Iterator[Output]:
    """Yield the outputs of every case and variant: single videos, and padded batches of some of them."""
    for size, config in manifest["configs"].items():
        cases = sorted({name.partition("/")[0] for name in golden if name.startswith(f"{size}_")})
        if not cases:
            continue
        filled = weights(config["keys"], config["digest_sha256"])
        filled |= {alias: filled[key] for alias, key in config["aliases"].items()}
        tensors = {name: torch.from_numpy(array) for name, array in filled.items()}
        noise = manifest.get("float32_noise", {}).get(size, {})
        settings = {ours: config["args"][arg] for arg, ours in ARGS.items()}
        for case in cases:
            variants = [each for each in VARIANTS if any(name.startswith(f"{case}/{each}/") for name in golden)]
            for variant in variants:
                network = network_of(tensors, **settings | VARIANTS[variant])
                videos = _Case(network, golden, case)
                ours = [videos.outputs(number) for number in range(RUNS)]
                exact = videos.outputs()
                for prefix in [f"{case}/{variant}/", *[f"{case}/"] * (variant == variants[0])]:
                    yield from _compared(ours, exact, videos.alone, golden, prefix, noise)


def network_of(tensors: Mapping[str, Tensor], **settings: Any) -> Pdvc:
    """Return the network of a released state dict, whose layers share a caption head.

    settings: the fields of ``PdvcConfig`` that do not follow from the weights.
    """
    levels, hidden = tensors["transformer.level_embed"].shape
    layers = [
        len({name.split(".")[3] for name in tensors if name.startswith(f"transformer.{part}.layers.")})
        for part in ("encoder", "decoder")
    ]
    config = PdvcConfig(
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
    with torch.device("meta"):
        network = Pdvc(config)
    network.load_state_dict(_ours(tensors), assign=True)
    return network.eval()


def _ours(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors with our names: the LSTM's weights split by input, and its two biases added."""
    state = {name: value for name, value in tensors.items() if not UNUSED.match(name)}
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


class _Case:
    """The videos of a case, and a network's outputs for them."""

    def __init__(self, network: Pdvc, golden: Golden, case: str) -> None:
        size = case.partition("_")[0]
        marks = [name.split("/") for name in golden if name.startswith(f"{case}/") and "matched_query" in name]
        self.names = list(dict.fromkeys(mark[3] for mark in marks if len(mark) == 5))
        members = [f"{size}_{name}" for name in self.names] or [case]
        self.network, self.alone = network, not self.names
        rows = [torch.from_numpy(_features(golden, member)) for member in members]
        self.features = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        self.lengths = None if self.alone else torch.tensor([len(each) for each in rows])
        self.durations_s = torch.tensor([float(golden[f"{member}/duration_s"]) for member in members])
        self.segments = [
            torch.from_numpy(golden[f"{member}/segments_s"]) / duration_s
            for member, duration_s in zip(members, self.durations_s, strict=True)
        ]
        self.captions = [torch.from_numpy(golden[f"{member}/caption_ids"]) for member in members]

    @torch.inference_mode()
    def outputs(self, run: int | None = None) -> dict[str, Array]:
        """Return all outputs under their names in the golden file.

        run: 0 for float32; from 1, float32 with features that differ by one unit in the last place; None for float64.
        """
        dtype = torch.float64 if run is None else torch.float32
        features, segments = self.features.to(dtype), [each.to(dtype) for each in self.segments]
        if run:
            up = torch.rand(features.shape, generator=torch.Generator().manual_seed(run)) < 1 / 2
            features = features.nextafter(torch.where(up, torch.inf, -torch.inf))
        torch.set_default_dtype(dtype)
        try:
            return {name: each.numpy() for name, each in self._found(features, segments).items() if each is not None}
        finally:
            torch.set_default_dtype(torch.float32)

    def _found(self, features: Tensor, segments: list[Tensor]) -> Mapping[str, Any]:
        network = self.network.to(features.dtype)
        config = network.config
        given = segments if config.proposals == "ground_truth" else None
        embedded = network.embed(features, self.durations_s, self.lengths)
        rows, levels = network.encode(embedded)
        found: dict[str, Any] = {
            "target_boxes": as_boxes(segments[0]),
            "levels": levels.lengths,
            "valid_ratios": levels.filled,
            "mask_flatten": levels.padding,
            "encoder_input": embedded.rows,
            "encoder_position": embedded.positions,
            "memory": rows,
        }
        layers = network.layers(rows, levels, given)
        about: dict[str, Any] = {"durations_s": self.durations_s, "lengths": self.lengths}
        losses = network.losses(features, segments, self.captions, **about)
        for number, layer in enumerate(layers):
            matched = match(config, layer.predicted, segments)
            parts = {
                "queries": layer.queries,
                "reference": layer.reference,
                "boxes": layer.predicted.boxes,
                "class_logits": layer.predicted.logits,
                "count_logits": layer.predicted.counts,
                "matched_query": matched.query,
                "boxes_of_eval_mode": _with_length(layer.predicted.boxes, layer.reference),
                **{f"{name}/matched_query": matched.query[matched.video == n] for n, name in enumerate(self.names)},
                **{LOSSES[name]: loss for name, loss in losses[number].items()},
                **self._logged(layer.predicted.boxes, matched, segments),
            }
            if self.alone:
                asked = network.asked(layer, matched.video, matched.query)
                forced = network.captions(asked, rows, levels, self.captions[0])
                parts |= {"forced_logprobs": forced, "target_logprobs": _of_targets(forced, self.captions[0])}
            found |= {f"layer{number}/{name}": part for name, part in parts.items()}
        found["total_loss"] = network.total(losses)
        for n in range(len(self.features)):
            asked = network.asked(layers[-1], *_every(n, layers[-1].queries))
            name = f"greedy/{self.names[n]}" if self.names else "greedy"
            tokens = torch.zeros(len(asked.queries), 0, dtype=torch.int64)
            likelihoods = rows.new_zeros(len(tokens), 0, config.vocabulary + 1)
            for of_word, word in network.captions.greedy(asked, rows, levels):
                tokens = torch.cat((tokens, word[:, None]), dim=1)
                likelihoods = torch.cat((likelihoods, of_word[:, None]), dim=1)
            best = likelihoods.amax(dim=2)
            found |= {f"{name}/tokens": tokens, f"{name}/logprobs": likelihoods}
            found |= {f"{name}/token_logprobs": best, f"{name}/score": (best * (tokens > 0)).sum(dim=1)}
        return found

    @staticmethod
    def _logged(boxes: Tensor, matched: Matched, segments: list[Tensor]) -> Mapping[str, Tensor]:
        """Return the values that the release logs only; with one class it counts no query as a segment."""
        n = torch.tensor([float(len(each)) for each in segments])
        paired = boxes[matched.video, matched.query]
        together = [as_segments(each) for each in torch.split(paired, [len(each) for each in segments])]
        own = [overlaps(each[:, None], each)[0].triu(1).sum() / (len(each) * (len(each) - 1) / 2) for each in together]
        difference = (paired - as_boxes(torch.cat(segments))).abs().sum()
        return {
            "loss_bbox": difference / n.sum(),
            "loss_self_iou": torch.stack(own).sum(),
            "cardinality_error": n.mean(),
        }


def _features(golden: Golden, case: str) -> Array:
    """Return the (T, D) features of a case, from the golden file or generated by its recipe."""
    if f"{case}/features" in golden:
        return golden[f"{case}/features"]
    found = {made["case"]: (name, made) for name, made in recipe(golden).items()}
    if case not in found:
        raise ValueError(f"the golden file has neither features of {case} nor their recipe")
    name, made = found[case]
    features = weight(f"{name}/features", tuple(made["shape"]), "scaled")
    return same_input(name, features, made["sha256"])


def _with_length(boxes: Tensor, reference: Tensor) -> Tensor:
    """Return boxes as in the release's evaluation: if only the centre is refined, it is added to the length too."""
    if reference.shape[2] == 2:
        return boxes
    return (boxes.logit() + torch.nn.functional.pad(reference.logit(), (1, 0))).sigmoid()


def _of_targets(forced: Tensor, captions: Tensor) -> Tensor:
    """Return the (n, W + 1) log likelihoods of words and the end token, 0 after the end."""
    targets = torch.nn.functional.pad(captions, (0, 1))
    counted = torch.arange(targets.shape[1]) <= (captions > 0).sum(dim=1, keepdim=True)
    return forced.gather(2, targets[..., None])[..., 0] * counted


def _every(video: int, queries: Tensor) -> Sequence[Tensor]:
    return torch.full((queries.shape[1],), video), torch.arange(queries.shape[1])


def _compared(
    ours: Sequence[Mapping[str, Array]],
    exact: Mapping[str, Array],
    alone: bool,
    golden: Golden,
    prefix: str,
    noise: Mapping[str, float],
) -> Iterator[Output]:
    """Yield the outputs that the golden file has under a prefix.

    ours: the outputs of the runs in float32. exact: those in float64. alone: whether they are of one video. noise: the
    release's, by output.
    """
    for name, reference in golden.items():
        rest = name.removeprefix(prefix)
        if not name.startswith(prefix) or name.rpartition("/")[2] in INPUTS or rest.partition("/")[0] in VARIANTS:
            continue
        *arrays, precise = (each[rest.removesuffix("_first64")] for each in (*ours, exact))
        if rest.endswith("_first64"):
            *arrays, precise = (each[..., :64] for each in (*arrays, precise))
        if rest.startswith("greedy/"):
            of, part = name.rpartition("/")[0], rest.rpartition("/")[0]
            width = golden[f"{of}/tokens"].shape[1]
            likelihoods = [_fitted(each[f"{part}/token_logprobs"], width) for each in (*ours, exact)]
            uncertain = FACTOR * np.max([np.abs(each - likelihoods[-1]) for each in likelihoods], axis=0)
            margin = golden[f"{of}/margin"][:, :width]
            words = _decided(golden[f"{of}/stable_words"], margin, uncertain)
            *arrays, precise, reference = (_stable(each, words, margin) for each in (*arrays, precise, reference))
        elif alone and precise.shape == (1, *reference.shape):
            *arrays, precise = (each[0] for each in (*arrays, precise))
        parts = rest.removesuffix("_first64").removesuffix("_of_eval_mode").split("/")
        theirs = noise.get("/".join(dict.fromkeys((parts[0], parts[-1]))), 0)
        noisiest = max(theirs, *(Output(name, each, precise).error for each in arrays))
        yield Output(name, arrays[0], reference, max(TOLERANCE, FACTOR * noisiest))


def _decided(words: Array, margin: Array, uncertain: Array) -> Array:
    """Return the number of words of each caption to compare, with its end: up to the first that noise can change.

    words: those that the release chose in float64 too. margin: between the log likelihoods of the two best words, 0
    after the end. If it is below their uncertainty, another CPU may choose the other word, and other words after it.
    """
    safe = (margin > uncertain) & (np.arange(margin.shape[1]) < words[:, None])
    decided: Array = np.logical_and.accumulate(safe, axis=1).sum(axis=1)
    return decided


def _stable(values: Array, words: Array, margin: Array) -> Array:
    """Return the values of captions that do not depend on rounding; a score depends on all words."""
    which = words == (margin > 0).sum(axis=1)
    if values.ndim > 1:
        values, which = _fitted(values, margin.shape[1]), np.arange(margin.shape[1]) < words[:, None]
    stable: Array = values[which]
    return stable


def _fitted(values: Array, width: int) -> Array:
    """Return (N, width, ...) values of words: a caption's last word has none after it, and some runs end earlier."""
    missing = max(0, width - values.shape[1])
    return np.pad(values[:, :width], ((0, 0), (0, missing), *[(0, 0)] * (values.ndim - 2)))
