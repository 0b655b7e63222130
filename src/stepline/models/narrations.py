"""Weak supervision by narrations: a sentence is assumed to describe the action while it is spoken.

Sentences replace steps, so that a grounding model can be pre-trained on any narrated video. VINA's pseudo-labels
(Mavroudi et al., 2023) are different: steps of wikiHow articles, aligned to similar narrations by a model that is
trained at the same time. Their texts are written steps and may have no segment. Here every text is spoken language with
its own time as the segment.
"""

import math
from collections.abc import Sequence

import numpy as np

from stepline.models.grounding import GroundedVideo, Rows

LONGER_S, SHORTER_S = 64, 1000
"""TAN trains on videos longer than ``LONGER_S`` and shorter than ``SHORTER_S`` seconds."""


def narrated_video(
    rows: Rows,
    duration_s: float,
    sentences: Sequence[tuple[float, float, str]],
    *,
    first: int,
    window_s: int | None = None,
    most: int = 35,
    seed: int = 0,
) -> GroundedVideo | None:
    """Return a video, or a window of it, with its sentences as steps; None if it is not usable.

    rows: (T, D) features, one row per second. sentences: (start_s, end_s, text) of each, in order; blank sentences and
    sentences without length are ignored. Sentence i is step ``first`` + i; the caller has its text.
    window_s: the length of the window, 64 in TAN; None for the whole video. The window starts in the second where a
    sentence starts; ``seed`` chooses this sentence among those that are followed by speech for long enough. It contains
    the sentences that start in it, clipped to it. most: the maximum number of sentences; a longer window ends with the
    last of them. In a whole video with more sentences, a run of this length is chosen in the same way.
    A video is not usable if its length is not between ``LONGER_S`` and ``SHORTER_S``, or if it has no speech.
    """
    end = length = min(len(rows), math.ceil(duration_s))
    said = [
        (number, start_s, min(end_s, length))
        for number, (start_s, end_s, text) in enumerate(sentences)
        if text.strip() and 0 <= start_s < min(end_s, length)
    ]
    if not LONGER_S < duration_s < SHORTER_S or not said:
        return None
    begin = 0
    if window_s is not None or len(said) > most:
        if window_s is None:
            places = len(said) - most + 1
        else:
            places = sum(start_s <= said[-1][2] - window_s for _, start_s, _ in said)
        said = said[np.random.default_rng(seed).integers(max(places, 1)) :]
        begin = math.floor(said[0][1])
        end = min(length, begin + (window_s or length))
        said = [each for each in said if each[1] < end]
        if len(said) > most:
            said = said[:most]
            end = min(end, math.ceil(said[-1][2]))
    numbers = np.array([first + number for number, *_ in said])
    segments_s = np.array([(start_s - begin, min(end_s, end) - begin) for _, start_s, end_s in said])
    return GroundedVideo(
        rows=rows[begin:end], duration_s=end - begin, candidates=numbers, segments_s=segments_s, steps=numbers
    )
