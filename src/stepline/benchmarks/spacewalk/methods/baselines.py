"""Blind baselines: methods that see no content."""

import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import (
    GUESS,
    Chooser,
    Labels,
    Outcome,
    SpacewalkMethod,
    preview_end_s,
    without_irrelevant,
)
from stepline.datasets.schema import Recording
from stepline.datasets.studies import RETRIEVAL


def linear_in_time(recording: Recording, items: list[Item]) -> NDArray[np.int64]:
    """Return (N,) steps that advance evenly: 1 + floor(u K), at most K.

    u runs from 0 at the first labelled frame of the recording to 1 at the last, so the annotated span is an oracle
    input. u is 0 if they are the same frame.
    """
    labelled = [segment for segment in recording.segments if segment.label >= 0]
    first, last = labelled[0].start_frame, labelled[-1].end_frame - 1
    u = (np.array([item.frame for item in items]) - first) / max(last - first, 1)
    steps: NDArray[np.int64] = np.clip(1 + np.floor(u * recording.n_steps), 1, recording.n_steps).astype(np.int64)
    return steps


def linear_after_preview(recording: Recording, items: list[Item]) -> NDArray[np.float32]:
    """Return (N, K) scores of steps that advance evenly: the negative distance of u from the middle of step k's part.

    u runs from 0 at the end of the preview to 1 at the end of the recording; the middle is (k - 0.5) / K.
    """
    start_s = preview_end_s(recording)
    u = (np.array([item.t_s for item in items]) - start_s) / (recording.duration_s - start_s or 1.0)
    middles = (np.arange(recording.n_steps) + 0.5) / recording.n_steps
    return np.asarray(-np.abs(u[:, None] - middles), np.float32)


def sample_rank(recording: Recording, items: list[Item]) -> NDArray[np.int64]:
    """Return (N,) steps from a sample's rank in the list alone: 1 + floor(rank K / N).

    The list has the same number of samples for each label, in time order, so the rank leaks where labels change.
    """
    rank = np.arange(len(items))
    steps: NDArray[np.int64] = 1 + rank * recording.n_steps // len(items)
    return steps


def equal_segments(recording: Recording, items: list[Item], *, parts: int) -> NDArray[np.int64]:
    """Return (N,) candidates: the one in the query's part of the recording, which is cut into ``parts`` equal parts.

    -1, a guess, if both or none of the candidates are in that part.
    """
    length_s = recording.duration_s / parts
    part = np.floor(np.array([item.times_s for item in items]) / length_s)
    shared = part[:, 1:] == part[:, :1]
    return np.where(shared.sum(axis=1) == 1, shared.argmax(axis=1), GUESS)


_ORACLES: dict[str, Callable[..., Labels]] = {
    "linear-in-time": linear_in_time,
    "sample-rank": sample_rank,
    "equal-segments": equal_segments,
}


class Baseline(SpacewalkMethod):
    """The blind baselines, by the kind of the entry."""

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the baseline that the entry's kind names."""
        return partial(
            {"random": _random, "linear-after-preview": _linear}.get(inputs.entry.kind_name, _baseline), inputs
        )


def _random(inputs: SpacewalkInputs, video: str, items: list[Item]) -> list[Outcome]:
    guess = np.full(len(items), GUESS)
    if inputs.entry.task == RETRIEVAL:
        return [(seed, guess, None) for seed in inputs.entry.seeds]
    ids = [item.id for item in items]
    shape = max(ids) + 1, len(inputs.annotation.recordings[video].steps)
    return [
        (seed, guess, np.random.default_rng([seed, zlib.crc32(video.encode())]).random(shape, dtype=np.float32)[ids])
        for seed in inputs.entry.seeds
    ]


def _baseline(inputs: SpacewalkInputs, video: str, items: list[Item]) -> list[Outcome]:
    entry = inputs.entry
    return [(0, _ORACLES[entry.kind_name](inputs.annotation.recordings[video], items, **entry.settings), None)]


def _linear(inputs: SpacewalkInputs, video: str, items: list[Item]) -> list[Outcome]:
    scores = linear_after_preview(inputs.annotation.recordings[video], items)
    return [(0, scores.argmax(axis=1) + 1, without_irrelevant(scores))]
