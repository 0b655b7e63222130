"""Blind baselines: places and durations of training segments, and equal parts.

Each predicts one segment for every step of the article. Places are fractions of the video's duration, which is the
duration of its features in whole seconds.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from stepline.benchmark import Method
from stepline.benchmarks.htstep.inputs import HtstepInputs
from stepline.benchmarks.htstep.kinds import Found
from stepline.datasets.htstep import Recording
from stepline.io import read_json, write_sealed

DECIMALS = 9
"""The decimals of times before truncation to whole seconds, so that seconds do not depend on rounding errors."""


class Uniform(Method[HtstepInputs, Found]):
    """Equal parts of the video, one for each step in the article's order, with equal scores."""

    def predict(self, inputs: HtstepInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the parts of each video."""
        for each in inputs.evaluated:
            n = len(each.steps)
            yield _found(inputs, each, [(k / n, (k + 1) / n) for k in range(n)], [1.0] * n)


class Place(Method[HtstepInputs, Found]):
    """Every step at its mean place in the training videos; its score is its frequency there.

    A step without a training segment uses the mean place and frequency of the steps in the same part of their articles,
    a tenth of an article with the default ``baselines.bins``.
    """

    def fit(self, inputs: HtstepInputs, seed: int, path: Path) -> None:
        """Write the mean start, end and frequency of each step, and of each part of an article."""
        bins = inputs.options["baselines"]["bins"]
        bank = inputs.bank("train")
        segments: dict[str, list[tuple[float, float]]] = defaultdict(list)
        shown: dict[str, list[float]] = defaultdict(list)
        for each in inputs.used("train"):
            duration_s, there = len(bank[each.video]), {segment.step for segment in each.segments}
            for segment in each.segments:
                for key in _keys(each, segment.step, bins):
                    segments[key].append((segment.start_s / duration_s, segment.end_s / duration_s))
            for step in each.steps:
                for key in _keys(each, step, bins):
                    shown[key].append(float(step in there))
        write_sealed(
            path,
            {
                key: [*map(fmean, zip(*of, strict=True)), fmean(shown[key])]
                for key, of in sorted(segments.items())
                if key in shown
            },
        )

    def predict(self, inputs: HtstepInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the places of each video's steps; a step without a place in train gets its equal part of the video."""
        bins = inputs.options["baselines"]["bins"]
        for seed, fit in zip(inputs.entry.seeds, fits, strict=True):
            known = read_json(fit)
            for each in inputs.evaluated:
                n = len(each.steps)
                equal = [[k / n, (k + 1) / n, 0.0] for k in range(n)]
                places = [
                    next((known[key] for key in _keys(each, step, bins) if key in known), equal[k])
                    for k, step in enumerate(each.steps)
                ]
                yield _found(inputs, each, [(a, b) for a, b, _ in places], [share for *_, share in places], seed)


class Duration(Method[HtstepInputs, Found]):
    """Segments at the middles of equal parts, with the mean duration of the activity's or of all training segments."""

    def fit(self, inputs: HtstepInputs, seed: int, path: Path) -> None:
        """Write the mean duration of each activity's segments and of all segments, in seconds."""
        durations: dict[str, list[float]] = defaultdict(list)
        for each in inputs.used("train"):
            for segment in each.segments:
                for key in ("", each.activity):
                    durations[key].append(segment.end_s - segment.start_s)
        write_sealed(path, {key: fmean(of) for key, of in sorted(durations.items())})

    def predict(self, inputs: HtstepInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield a segment with the mean duration for each step."""
        bank = {split: inputs.bank(split) for split in inputs.predicted}
        for seed, fit in zip(inputs.entry.seeds, fits, strict=True):
            mean_s = read_json(fit)
            for each in inputs.evaluated:
                n, duration_s = len(each.steps), len(bank[each.split][each.video])
                half = mean_s.get(each.activity, mean_s[""]) / duration_s / 2
                centres = [(k + 0.5) / n for k in range(n)]
                segments = [(max(0.0, centre - half), min(1.0, centre + half)) for centre in centres]
                yield _found(inputs, each, segments, [1.0] * n, seed)


def _keys(each: Recording, step: int, bins: int) -> tuple[str, str]:
    """Return the keys of a step and of its part of the article."""
    place = each.steps.index(step) * bins // len(each.steps)
    return str(step), f"place {place}"


def _found(
    inputs: HtstepInputs,
    each: Recording,
    places: Sequence[tuple[float, float]],
    scores: Sequence[float],
    seed: int = 0,
) -> Found:
    """Return segments at places of the video by descending score; the article's order resolves ties."""
    duration_s = len(inputs.bank(each.split)[each.video])
    order = sorted(range(len(places)), key=lambda k: -scores[k])
    middles = tuple(float(int(round(duration_s * (a + b) / 2, DECIMALS))) for a, b in places)
    return Found(
        seed=seed,
        split=each.split,
        video=each.video,
        steps=tuple(each.steps[k] for k in order),
        segments=tuple((duration_s * places[k][0], duration_s * places[k][1]) for k in order),
        scores=tuple(float(scores[k]) for k in order),
        article=each.steps,
        times_s=middles,
        ordered_s=tuple(sorted(middles)),
    )
