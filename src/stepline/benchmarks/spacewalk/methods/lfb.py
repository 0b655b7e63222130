"""Long-term feature bank: frozen features of a window's 12 s segments (paper Eq. 5 to 8, Appendix E.3).

The setting ``head`` is ``avg``, ``cat``, ``nl`` or ``tf``. ``steps`` names the entry that provides the features of the
steps. Options that are not in ``OPTIONS`` equal those of last-layer fine-tuning, as in the paper.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.benchmarks.spacewalk.features import Features, Rows
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import Chooser, Outcome, SpacewalkMethod, without_irrelevant
from stepline.datasets.schema import Split
from stepline.models.context import SEGMENT_S, Block, Segments, average, concatenation
from stepline.models.lfb import Clips, apply_lfb, fit_lfb
from stepline.models.linear import Matching, apply_linear, fit_linear

POOLS = {"avg": average, "cat": concatenation}
OPTIONS = {"nl": {"batch_size": 512, "learning_rate": 1e-3}, "tf": {"batch_size": 512, "learning_rate": 1e-4}}
"""The options of Appendix E.3."""


class LongTermFeatureBank(SpacewalkMethod):
    """A long-term feature bank with the head of the setting ``head``."""

    keeps = "epoch of the lowest validation loss"

    def fit(self, inputs: SpacewalkInputs, seed: int, path: Path) -> None:
        """Fit on train and keep the epoch of the lowest loss on val, without Irrelevant samples, as in Eq. 1."""
        context_s = inputs.job.context_s
        assert context_s is not None
        head, features = inputs.entry.settings["head"], _SegmentFeatures(inputs)
        options: dict[str, Any] = {**inputs.options["last_layer"], **OPTIONS.get(head, {}), "seed": seed}
        del options["seeds"]
        train, val = (_clips(features, split) for split in ("train", "val"))
        if head in POOLS:
            fit_linear(_pooled(head, train, context_s), _pooled(head, val, context_s), path, **options)
            return
        fit_lfb(head, train, val, path, context_s=context_s, device=inputs.device, **options)

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the chooser for windows of ``context_s`` seconds: the best step; a threshold decides on Irrelevant."""
        assert context_s is not None
        return partial(_apply, _SegmentFeatures(inputs), context_s, fits)


class _SegmentFeatures(Features):
    """Features of segments, and of the steps of the entry that the setting ``steps`` names."""

    def bank(self, video: str) -> Segments:
        """Return the recording's segments, one starting at each second, with the blocks of the entry.

        Raises StoreError if only parts of a recording have features.
        """
        inputs = self.inputs
        inputs.bank.check_whole()
        text = None
        if {*inputs.entry.blocks} & {*"TC"}:
            texts, index = np.unique(inputs.text(video).segments(SEGMENT_S), return_inverse=True)
            text = Block(inputs.embeddings(video)(texts.tolist()), index)
        blocks = [Block(inputs.bank[video]) if block == "V" else text for block in inputs.entry.blocks]
        normalise = inputs.benchmark.normalise(inputs.entry) == "block"
        return Segments(tuple(block for block in blocks if block is not None), normalise)

    def steps(self, video: str) -> Rows:
        """Return the (K+1, D) features of the labels 0..K."""
        return Features(self.inputs.parts[1]).steps(video)


def _clips(features: _SegmentFeatures, split: Split) -> Clips:
    """Return the step samples (label > 0) of a split."""
    inputs = features.inputs
    recordings = inputs.recordings(split)
    items = [[item for item in inputs.items(split)[video] if item.label > 0] for video in recordings]
    return Clips(
        banks=[features.bank(video) for video in recordings],
        owner=np.repeat(np.arange(len(items)), [len(kept) for kept in items]),
        times_s=np.array([item.t_s for kept in items for item in kept]),
        label=np.array([item.label for kept in items for item in kept]),
        steps=[features.steps(video)[1:] for video in recordings],
    )


def _pooled(head: str, clips: Clips, context_s: float) -> Matching:
    times_s = [clips.times_s[clips.owner == number] for number in range(len(clips.banks))]
    pooled = [POOLS[head](bank, whose_s, context_s) for bank, whose_s in zip(clips.banks, times_s, strict=True)]
    return Matching(features=np.concatenate(pooled), owner=clips.owner, label=clips.label, steps=clips.steps)


def _apply(
    features: _SegmentFeatures, context_s: float, fits: Sequence[Path], video: str, items: list[Item]
) -> list[Outcome]:
    inputs, bank = features.inputs, features.bank(video)
    head, times_s = inputs.entry.settings["head"], np.array([item.t_s for item in items])
    pooled = POOLS[head](bank, times_s, context_s) if head in POOLS else None
    steps = features.steps(video)[1:]

    def mapped(path: Path) -> NDArray[np.float32]:
        if pooled is not None:
            return apply_linear(path, pooled)
        return apply_lfb(head, path, bank, times_s, context_s=context_s, device=inputs.device)

    outcomes: list[Outcome] = []
    for seed, path in zip(inputs.entry.seeds, fits, strict=True):
        scores = mapped(path) @ steps.T
        outcomes.append((seed, scores.argmax(axis=1) + 1, without_irrelevant(scores)))
    return outcomes
