"""Methods: from an entry's material to scores of every sample (paper Sec. 5), a module for each way.

A module has ``make(material, context_s, fits)``, which gives a method, and, where it is trained, ``fit(material,
context_s, seed, path)``. A method is made once per entry and window length, then called for one recording after the
other. Ties: the lowest step label; in retrieval, where the candidates' order is drawn, equal scores are a guess.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.material import Material
from stepline.datasets.schema import Recording

GUESS = -1
"""The answer that is a guess with equal odds."""
Labels = NDArray[np.int64]
Scores = NDArray[np.float32]
Outcome = tuple[int, Labels, Scores | None]
Method = Callable[[str, list[Item]], list[Outcome]]
"""From a recording and N of its samples to, for every seed, the chosen labels (N,) and the scores (N, K+1), with NaN in
column 0 where Irrelevant has none; (N, 2) in retrieval; or None. An attribute ``selection`` says how settings were
chosen."""


def make_method(material: Material, context_s: float | None, fits: list[Path]) -> Method:
    """Return the entry's method. context_s: the window length in seconds; fits: one checkpoint per seed."""
    made: Method = _module(material).make(material, context_s, fits)
    return made


def fit(material: Material, context_s: float | None, seed: int, path: Path) -> None:
    """Fit the entry on train, choose on val, and write the checkpoint of one seed to ``path``."""
    _module(material).fit(material, context_s, seed, path)


def _module(material: Material) -> Any:
    return import_module(f"{__name__}.{material.entry.made.module}")


def nearer(scores: Scores) -> Outcome:
    """Return the candidate with the higher of (N, 2) scores; a guess where they are equal."""
    return 0, np.where(scores[:, 0] == scores[:, 1], GUESS, scores.argmax(axis=1)), scores


def without_irrelevant(scores: Scores) -> Scores:
    """Return (N, K) scores of steps as (N, K+1), with NaN for Irrelevant."""
    return np.concatenate([np.full((len(scores), 1), np.nan, np.float32), scores], axis=1)


def preview_end_s(recording: Recording) -> float:
    """Return where the last animation of a step ends, in seconds; 0 where there is none."""
    return max((step.animation_s[1] for step in recording.steps if step.animation_s), default=0.0)
