"""Planning by the similarity of video and text alone (Sec. 5.2).

An observation is the mean of its 3 rows. The first action is the nearest to the start, the last the nearest to the end.
The T - 2 actions between are those nearest to the mean of both, by descending similarity, and can repeat the first or
last action. The paper specifies neither their order nor whether they can repeat. The lowest id wins a tie.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import UnavailableError
from stepline.benchmarks.oepp.features import vectors
from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.methods.observations import Observations
from stepline.benchmarks.oepp.methods.planner import Planner
from stepline.benchmarks.oepp.windows import Window
from stepline.needs import Need


class Matching(Planner):
    """The matching baseline. The vectors of actions must have the D of the video features."""

    def plans(
        self, inputs: OeppInputs, split: str, windows: Sequence[Window], fit: Path | None
    ) -> list[tuple[int, ...]]:
        """Return the plans; raise UnavailableError if video and text differ in D."""
        cosine = inputs.options["matching"]["similarity"] == "cosine"
        horizon = inputs.entry.settings["horizon"]
        text, observed = vectors(inputs, split).astype(np.float64), Observations.of(inputs, windows)
        if text.shape[1] != observed.rows.shape[1]:
            raise UnavailableError(Need("config", f"oepp.features.{inputs.entry.features}.text", "PATH"))
        rows = observed.rows[observed.index].astype(np.float64)
        start, end = rows[:, :3].mean(axis=1), rows[:, 3:].mean(axis=1)
        first, between, last = (ranked(each, text, cosine=cosine) for each in (start, (start + end) / 2, end))
        plan = np.concatenate([first[:, :1], between[:, : max(horizon - 2, 0)], last[:, :1]], axis=1)[:, :horizon]
        return [tuple(each) for each in plan.tolist()]


def ranked(observed: NDArray[np.float64], text: NDArray[np.float64], *, cosine: bool) -> NDArray[np.int64]:
    """Return the (N, classes) indices of the classes by similarity to each observation, nearest first.

    observed: (N, D), of any length. text: (classes, D). Equal vectors tie: the lower index comes first.
    """
    lengths = np.maximum(np.linalg.norm(text, axis=1), 1e-12) if cosine else 1.0
    _, same, back = np.unique(text, axis=0, return_index=True, return_inverse=True)
    scores = (observed @ text.T / lengths)[:, same[back]]
    found: NDArray[np.int64] = np.argsort(-scores, axis=1, kind="stable")
    return found
