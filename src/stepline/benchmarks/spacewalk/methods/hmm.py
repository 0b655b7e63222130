"""A decoder of whole recordings: a hidden Markov model over the window scores of another entry, the scorer.

It reads scores on a uniform grid of times, from the end of the preview (the last animation, whose narration describes
the steps) to the end of the recording. So it knows neither the times of the samples nor the labelled part. The states
are before, 1..K, after; before and after are answered as Irrelevant. The metrics weigh all labels equally, however long
they last, so the posterior of each label is divided by its expected time. Without a scorer, the order alone is decoded,
from scores of 0. The method is not in the paper.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import Chooser, Outcome, SpacewalkMethod, chooser, preview_end_s
from stepline.datasets.schema import Recording, Split
from stepline.errors import ConfigError
from stepline.io import write_tensors
from stepline.metrics.accuracy import accuracy
from stepline.metrics.average_precision import average_precision
from stepline.models.hmm import log_posteriors, log_sum, transitions
from stepline.models.training import loaded

STEP_S = 10.0
"""The spacing of the grid, in seconds."""
CHOICES: dict[str, tuple[float, ...]] = {
    "window_s": (60, 30, 120, 300),
    "scale": (0.3, 0.1, 0.15, 0.2, 0.4, 0.5, 0.7),
    "stay": (0.5, 0.25, 0.35, 0.7, 1.0),
    "reach": (0.25, 0.05, 0.1, 0.15, 0.35, 0.5),
    "back": (0.02, 0.005, 0.05, 0.1, 0.2),
    "irrelevant": (0.2, -0.2, 0.0, 0.1, 0.3, 0.4),
}
"""The values to try; the search starts at the first of each.

window_s: length of the scorer's windows in seconds; 0 if the order alone is decoded. scale: weight of the standardised
scores, per minute. stay: mean time in a step, as a multiple of T / K. reach, back: see ``transitions``. irrelevant:
standardised score of the states before and after.
"""
SEEN: tuple[Split, ...] = ("train", "val")
"""The splits on which parameters are chosen."""
LEAST = -10_000.0
"""The minimum score; it keeps the scores of impossible labels finite."""
Setting = dict[str, float]
Array = NDArray[np.float64]


class SequenceDecoder(SpacewalkMethod):
    """The sequence decoder; a fit chooses its parameters."""

    def fit(self, inputs: SpacewalkInputs, seed: int, path: Path) -> None:
        """Choose the parameters on train and val, and write them to ``path`` with all settings that were tried.

        Coordinate search: each parameter in turn is set to its best value, until no change improves the result. The
        best setting has the highest mean of accuracy and mAP over the recordings of train and val, each weighted
        equally; ties go to the first tried. The safetensors file has a row for each setting tried: its parameters, and
        ``accuracy_train``, ``map_train``, ``accuracy_val``, ``map_val`` in percent; ``chosen`` is the row's index.
        """
        from safetensors.numpy import save_file

        recordings = inputs.annotation.recordings
        choices = CHOICES if inputs.parts[1:] else CHOICES | {"window_s": (0.0,)}
        items = {split: inputs.items(split) for split in SEEN}
        videos = {split: inputs.recordings(split) for split in SEEN}

        @cache
        def seen(video: str, window_s: float) -> Array:
            return evidence(_score(inputs, window_s), recordings[video])

        def measured(settings: Sequence[Setting], video: str, samples: Sequence[Item]) -> Array:
            at = rows(recordings[video], samples)
            decoded = decode([seen(video, each["window_s"]) for each in settings], settings)
            return np.array([_metrics(each[at], samples) for each in decoded])

        tried: dict[tuple[float, ...], tuple[Array, ...]] = {}

        def values(settings: Sequence[Setting]) -> list[float]:
            keys = [tuple(each.values()) for each in settings]
            if new := {key: each for key, each in zip(keys, settings, strict=True) if key not in tried}:
                found = [np.stack([measured([*new.values()], v, items[s][v]) for v in videos[s]], axis=1) for s in SEEN]
                tried.update(zip(new, zip(*found, strict=True), strict=True))
            return [float(np.concatenate(tried[key]).mean()) for key in keys]

        best = tuple(climb(values, choices).values())
        means = [np.concatenate([split.mean(axis=0) for split in each]) for each in tried.values()]
        table = np.column_stack([np.array([*tried]), np.array(means)])
        names = [*CHOICES, *(f"{metric}_{split}" for split in SEEN for metric in ("accuracy", "map"))]
        state = {name: column.copy() for name, column in zip(names, table.T, strict=True)}
        write_tensors(path, state | {"chosen": np.array([[*tried].index(best)])}, save_file)

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the decoder with the parameters in the checkpoint."""
        return _Decoder(inputs, _read(fits[0]))


