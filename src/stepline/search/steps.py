"""The steps of a moment without a captioning model."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stepline.asr.transcript import Sentence
from stepline.models.moments import APART_S, topic_boundaries

STEPS = 7
"""Maximum number of steps; HiREST's moments have 7.6 on average."""


@dataclass(frozen=True)
class Step:
    """A span [start_s, end_s) of a video with a label, "" if there is none."""

    start_s: float
    end_s: float
    label: str = ""


def equal_parts(start_s: float, end_s: float) -> tuple[Step, ...]:
    """Return seven equal parts of a moment, or fewer if they would be shorter than 5 s."""
    count = min(max(int((end_s - start_s) / APART_S), 1), STEPS)
    return tuple(Step(*span) for span in pairwise(np.linspace(start_s, end_s, count + 1).tolist()))


def said_steps(
    lines: Sequence[Sentence],
    vectors: NDArray[np.floating],
    query: NDArray[np.floating],
    start_s: float,
    end_s: float,
) -> tuple[Step, ...]:
    """Return up to seven steps of a moment from its sentences; () if there are none.

    lines: the sentences of the video, ordered by start. vectors: (N, D) embeddings of the sentences. query: (D,)
    embedding of the query. The label of a step is the sentence that starts in it and is most similar to the query; of
    equally similar sentences the first.
    """
    times_s = np.array([line.start_s for line in lines])
    if not ((times_s >= start_s) & (times_s < end_s)).any():
        return ()
    bounds = [start_s, *topic_boundaries(vectors, times_s, start_s, end_s, STEPS), end_s]
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    likeness = (np.einsum("nd,d->n", vectors, query) / np.where(lengths > 0, lengths, 1)).round(6)
    steps = []
    for first_s, last_s in pairwise(bounds):
        inside = np.flatnonzero((times_s >= first_s) & (times_s < last_s))
        steps.append(Step(first_s, last_s, lines[inside[np.argmax(likeness[inside])]].text))
    return tuple(steps)
