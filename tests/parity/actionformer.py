"""ActionFormer against the network, the losses and the decoding of github.com/happyharrycn/actionformer_release.

In the golden file ``CONFIG/train`` is a batch of videos padded to the configuration's maximum length,
``CONFIG/eval_long`` a longer single video, ``CONFIG/targets`` and ``CONFIG/loss`` the batch's training targets and
losses, ``CONFIG/infer`` the predicted segments of videos, and ``nms`` suppression alone. The name of a variant states
the changed option.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from stepline.models.actionformer import ActionFormer, Found, Said, chosen, decoded, in_rows, in_seconds, points
from stepline.models.actionformer_config import ActionFormerConfig, Decoding
from stepline.models.actionformer_loss import Targets, losses, targets
from tests.parity import Array, Golden, Output, recipe, weights

INPUTS = ("in", "recipe_json")
NEAR_S, ROUNDING = 1e-4, 1e-6
"""The allowed difference of a time from the reference: in seconds, and relative to it, because of float32 rounding."""
TIED = 1e-5
"""Segments whose scores differ by at most this much may be in any order, and any of them may be the last that is kept.
After soft suppression, the rounding of times accounts for 3e-6."""
ALL = 10**9
ARGS = {"n_head": "heads", "use_abs_pe": "absolute", "max_seq_len": "max_length"}
"""Released option -> field of ``ActionFormerConfig``; most other fields follow from the weights."""
TESTED = {
    "pre_nms_thresh": "least_score",
    "pre_nms_topk": "most_points",
    "duration_thresh": "least_rows",
    "nms_method": "nms",
    "multiclass_nms": "per_step",
    "iou_threshold": "iou",
    "nms_sigma": "sigma",
    "min_score": "min_score",
    "max_seg_num": "most",
    "voting_thresh": "voting",
}
"""Released decoding option -> field of ``Decoding``."""
LEARNED = {"radius": "centre_radius", "label_smoothing": "smoothing", "loss_weight": "loss_weight"}
"""Prefix of the name of a variant of targets or losses, before its number -> field of ``ActionFormerConfig``."""
SUPPRESSED = {"min": "min_score", "max": "most", "sigma": "sigma", "vote": "voting", "": "iou"}
"""The same for suppression alone, whose names have several parts -> field of ``Decoding``."""
SCALES = re.compile(r"reg_head\.scale\.(\d+)\.scale")
"""Parameter names of the offset scales of the levels."""
NAMES = (
    (r"backbone\.embd\.(\d+)\.conv", r"embedding.\1"),
    (r"backbone\.embd_norm", "embedding_norms"),
    (r"backbone\.stem\.(\d+)", r"blocks.\1"),
    (r"neck\.fpn_norms", "pyramid.norms"),
    (r"neck\.lateral_convs\.(\d+)\.conv", r"pyramid.lateral.\1"),
    (r"neck\.fpn_convs\.(\d+)\.conv", r"pyramid.depthwise.\1"),
    (r"cls_head\.cls_head\.conv", "class_head.output"),
    (r"reg_head\.offset_head\.conv", "offset_head.output"),
    (r"cls_head", "class_head"),
    (r"reg_head", "offset_head"),
)
ENDS = (
    (r"class_head\.norm\.", "class_head.norms."),
    (r"offset_head\.norm\.", "offset_head.norms."),
    (r"class_head\.head\.(\d+)\.conv\.", r"class_head.layers.\1."),
    (r"offset_head\.head\.(\d+)\.conv\.", r"offset_head.layers.\1."),
    (r"ln1\.", "norm."),
    (r"ln2\.", "inner_norm."),
    (r"attn\.(query|key|value)_conv\.conv\.", r"attention.around.\1."),
    (r"attn\.(query|key|value)_norm\.", r"attention.norms.\1."),
    (r"attn\.(query|key|value)\.", r"attention.maps.\1."),
    (r"attn\.proj\.", "attention.output."),
    (r"attn\.rel_pe", "attention.relative"),
    (r"mlp\.0\.", "inner."),
    (r"mlp\.3\.", "outer."),
    (r"drop_path_attn\.", "attended."),
    (r"drop_path_mlp\.", "fed."),
)
"""Ends of parameter names, and their replacements."""
OF_SUPPRESSION = Decoding(iou=0.1, sigma=0.5, min_score=0.001, most=200, voting=0.0)
"""The options of suppression alone, unless its name states others."""


def outputs(manifest: Any, golden: Golden, folder: Path) -> Iterator[Output]:
    """Yield the outputs of every configuration, and of suppression alone."""
    for name in manifest["configs"]:
        if any(each.startswith(f"{name}/") for each in golden):
            yield from Case(manifest, golden, name).outputs()
    for name in _folders(golden, r"nms/[^/]+/(?!in/)[^/]+"):
        given = Found(*(golden[f"{name.rpartition('/')[0]}/in/{part}"] for part in ("segments", "scores", "labels")))
        options = suppression(name.rpartition("/")[2])
        given = _sorted(given, options)
        yield from _same(name, chosen(given, options), chosen(given, replace(options, most=ALL)), golden)


def settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of ``ActionFormerConfig`` that do not follow from the weights of a manifest's configuration."""
    args = config["args"]
    window = args["n_mha_win_size"]
    return {field: args[arg] for arg, field in ARGS.items()} | {
        "window": window if isinstance(window, int) else tuple(window),
        "ranges": tuple(map(tuple, args["regression_range"])),
        "init_norm": config["init_loss_norm"],
    }


