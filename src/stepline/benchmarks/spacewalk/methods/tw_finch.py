"""TW-FINCH: clusters the recording's clips and chooses the candidate in the query's cluster (paper Appendix E.4)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import GUESS, Chooser, Outcome, SpacewalkMethod
from stepline.features.bank import Bank
from stepline.models.tw_finch import tw_finch


class TwFinch(SpacewalkMethod):
    """TW-FINCH."""

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the chooser, which sees whole recordings, clustered into the entry's number of ``segments``."""
        return partial(_choose, inputs)


def _choose(inputs: SpacewalkInputs, video: str, items: list[Item]) -> list[Outcome]:
    """Return the candidate in the query's cluster; a guess if both or none are in it."""
    labels = tw_finch(inputs.bank[video], inputs.entry.settings["segments"])
    clusters = labels[nearest_rows(inputs.bank, video, np.array([item.times_s for item in items]))]
    shared = clusters[:, 1:] == clusters[:, :1]
    return [(0, np.where(shared.sum(axis=1) == 1, shared.argmax(axis=1), GUESS), None)]


def nearest_rows(bank: Bank, video: str, times_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rows of the clips with centres nearest to the times; ties go to the earlier clip.

    times_s: in seconds, of any shape. The paper does not say how a time is mapped to a clip. A row of a frame backbone
    is centred on its frame's time.
    """
    clip = {"num_frames": 0, "interval": 1, "offset": 0} | bank.spec
    middle_s = (clip["offset"] + clip["num_frames"] * clip["interval"] / 2) / clip["fps"]
    starts_s = [block.t0_s + block.hop_s * np.arange(block.length) for block in bank.blocks[video]]
    centres_s = np.concatenate(starts_s) + middle_s
    borders_s = (centres_s[1:] + centres_s[:-1]) / 2
    return np.searchsorted(borders_s, times_s)
