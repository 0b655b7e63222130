"""Baselines that see neither frames nor speech: a random order, constants of the training videos, and others."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from stepline.benchmark import Method, UnavailableError
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.benchmarks.hirest.methods.found import RANKED, asked, found, ranking, stepped
from stepline.metrics.segments import uniform
from stepline.needs import Need


class RandomRanking(Method[HirestInputs, Found]):
    """The pool in a random order, drawn separately for each query and seed."""

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the order of each query."""
        pool = [each.video for each in inputs.used("pool")]
        for seed in inputs.entry.seeds:
            for query in asked(inputs, pool):
                drawn = random.Random(f"{seed}-{query}").sample(pool, min(RANKED, len(pool)))
                yield ranking(query, drawn, len(pool), seed)


class Middle(Method[HirestInputs, Found]):
    """The middle of each video. The setting ``percent`` is its share; 70 is the best multiple of 10 on train."""

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the middle of each video."""
        margin = (1 - inputs.entry.settings["percent"] / 100) / 2
        for pair in inputs.evaluated:
            yield found(pair, moment=(margin * pair.duration_s, (1 - margin) * pair.duration_s))


class Uniform(Method[HirestInputs, Found]):
    """Equal parts of the moment: ``parts`` of them, or as many as fit parts of about ``part_s`` seconds."""

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the parts of each moment whose steps are annotated."""
        settings = inputs.entry.settings
        for pair, (start_s, end_s) in stepped(inputs):
            n = settings.get("parts") or max(1, round((end_s - start_s) / settings["part_s"]))
            parts = start_s + uniform(end_s - start_s, n)
            yield found(pair, segments=tuple((float(a), float(b)) for a, b in parts))


class GroundTruth(Method[HirestInputs, Found]):
    """The annotated steps themselves, which show how the evaluator scores perfect segments."""

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the steps of each moment."""
        for pair in inputs.evaluated:
            if pair.steps:
                yield found(pair, segments=tuple((step.start_s, step.end_s) for step in pair.steps))


class MostFrequent(Method[HirestInputs, Found]):
    """The most frequent caption of the training steps for every step. The first in string order wins a tie."""

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the caption for the steps of each moment; raise UnavailableError if no training video has steps."""
        counts = Counter(step.caption.strip().lower() for pair in inputs.used("train") for step in pair.steps)
        if not counts:
            raise UnavailableError(Need("split", "train"))
        caption = min(counts, key=lambda each: (-counts[each], each))
        self.selection = f"of {counts.total()} training captions, {counts[caption]} are {caption!r}"
        for pair in inputs.evaluated:
            if pair.steps:
                yield found(pair, sentences=(caption,) * len(pair.steps))