def network_of(tensors: Mapping[str, Tensor], **settings: Any) -> ActionFormer:
    """Return the network of a released state dict. settings: see ``settings``."""
    embed, feature_dim, kernel = tensors["backbone.embd.0.conv.weight"].shape
    classes, head_dim, head_kernel = tensors["cls_head.cls_head.conv.weight"].shape
    scaled = "backbone.stem.0.drop_path_attn.scale" in tensors
    config = ActionFormerConfig(
        feature_dim=feature_dim,
        classes=classes,
        embed=embed,
        pyramid_dim=tensors["neck.fpn_norms.0.weight"].shape[1],
        head_dim=head_dim,
        kernel=kernel,
        head_kernel=head_kernel,
        arch=(_count(tensors, "backbone.embd"), _count(tensors, "backbone.stem"), _count(tensors, "backbone.branch")),
        head_layers=1 + _count(tensors, "cls_head.head"),
        pyramid="fpn" if "neck.fpn_convs.0.conv.weight" in tensors else "identity",
        relative=any(name.endswith("rel_pe") for name in tensors),
        droppath=ActionFormerConfig.droppath if scaled else 0.0,
        **settings,
    )
    with torch.device("meta"):
        network = ActionFormer(config)
    network.load_state_dict(ours(tensors), assign=True)
    return network.eval()


def _count(tensors: Mapping[str, Tensor], prefix: str) -> int:
    """Return the number of numbered parts after a prefix."""
    parts = len(prefix.split("."))
    return len({name.split(".")[parts] for name in tensors if name.startswith(f"{prefix}.")})


