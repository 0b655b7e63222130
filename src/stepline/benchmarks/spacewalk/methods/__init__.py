"""Methods: from an entry's inputs to scores of each sample (paper Sec. 5), one module per kind of method.

A method creates a chooser once per entry and window length; the chooser is called for each recording. Methods that
combine other entries call their choosers, also at times other than the samples'. Ties: the lowest step label; in
retrieval, where the order of the candidates is random, equal scores are a guess.
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
"""The answer that stands for a uniform guess."""
Labels = NDArray[np.int64]
Scores = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Outcome = tuple[int, Labels, Scores | None]
Chooser = Callable[[str, list[Item]], list[Outcome]]
"""From a recording and N of its samples to, for each seed, the (N,) chosen labels and the scores: (N, K+1), with NaN in
column 0 if Irrelevant has no score, in retrieval (N, 2), or None. An optional attribute ``selection`` describes how
settings were chosen."""


class SpacewalkMethod(Method[SpacewalkInputs, Choice]):
    """A method of this benchmark; subclasses define ``chooser`` and, if the method is trained, ``fit``."""

    keeps = ""
    """The epoch that a fit keeps, as text."""

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the chooser. context_s: the window length in seconds. fits: one checkpoint per seed."""
        raise NotImplementedError

    def predict(self, inputs: SpacewalkInputs, fits: Sequence[Path]) -> Iterator[Choice]:
        """Yield the answers to the samples of test, and of val if scoring chooses a threshold there."""
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
        """Return the number of recordings the method is fitted on, as text; "" if it is not fitted on them."""
        settings = inputs.entry.settings
        if not self.keeps and settings.get("fit") != "train":
            return ""
        used, listed = len(inputs.recordings("train")), len(inputs.annotation.splits["train"])
        return f"fitted on {min(used, settings.get('videos', used))} of {listed} training recordings"


def chooser(inputs: SpacewalkInputs, context_s: float | None) -> Chooser:
    """Return the chooser of an entry that is not fitted, at any window length."""
    made: Chooser = inputs.method.chooser(inputs, context_s, [])
    return made


def nearer(scores: Scores) -> Outcome:
    """Return the candidate with the higher of (N, 2) scores; a guess if they are equal."""
    return 0, np.where(scores[:, 0] == scores[:, 1], GUESS, scores.argmax(axis=1)), scores


def without_irrelevant(scores: Scores) -> Scores:
    """Return (N, K) scores of steps as (N, K+1), with NaN for Irrelevant."""
    return np.concatenate([np.full((len(scores), 1), np.nan, np.float32), scores], axis=1)


def preview_end_s(recording: Recording) -> float:
    """Return the end of the last animation of a step, in seconds; 0 if there is none."""
    return max((step.animation_s[1] for step in recording.steps if step.animation_s), default=0.0)
