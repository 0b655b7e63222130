"""What sees no video: places and durations of training segments, and equal parts.

Each predicts one segment of every step of the article. Places are parts of the video's duration, which is that of its
features, whole seconds.
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
"""Of times before they are cut to whole seconds, so that these do not hang on how sums are rounded."""


class Uniform(Method[HtstepInputs, Found]):
    """Equal parts of the video, one of each step in the article's order, all equally certain."""

    def predict(self, inputs: HtstepInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the parts of each video."""
        for each in inputs.evaluated:
            n = len(each.steps)
            yield _found(inputs, each, [(k / n, (k + 1) / n) for k in range(n)], [1.0] * n)


class Place(Method[HtstepInputs, Found]):
    """Every step at its mean place in the training videos, as certain as it is frequent there.

    A step without a training segment is where the steps at the same place of their articles are, a tenth of an article
    with the default ``baselines.bins``; its certainty is the mean of theirs.
    """

    def fit(self, inputs: HtstepInputs, seed: int, path: Path) -> None:
        """Write the mean start, end and frequency of each step, and of each place in an article."""
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
        """Yield the places of each video's steps; a place that train shows nowhere is a part of equal ones."""
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
    """The middles of equal parts, with the mean duration of the activity's training segments, or of all."""

    def fit(self, inputs: HtstepInputs, seed: int, path: Path) -> None:
        """Write the mean duration of each activity, and of all, in seconds."""
        durations: dict[str, list[float]] = defaultdict(list)
        for each in inputs.used("train"):
            for segment in each.segments:
                for key in ("", each.activity):
                    durations[key].append(segment.end_s - segment.start_s)
        write_sealed(path, {key: fmean(of) for key, of in sorted(durations.items())})

    def predict(self, inputs: HtstepInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield a segment of that duration for each step."""
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
    """Return the names of a step and of its place in the article."""
    place = each.steps.index(step) * bins // len(each.steps)
    return str(step), f"place {place}"


def _found(
    inputs: HtstepInputs,
    each: Recording,
    places: Sequence[tuple[float, float]],
    scores: Sequence[float],
    seed: int = 0,
) -> Found:
    """Return segments at places of the video, the most certain first, of equal ones in the article's order."""
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