def ours(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a released network with our names and shapes."""
    stem = _count(tensors, "backbone.stem")
    made = {}
    scales: dict[int, Tensor] = {}
    for name, value in tensors.items():
        if found := SCALES.fullmatch(name):
            scales[int(found[1])] = value
            continue
        renamed = re.sub(r"^backbone\.branch\.(\d+)", lambda found: f"blocks.{stem + int(found[1])}", name)
        for pattern, replacement in NAMES:
            renamed = re.sub(rf"^{pattern}\b", replacement, renamed)
        for pattern, replacement in ENDS:
            renamed = re.sub(rf"\b{pattern}", replacement, renamed)
        made[renamed] = value
        if value.dim() == 3 and len(value) == 1 and "conv" not in name:
            made[renamed] = value[0, :, 0]
        if name.endswith(".scale"):
            made[renamed] = value[0]
        if name.endswith("rel_pe"):
            made[renamed] = value[0, 0]
    return made | {"scales": torch.stack([scales[number] for number in sorted(scales)])}


def suppression(name: str) -> Decoding:
    """Return the options that a name such as ``hard_agn_.5_vote.75`` encodes."""
    method, *parts = name.split("_")
    changes: dict[str, Any] = {"nms": method, "per_step": "agn" not in parts}
    for part in parts:
        what = part.rstrip(".0123456789")
        if number := part.removeprefix(what):
            changes[SUPPRESSED[what]] = int(number) if what == "max" else float(number)
    return replace(OF_SUPPRESSION, **changes)


class Case:
    """A configuration's network, its videos, and its outputs for them.

    The videos are named ``video``, or ``small`` if the manifest has a longer ``max_length``.
    """

    def __init__(self, manifest: Any, golden: Golden, name: str) -> None:
        config = manifest["configs"][name]
        arrays = weights(config["keys"], config["digest_sha256"])
        self.tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
        self.network = network_of(self.tensors, **settings(config))
        self.config, self.golden, self.name, self.made = self.network.config, golden, name, recipe(golden)
        longest = max(each["args"]["max_seq_len"] for each in manifest["configs"].values())
        kind, self.long = ("video", "long") if self.config.max_length == longest else ("small", "small_long")
        self.videos = [each.removeprefix("in/") for each in _folders(golden, rf"in/{kind}\d+")]
        meta = self.made["meta"]
        self.row_s = meta["feat_stride"] / meta["fps"]
        self.centre = 0.5 * meta["feat_num_frames"] / meta["feat_stride"]
        self.points = points(self.config, self.config.max_length)

    def outputs(self) -> Iterator[Output]:
        """Yield every output under the configuration's name."""
        with torch.inference_mode():
            found = self.said()
        yield from self._compared("", found)
        for variant in self._variants("targets", "/(?:cls|offsets|positive)"):
            yield from self.targets(variant)
        for variant in self._variants("loss", ""):
            yield from self.losses(variant)
        for folder in _folders(self.golden, rf"{self.name}/infer/[^/]+/pre_nms"):
            yield from self.segments(folder.split("/")[-2])

    def given(self, videos: Sequence[str], length: int) -> tuple[Tensor, Tensor]:
        """Return the padded features of videos, and their mask."""
        rows = [torch.from_numpy(self.golden[f"in/{video}/feats"].T) for video in videos]
        padded = pad_sequence(rows, batch_first=True)
        there = torch.arange(length) < torch.tensor([len(each) for each in rows])[:, None]
        return functional.pad(padded, (0, 0, 0, length - padded.shape[1])), there

    def said(self) -> dict[str, Tensor]:
        """Return the network's outputs for the batch and for the long video."""
        features, there = self.given(self.videos, self.config.max_length)
        levels = self.network.levels(features, there)
        said = self.network(features, there)
        found = {
            "train/mask": there,
            "train/points": self.points,
            "train/backbone0": levels[0].rows,
            "train/backbone_last": levels[-1].rows,
            **{f"train/fpn{number}": level.rows for number, level in enumerate(self.network.pyramid(levels))},
            "train/cls_logits": said.logits,
            "train/offsets": said.offsets,
            "train/level_lengths": torch.tensor(said.sizes),
            "train/level_mask": said.there,
        }
        if f"in/{self.long}/feats" in self.golden:
            alone = self.alone(self.long)
            found |= {"eval_long/cls_logits": alone.logits[0], "eval_long/offsets": alone.offsets[0]}
            found["eval_long/mask"] = alone.there[0, : alone.sizes[0]]
        return found

    def alone(self, video: str) -> Said:
        """Return the network's outputs for a single video, to be decoded."""
        length = self.config.padded(self.golden[f"in/{video}/feats"].shape[1])
        with torch.inference_mode():
            said: Said = self.network(*self.given([video], length))
        return said

    def learned(self, config: ActionFormerConfig, *, empty: bool = False) -> Targets:
        """Return the batch's training targets. empty: without its segments."""
        bounds, steps = [], []
        for video in self.videos:
            rows = self.golden[f"in/{video}/segments_grid"]
            if f"in/{video}/segments_seconds" in self.golden:
                rows = in_rows(self.golden[f"in/{video}/segments_seconds"], self.row_s, self.centre)
            bounds.append(torch.from_numpy(rows)[: 0 if empty else None])
            steps.append(torch.from_numpy(self.golden[f"in/{video}/labels"])[: 0 if empty else None])
        return targets(config, self.points, bounds, steps)

    def targets(self, variant: str) -> Iterator[Output]:
        """Yield the training targets of points; offsets only at positive points."""
        learned, part = self.learned(self._config(variant)), f"targets/{variant}".rstrip("/")
        labels = torch.zeros(*learned.positive.shape, self.config.classes or 0, dtype=torch.uint8)
        labels[tuple(learned.marks.T)] = 1
        yield from self._compared(f"{part}/", {"cls": labels, "positive": learned.positive})
        if (name := f"{self.name}/{part}/offsets") in self.golden:
            positive = learned.positive.numpy()
            yield Output(name, learned.offsets.numpy()[positive], self.golden[name][positive])

    def losses(self, variant: str) -> Iterator[Output]:
        """Yield the losses and the updated normaliser, each relative to the reference's, and the gradients."""
        part, first = f"loss/{variant}".rstrip("/"), variant.removesuffix("_second_call")
        config = self._config(first)
        learned = self.learned(config, empty=first == "no_ground_truth")
        normaliser = torch.tensor(config.init_norm, dtype=torch.float64)
        leaves = {key: tensor.clone().requires_grad_() for key, tensor in self.tensors.items()}
        said = functional_call(self.network, ours(leaves), self.given(self.videos, config.max_length))
        found = losses(config, said, learned, normaliser)
        if first != variant:
            found = losses(config, said, learned, normaliser)
        values = np.array([each.item() for each in (*found, normaliser)])
        reference = self.golden[f"{self.name}/{part}"]
        norm = np.where(reference == 0, 1, reference)
        yield Output(f"{self.name}/{part}", values / norm, reference / norm)
        if any(each.startswith(f"{self.name}/{part}/") for each in self.golden):
            grads = dict(zip(leaves, torch.autograd.grad(found.total, [*leaves.values()]), strict=True))
            norms = torch.stack([grad.double().norm() for grad in grads.values()])
            yield from self._compared(f"{part}/grad/", grads)
            yield from self._compared(f"{part}/", {"grad_norm_all": norms.norm()[None]})

    def segments(self, video: str) -> Iterator[Output]:
        """Yield the segments of a video, before suppression and after each kind of suppression."""
        base = self.made["test_base"]
        name, duration_s = f"{self.name}/infer/{video}", float(self.golden[f"in/{video}/duration"][0])
        said = self.alone(video)
        before = decoded(said, self.config, decoding(base))
        yield from _same(f"{name}/pre_nms", before, before, self.golden)
        for test, changes in self.made["tests"].items():
            options = decoding(base | changes)
            kept, every = (
                each._replace(segments=in_seconds(each.segments, duration_s, self.row_s, self.centre))
                for each in (chosen(before, options), chosen(before, replace(options, most=ALL)))
            )
            yield from _same(f"{name}/{test}", kept, every, self.golden)

    def _variants(self, what: str, end: str) -> list[str]:
        """Return the names of the variants of targets or losses; "" if there is only one."""
        pattern = re.compile(rf"{re.escape(self.name)}/{what}(?:/([^/]+))?{end}")
        return [*dict.fromkeys(found[1] or "" for name in self.golden if (found := pattern.fullmatch(name)))]

    def _config(self, variant: str) -> ActionFormerConfig:
        """Return the network's configuration with the change that a variant's name states."""
        if variant == "center_none":
            return replace(self.config, centre_radius=None)
        what = variant.rstrip("-.0123456789")
        changes: dict[str, Any] = {LEARNED[what]: float(variant.removeprefix(what))} if what in LEARNED else {}
        return replace(self.config, **changes)

    def _compared(self, folder: str, found: Mapping[str, Tensor]) -> Iterator[Output]:
        """Yield the arrays in a folder that the golden file has too."""
        for part, tensor in found.items():
            if (name := f"{self.name}/{folder}{part}") in self.golden:
                yield Output(name, np.atleast_1d(tensor.numpy()), self.golden[name])


def decoding(options: Mapping[str, Any]) -> Decoding:
    """Return the ``Decoding`` of released decoding options."""
    return Decoding(**{TESTED[option]: value for option, value in options.items()})


def _sorted(given: Found, options: Decoding) -> Found:
    """Return segments in the release's order, in which torch's sort decides the order of equal scores."""
    if options.nms == "soft":
        return given
    groups = given.steps if options.per_step else np.zeros_like(given.steps)
    orders = []
    for group in np.unique(groups):
        places = np.flatnonzero((groups == group) & (given.scores > options.min_score))
        orders.append(places[torch.from_numpy(given.scores[places]).sort(descending=True).indices.numpy()])
    order = np.concatenate(orders)
    return Found(given.segments[order], given.scores[order], given.steps[order])


def _folders(golden: Golden, pattern: str) -> list[str]:
    """Return the folders with arrays whose names match ``pattern``."""
    return sorted({name.rpartition("/")[0] for name in golden if re.fullmatch(f"{pattern}/[^/]+", name)})


def _same(name: str, ours: Found, every: Found, golden: Golden) -> Iterator[Output]:
    """Yield the errors of a folder's segments, rank by rank except for tied scores.

    every: our segments without the limit on their number; the reference has some of the segments that are tied at the
    limit. A folder without scores has the segments before suppression, in their order.
    """
    segments, scores = golden[f"{name}/segments"], golden.get(f"{name}/scores", ours.scores)
    yield Output(f"{name}/scores", ours.scores, scores)
    labels = golden.get(f"{name}/labels", ours.steps)
    tied = np.abs(every.scores[:, None] - scores) <= TIED
    alike = tied & (every.steps[:, None] == labels)
    far = np.abs(np.nan_to_num(every.segments[:, None]) - np.nan_to_num(segments)).max(axis=2, initial=0)
    mine, theirs = linear_sum_assignment(np.where(alike, np.minimum(far, 1e6), np.where(tied, 1e7, 1e9)))
    mine = mine[np.argsort(theirs)]
    yield Output(f"{name}/labels", every.steps[mine], labels)
    yield Output(f"{name}/segments", _apart(every.segments[mine], segments, NEAR_S), np.zeros(()), NEAR_S)


def _apart(ours: Array, reference: Array, near: float) -> Array:
    """Return the largest difference, scaled down for times whose float32 rounding error exceeds ``near``."""
    if ours.shape != reference.shape or (np.isnan(ours) != np.isnan(reference)).any():
        return np.asarray(np.inf)
    rounded = np.maximum(1, np.abs(np.nan_to_num(reference.astype(np.float64))) * ROUNDING / near)
    apart = np.abs(ours.astype(np.float64) - reference) / rounded
    return np.asarray(np.nan_to_num(apart).max(initial=0))
