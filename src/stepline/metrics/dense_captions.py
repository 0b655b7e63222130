"""How captions with times are scored: by densevid's protocol of dense captioning, and pairwise for SODA-C."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepline.metrics.captions import Scorer, Tokens, ascii_only, tokenise
from stepline.metrics.segments import iou

THRESHOLDS = (0.3, 0.5, 0.7, 0.9)
"""Of temporal IoU, from which a predicted and a true segment are a pair."""

_GARBAGE: Tokens = ["abc123!@#"]
"""The reference of a prediction without a pair, as one token: that is what PTBTokenizer makes of it."""


class Captioned(NamedTuple):
    """segments: (K, 2) start and end, seconds; sentences: the caption of each."""

    segments: NDArray[np.float64]
    sentences: Sequence[str]


def summarisation(
    truth: Mapping[str, Captioned], predicted: Mapping[str, Captioned], scorers: Mapping[str, Scorer]
) -> dict[str, NDArray[np.float64]]:
    """Return the score of each video by each scorer: (videos,), in the order of ``truth``. Its mean is the protocol's.

    At each of the thresholds all pairs of one video whose IoU reaches it are that video's corpus, with an impossible
    reference for predictions without a pair; the values at the thresholds are averaged. A video without predictions
    has 0. What CIDEr takes for rare is therefore rare within one video. (evaluate2018 of densevid_eval, Krishna et al.
    2017, with one set of references, which PDVC evaluates by.)

    truth, predicted: by video; predicted videos that are not in ``truth`` are left out. Raises ValueError where a video
    has not as many sentences as segments.
    """
    videos = []
    for video, (segments, sentences) in truth.items():
        found = predicted.get(video, Captioned(np.zeros((0, 2)), ()))
        if len(segments) != len(sentences) or len(found.segments) != len(found.sentences):
            raise ValueError(f"{video} has not as many sentences as segments")
        candidates, references = _tokens(found.sentences), _tokens(sentences)
        overlaps = iou(found.segments, segments)
        videos.append([_pairs(overlaps >= threshold, candidates, references) for threshold in THRESHOLDS])
    return {
        name: np.array([np.mean([scorer(*pairs).corpus if pairs[1] else 0.0 for pairs in video]) for video in videos])
        for name, scorer in scorers.items()
    }


def _pairs(
    matches: NDArray[np.bool_], candidates: list[Tokens], references: list[Tokens]
) -> tuple[list[list[Tokens]], list[Tokens]]:
    """Return the references and candidates of all matches (predicted, true), and of predictions without one."""
    found: list[tuple[list[Tokens], Tokens]] = []
    for row, candidate in zip(matches, candidates, strict=True):
        of_row = [references[j] for j in np.flatnonzero(row)] or [_GARBAGE]
        found += [([reference], candidate) for reference in of_row]
    return [group for group, _ in found], [candidate for _, candidate in found]


def similarity(
    truth: Sequence[str], predicted: Sequence[str], scorer: Scorer, *, swapped: bool = True
) -> NDArray[np.float64]:
    """Return (true, predicted) scores of each true sentence with each predicted one, of one video.

    swapped: the scorer is given the predictions as references and the true sentences as candidates, as published
        values of SODA-C are computed: METEOR weighs recall more, so that matters. False: the usual way round.
    """
    pairs = [(ours, theirs) for ours in _tokens(truth) for theirs in _tokens(predicted)]
    if not pairs:
        return np.zeros((len(truth), len(predicted)))
    if swapped:
        pairs = [(theirs, ours) for ours, theirs in pairs]
    scores = scorer([[reference] for reference, _ in pairs], [candidate for _, candidate in pairs])
    return scores.segments.reshape(len(truth), len(predicted))


def _tokens(sentences: Sequence[str]) -> list[Tokens]:
    return [tokenise(ascii_only(sentence)) for sentence in sentences]
