"""Methods: from what an entry reads to scores of every sample (paper Sec. 5), a module for each way.

A method makes a chooser, once per entry and window length, which is then called for one recording after the other;
methods that are made of another entry's scores call its chooser on times of their own. Ties: the lowest step label; in
retrieval, where the candidates' order is drawn, equal scores are a guess.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import Method
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.kinds import Choice
from stepline.datasets.schema import Recording, Split
from stepline.progress import progress

GUESS = -1
"""The answer that is a guess with equal odds."""
Labels = NDArray[np.int64]
Scores = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Outcome = tuple[int, Labels, Scores | None]
Chooser = Callable[[str, list[Item]], list[Outcome]]
"""From a recording and N of its samples to, for every seed, the chosen labels (N,) and the scores (N, K+1), with NaN in
column 0 where Irrelevant has none; (N, 2) in retrieval; or None. An attribute ``selection`` says how settings were
chosen."""


class SpacewalkMethod(Method[SpacewalkInputs, Choice]):
    """A method of this benchmark; subclasses make its chooser and, where it is trained, fit."""

    keeps = ""
    """Which epoch a fit keeps, in words."""

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return what chooses. context_s: the window length in seconds; fits: one checkpoint per seed."""
        raise NotImplementedError

    def predict(self, inputs: SpacewalkInputs, fits: Sequence[Path]) -> Iterator[Choice]:
        """Yield what is chosen for the samples of test, and of val where scoring chooses a threshold there."""
        entry, choose = inputs.entry, self.chooser(inputs, inputs.job.context_s, fits)
        splits: tuple[Split, ...] = ("val", "test") if entry.thresholded else ("test",)
        for split in splits:
            items = inputs.items(split)
            sampled = [video for video in inputs.recordings(split) if items[video]]
            for video in progress(sampled, what=entry.id, unit="videos"):
                ids = np.array([item.id for item in items[video]], dtype=np.int64)
                for seed, chosen, scores in choose(video, items[video]):
                    yield Choice(seed=seed, split=split, video=video, ids=ids, chosen=chosen, scores=scores)
        said = [self._fitted(inputs), self.keeps, getattr(choose, "selection", "")]
        self.selection = "; ".join(filter(None, said))

    def _fitted(self, inputs: SpacewalkInputs) -> str:
        """Return on how many recordings the method is fitted, in words; "" where settings alone are chosen."""
        settings = inputs.entry.settings
        if not self.keeps and settings.get("fit") != "train":
            return ""
        used, listed = len(inputs.recordings("train")), len(inputs.annotation.splits["train"])
        return f"fitted on {min(used, settings.get('videos', used))} of {listed} training recordings"


def chooser(inputs: SpacewalkInputs, context_s: float | None) -> Chooser:
    """Return what chooses for an entry that is not fitted, at any window length."""
    made: Chooser = inputs.method.chooser(inputs, context_s, [])
    return made


def nearer(scores: Scores) -> Outcome:
    """Return the candidate with the higher of (N, 2) scores; a guess where they are equal."""
    return 0, np.where(scores[:, 0] == scores[:, 1], GUESS, scores.argmax(axis=1)), scores


def without_irrelevant(scores: Scores) -> Scores:
    """Return (N, K) scores of steps as (N, K+1), with NaN for Irrelevant."""
    return np.concatenate([np.full((len(scores), 1), np.nan, np.float32), scores], axis=1)


def preview_end_s(recording: Recording) -> float:
    """Return where the last animation of a step ends, in seconds; 0 where there is none."""
    return max((step.animation_s[1] for step in recording.steps if step.animation_s), default=0.0)
