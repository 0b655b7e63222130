"""The base of trained heads, and their transfer to CrossTask."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import Entry, Job, Method
from stepline.benchmarks.htstep.inputs import HtstepInputs
from stepline.benchmarks.htstep.kinds import Found
from stepline.benchmarks.htstep.methods.videos import Articles, Learned, found
from stepline.models.grounding import GroundedSegments, GroundedVideo
from stepline.progress import progress
from stepline.spec import digest

Grounder = Callable[[GroundedVideo], tuple[GroundedSegments, NDArray[np.floating] | None]]
"""A video -> segments of steps, and the (T, K) confidences of each second and step of its article, or None."""


class Head(Method[HtstepInputs, Found]):
    """A head fitted on the entry's training data; the last epoch is kept."""

    def train(self, inputs: HtstepInputs, learned: Learned, seed: int, path: Path, resume: str, what: str) -> None:
        """Train on videos and write the checkpoint of one seed."""
        raise NotImplementedError

    def grounder(self, inputs: HtstepInputs, entry: Entry, articles: Articles, path: Path) -> Grounder:
        """Return the function that predicts with an entry's checkpoint.

        Raises StoreError if the checkpoint is absent or damaged.
        """
        raise NotImplementedError

    def fit(self, inputs: HtstepInputs, seed: int, path: Path) -> None:
        """Fit the head, starting from the checkpoint of the entry ``init`` if that is set."""
        learned = Articles(inputs).learned(seed)
        resume = digest([inputs.spec, learned.sha256])
        self.train(inputs, learned, seed, path, resume, f"{inputs.entry.id}, seed {seed}")

    def predict(self, inputs: HtstepInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the segments of each video with each seed's checkpoint."""
        articles = Articles(inputs)
        for seed, path in zip(inputs.entry.seeds, fits, strict=True):
            yield from said(inputs, articles, self.grounder(inputs, inputs.entry, articles, path), seed)


class Transfer(Method[HtstepInputs, Found]):
    """The head of the entry ``of``, with the checkpoint of its first seed, on the videos of CrossTask."""

    def predict(self, inputs: HtstepInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the segments of each video."""
        of = inputs.benchmark.parts(inputs.entry)[1]
        head, articles = inputs.benchmark.method(of.kind)(), Articles(inputs)
        assert isinstance(head, Head)
        self.selection = f"the checkpoint of {of.id}, seed {of.seeds[0]}"
        path = inputs.benchmark.fits(Job(release="v1", entry=of))[0]
        yield from said(inputs, articles, head.grounder(inputs, of, articles, path), 0)


def said(inputs: HtstepInputs, articles: Articles, grounder: Grounder, seed: int) -> Iterator[Found]:
    """Yield the predictions of a head for each evaluated video."""
    for each in progress(inputs.evaluated, what=f"{inputs.entry.id}, seed {seed}", unit="videos"):
        segments, confidence = grounder(articles.video(each))
        yield found(each, segments, articles.steps, seed=seed, confidence=confidence)
