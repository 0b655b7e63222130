"""The values of caption metrics: for each annotated step and, for some metrics, for the whole corpus."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import Values
from stepline.benchmarks.hirest import texts
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.datasets.hirest import Pair
from stepline.metrics.clip_score import clip_score
from stepline.metrics.step_captions import SCORERS

FRACTIONS = ("bert_score", "clip_score")
"""The metrics that the paper prints as fractions; all others are in percent."""
CORPUS = ("meteor", "bleu4", "meteor_stem")
"""The metrics whose value is not the mean over steps."""


def values(
    inputs: HirestInputs, split: str, pairs: Mapping[str, Pair], sentences: Mapping[str, Sequence[str]]
) -> dict[str, Values]:
    """Return the metrics without unmet needs. sentences: by video, one caption for each annotated step."""
    steps = [(video, step) for video in sentences for step in pairs[video].steps]
    references = [step.caption.strip() for _, step in steps]
    candidates = [caption for said in sentences.values() for caption in said]
    about: dict[str, Any] = {
        "videos": [video for video, _ in steps],
        "counts": {"n_listed": len(pairs), "n_samples": len(steps)},
    }
    found = {}
    for name, scorer in SCORERS.items():
        if not inputs.benchmark.missing_of(f"{split}_{name}"):
            scores, scale = scorer(references, candidates), 1 if name in FRACTIONS else 100
            corpus = scale * scores.corpus if name in CORPUS else None
            found[f"{split}_{name}"] = Values(values=scale * scores.segments, corpus=corpus, **about)
    if not inputs.benchmark.clip_score_missing:
        spans = np.array([(step.start_s, step.end_s) for _, step in steps])
        cosines = _clip_scores(inputs, about["videos"], spans, candidates)
        about["counts"] = about["counts"] | {"n_samples": int(np.isfinite(cosines).sum())}
        found[f"{split}_clip_score"] = Values(values=cosines, **about)
    return found


def _clip_scores(
    inputs: HirestInputs, videos: Sequence[str], spans: NDArray[np.float64], captions: Sequence[str]
) -> NDArray[np.float64]:
    """Return the (N,) mean cosines of captions with the frames of their steps; NaN for a step without frames."""
    bank = inputs.each_second(inputs.benchmark.clip_features)
    there = [place for place, video in enumerate(videos) if video in bank]
    found = np.full(len(videos), np.nan)
    if there:
        vectors = texts.encoded(texts.query_encoder(inputs.benchmark, "clip"), "captions", captions)[there]
        found[there] = clip_score(vectors, bank, [videos[place] for place in there], spans[there])
    return found
