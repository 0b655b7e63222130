"""Methods: from an entry's material to scores of every sample (paper Sec. 5).

A method is made once per entry and window length, then called for one recording after the other. It returns, for every
seed, the chosen labels (N,) and the scores (N, K+1), or (N, 2) in retrieval. Ties: the lowest step label; in retrieval,
where the candidates' order is drawn, equal scores are a guess (-1).
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepline.benchmarks.spacewalk import baselines
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.material import Material, blocks
from stepline.benchmarks.spacewalk.text import RecordingText, window
from stepline.datasets.schema import Split
from stepline.datasets.studies import RETRIEVAL
from stepline.features.text import TextStore
from stepline.models.linear import Matching, apply_linear

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

Labels = NDArray[np.int64]
Scores = NDArray[np.float32]
Outcome = tuple[int, Labels, Scores | None]
Method = Callable[[str, list[Item]], list[Outcome]]


def make_method(material: Material, context_s: float | None, fits: list[Path]) -> Method:
    """Return the entry's method. context_s: the window length in seconds; fits: one checkpoint per seed."""
    kind = material.entry.kind
    if kind == "random":
        return partial(_random, material)
    if kind in _BASELINES:
        return partial(_baseline, material)
    assert context_s is not None
    if kind == "tfidf":
        return _TfIdf(material, context_s)
    if kind == "sentence":
        return partial(_sentence, material, context_s)
    if kind == "video":
        return partial(_video, material, context_s)
    if kind == "sentence-last-layer":
        return partial(_last_layer, material, context_s, fits)
    raise ValueError(f"entries of kind {kind!r} are not computed")


def _random(material: Material, video: str, items: list[Item]) -> list[Outcome]:
    guess = np.full(len(items), -1)
    if material.entry.task == RETRIEVAL:
        return [(seed, guess, None) for seed in material.entry.seeds]
    ids = [item.id for item in items]
    shape = max(ids) + 1, len(material.release.recordings[video].steps)
    return [
        (seed, guess, np.random.default_rng([seed, zlib.crc32(video.encode())]).random(shape, dtype=np.float32)[ids])
        for seed in material.entry.seeds
    ]


_BASELINES: dict[str, Callable[..., Labels]] = {
    "linear-in-time": baselines.linear_in_time,
    "sample-rank": baselines.sample_rank,
    "equal-segments": baselines.equal_segments,
}


def _baseline(material: Material, video: str, items: list[Item]) -> list[Outcome]:
    entry = material.entry
    chosen = _BASELINES[entry.kind](material.release.recordings[video], items, **entry.settings)
    return [(0, chosen, None)]


class _TfIdf:
    """Zero-shot TF-IDF: dot products of the window with a step's narration and caption, summed.

    Vectors are fitted with one document per sentence and one per step (narration and caption), of the recording itself
    (``fit: video``) or of the training recordings (``fit: train``).
    """

    def __init__(self, material: Material, context_s: float) -> None:
        self.material, self.context_s = material, context_s
        self.own = material.entry.settings["fit"] == "video"
        if not self.own:
            self.vectors = self._fit(material.recordings("train"))

    def _fit(self, videos: Sequence[str]) -> "TfidfVectorizer":
        from sklearn.feature_extraction.text import TfidfVectorizer

        documents = []
        for video in videos:
            text = self.material.text(video)
            documents += [sentence.text for sentence in text.sentences]
            documents += text.step_documents()
        return TfidfVectorizer(sublinear_tf=True, stop_words="english").fit(documents)

    def __call__(self, video: str, items: list[Item]) -> list[Outcome]:
        text = self.material.text(video)
        vectors = self._fit([video]) if self.own else self.vectors
        windows = [vectors.transform(texts) for texts in _window_texts(text, items, self.context_s)]
        if self.material.entry.task == RETRIEVAL:
            query, *candidates = windows
            return [_nearer(np.stack([query.multiply(c).sum(axis=1).A1 for c in candidates], axis=1))]
        narrations, captions = zip(*text.step_texts(), strict=True)
        scores = (windows[0] @ (vectors.transform(narrations) + vectors.transform(captions)).T).toarray()
        return [(0, scores.argmax(axis=1), scores)]


