"""Scores of timed captions: densevid's protocol of dense captioning, and pairwise similarities for SODA-C."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepline.metrics.captions import Scorer, Tokens, ascii_only, tokenise
from stepline.metrics.segments import iou

THRESHOLDS = (0.3, 0.5, 0.7, 0.9)
"""The temporal IoUs from which a predicted and a true segment form a pair."""

_GARBAGE: Tokens = ["abc123!@#"]
"""The reference of an unpaired prediction. PTBTokenizer turns it into this one token."""


class Captioned(NamedTuple):
    """segments: (K, 2) start and end in seconds. sentences: one caption per segment."""

    segments: NDArray[np.float64]
    sentences: Sequence[str]


def summarisation(
    truth: Mapping[str, Captioned], predicted: Mapping[str, Captioned], scorers: Mapping[str, Scorer]
) -> dict[str, NDArray[np.float64]]:
    """Return each scorer's score of each video: (videos,), in the order of ``truth``. The protocol reports the mean.

    At each threshold, the corpus of a video consists of all its pairs whose IoU reaches the threshold; an unpaired
    prediction gets an impossible reference. The scores at the thresholds are averaged. A video without predictions
    scores 0. CIDEr therefore takes its document frequencies from one video. This is evaluate2018 of densevid_eval
    (Krishna et al. 2017) with one set of references, which PDVC uses.

    truth, predicted: by video; predicted videos that are not in ``truth`` are ignored. Raises ValueError if a video has
    different numbers of sentences and segments.
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
    """Return the references and candidates of all matches (predicted, true) and of unmatched predictions."""
    found: list[tuple[list[Tokens], Tokens]] = []
    for row, candidate in zip(matches, candidates, strict=True):
        of_row = [references[j] for j in np.flatnonzero(row)] or [_GARBAGE]
        found += [([reference], candidate) for reference in of_row]
    return [group for group, _ in found], [candidate for _, candidate in found]


def similarity(
    truth: Sequence[str], predicted: Sequence[str], scorer: Scorer, *, swapped: bool = True
) -> NDArray[np.float64]:
    """Return the (true, predicted) scores of each true sentence with each predicted sentence of one video.

    swapped: pass the predictions as references and the true sentences as candidates, as for published SODA-C values.
        METEOR weights recall more, so the order matters. False is the usual order.
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