class _Decoder:
    def __init__(self, inputs: SpacewalkInputs, setting: Setting) -> None:
        self.recordings, self.setting = inputs.annotation.recordings, setting
        self.score = _score(inputs, setting["window_s"])
        used = sum(len(inputs.recordings(split)) for split in SEEN)
        listed = sum(len(inputs.annotation.splits[split]) for split in SEEN)
        shown = ", ".join(f"{name} {value:g}" for name, value in setting.items())
        self.selection = (
            f"highest mean of accuracy and mAP over {used} of {listed} training and validation recordings: {shown}"
        )

    def __call__(self, video: str, items: list[Item]) -> list[Outcome]:
        recording = self.recordings[video]
        (decoded,) = decode([evidence(self.score, recording)], [self.setting])
        scores = decoded[rows(recording, items)]
        return [(0, scores.argmax(axis=1), scores.astype(np.float32))]


def climb(values: Callable[[Sequence[Setting]], Sequence[float]], choices: Mapping[str, Sequence[float]]) -> Setting:
    """Return a setting that no change of a single parameter improves, starting at the first of all ``choices``.

    values: returns the objective of each setting; it is called with all values of a parameter at once. Ties go to the
    first.
    """
    best = {name: tried[0] for name, tried in choices.items()}
    before = None
    while best != before:
        before = best
        for name, tried in choices.items():
            settings = [best, *({**best, name: each} for each in tried)]
            best = settings[int(np.argmax(values(settings)))]
    return best


def _score(inputs: SpacewalkInputs, window_s: float) -> Chooser | None:
    """Return the chooser that scores windows; None if the order alone is decoded."""
    return chooser(scorer(inputs), window_s) if inputs.parts[1:] else None


def scorer(inputs: SpacewalkInputs) -> SpacewalkInputs:
    """Return the inputs of the entry whose scores are decoded.

    Raises ConfigError if the entry has features only for the samples' windows.
    """
    part = inputs.parts[1]
    clips = part.entry.backbone and inputs.benchmark.pipeline.features.describes_clips(part.entry.backbone)
    if clips or (part.entry.kind.texts == "windows" and {*part.entry.blocks} & {*"TC"}):
        raise ConfigError(
            f"config: {inputs.benchmark.name}.entries.{inputs.entry.id}.settings.scorer: {part.entry.id!r} is not "
            "allowed; name one that scores any window: TF-IDF, sentences, or video of every second"
        )
    return part


def times_s(recording: Recording) -> Array:
    """Return the (T,) times of the grid, in seconds."""
    start_s = preview_end_s(recording)
    return start_s + STEP_S * np.arange(max(1, int((recording.duration_s - start_s) / STEP_S)), dtype=np.float64)


def rows(recording: Recording, items: Sequence[Item]) -> NDArray[np.int64]:
    """Return the (N,) indices of the grid's times nearest to the samples."""
    grid = times_s(recording)
    nearest = np.rint((np.array([item.t_s for item in items]) - grid[0]) / STEP_S)
    found: NDArray[np.int64] = nearest.clip(0, len(grid) - 1).astype(np.int64)
    return found


def evidence(score: Chooser | None, recording: Recording) -> Array:
    """Return the (T, K) scores of the steps on the grid, standardised per step to mean 0 and deviation 1, or all 0."""
    grid = times_s(recording)
    if score is None:
        return np.zeros((len(grid), recording.n_steps))
    windows = [Item(id=i, frame=-1, t_s=t_s, label=0) for i, t_s in enumerate(grid.tolist())]
    ((_, _, scores),) = score(recording.video, windows)
    assert scores is not None
    centred = scores[:, 1:] - scores[:, 1:].mean(axis=0, dtype=np.float64)
    deviation = centred.std(axis=0)
    standardised: Array = np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 1e-9)
    return standardised


def decode(scores: Sequence[Array], settings: Sequence[Setting]) -> Iterator[Array]:
    """Yield, for each setting, the (T, K+1) log posteriors of the labels, each divided by its expected time.

    They are normalised over labels. scores: for each setting, the standardised (T, K) scores of the same recording.
    """
    n_times, n_steps = scores[0].shape
    matrices, told = [], []
    for each, setting in zip(scores, settings, strict=True):
        leave = 1 - np.exp(-n_steps / (setting["stay"] * n_times))
        matrices.append(transitions(n_steps, leave=leave, reach=setting["reach"], back=setting["back"]))
        outside = np.full((n_times, 1), setting["irrelevant"])
        told.append(setting["scale"] * STEP_S / 60 * np.concatenate([outside, each, outside], axis=1))
    for states in log_posteriors(np.eye(n_steps + 2)[0], np.array(matrices), np.array(told)):
        labels = np.concatenate([np.logaddexp(states[:, :1], states[:, -1:]), states[:, 1:-1]], axis=1)
        shares = labels - log_sum(labels, axis=0)
        yield np.asarray(np.maximum(shares - log_sum(shares, axis=1)[:, None], LEAST))


def _metrics(scores: Array, items: Sequence[Item]) -> tuple[float, float]:
    """Return the accuracy and mAP, in percent."""
    labels = np.array([item.label for item in items])
    right = accuracy(labels, scores.argmax(axis=1), n_classes=scores.shape[1])
    ranked = [average_precision(scores[:, k], labels == k) for k in range(1, scores.shape[1])]
    return 100 * right, 100 * float(np.nanmean(ranked))


def _read(path: Path) -> Setting:
    with loaded(path) as state:
        (row,) = state["chosen"].tolist()
        return {name: float(state[name][row]) for name in CHOICES}