def _sentence(material: Material, context_s: float, video: str, items: list[Item]) -> list[Outcome]:
    """Zero-shot from sentence embeddings: [T, T] against [narration, caption]; in retrieval T against T."""
    text, store, normalise = material.text(video), material.embeddings(video), material.study_config["normalise"]
    windows = [store(texts) for texts in _window_texts(text, items, context_s)]
    if material.entry.task == RETRIEVAL:
        query, *candidates = (blocks([window], normalise) for window in windows)
        return [_nearer(np.stack([(query * candidate).sum(axis=1) for candidate in candidates], axis=1))]
    scores = blocks([windows[0]] * 2, normalise) @ _step_features(text, store, normalise).T
    return [(0, scores.argmax(axis=1), scores)]


def _video(material: Material, context_s: float, video: str, items: list[Item]) -> list[Outcome]:
    """Zero-shot from frames: mean features of window and animation. Irrelevant has no animation and is never chosen."""
    recording, normalise = material.release.recordings[video], material.study_config["normalise"]

    def mean(spans: Sequence[tuple[float, float]]) -> Scores:
        return blocks(
            [np.stack([material.bank.window(video, *span).mean(axis=0, dtype=np.float32) for span in spans])], normalise
        )

    windows = [
        mean([window(t_s, context_s, recording.duration_s) for t_s in times])
        for times in zip(*(item.times_s for item in items), strict=True)
    ]
    if material.entry.task == RETRIEVAL:
        query, *candidates = windows
        return [_nearer(np.stack([(query * candidate).sum(axis=1) for candidate in candidates], axis=1))]
    animations = [step.animation_s for step in recording.steps if step.animation_s]
    scores = windows[0] @ mean(animations).T
    return [(0, scores.argmax(axis=1) + 1, _without_irrelevant(scores))]


def matching(material: Material, context_s: float, split: Split) -> Matching:
    """Return the step samples (label > 0) of a split with [T, T] features, for last-layer fine-tuning."""
    normalise = material.study_config["normalise"]
    items = material.items(split)
    features, owner, label, steps = [], [], [], []
    for number, video in enumerate(material.recordings(split)):
        text, store = material.text(video), material.embeddings(video)
        kept = [item for item in items[video] if item.label > 0]
        features.append(blocks([store(next(_window_texts(text, kept, context_s)))] * 2, normalise))
        owner += [number] * len(kept)
        label += [item.label for item in kept]
        steps.append(_step_features(text, store, normalise)[1:])
    return Matching(features=np.concatenate(features), owner=np.array(owner), label=np.array(label), steps=steps)


def _last_layer(material: Material, context_s: float, fits: list[Path], video: str, items: list[Item]) -> list[Outcome]:
    """Last-layer fine-tuning (Eq. 1 and 2): the best step; scoring puts Irrelevant below a threshold."""
    text, store, normalise = material.text(video), material.embeddings(video), material.study_config["normalise"]
    clips = blocks([store(next(_window_texts(text, items, context_s)))] * 2, normalise)
    steps = _step_features(text, store, normalise)[1:]
    outcomes: list[Outcome] = []
    for seed, fit in zip(material.entry.seeds, fits, strict=True):
        scores = apply_linear(fit, clips) @ steps.T
        outcomes.append((seed, scores.argmax(axis=1) + 1, _without_irrelevant(scores)))
    return outcomes


def _window_texts(text: RecordingText, items: list[Item], context_s: float) -> Iterator[list[str]]:
    """Yield the (N,) texts of the windows, then, in retrieval, those of the first and second candidates."""
    for times in zip(*(item.times_s for item in items), strict=True):
        yield [text.window(t_s, context_s) for t_s in times]


def _step_features(text: RecordingText, store: TextStore, normalise: str) -> Scores:
    narrations, captions = zip(*text.step_texts(), strict=True)
    return blocks([store(narrations), store(captions)], normalise)


def _nearer(scores: Scores) -> Outcome:
    return 0, np.where(scores[:, 0] == scores[:, 1], -1, scores.argmax(axis=1)), scores


def _without_irrelevant(scores: Scores) -> Scores:
    return np.concatenate([np.full((len(scores), 1), np.nan, np.float32), scores], axis=1)
