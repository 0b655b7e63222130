"""Features of windows and steps: concatenated blocks of video, transcript and caption (paper Sec. 5.1, 5.2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.windows import window

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class Features:
    """The features of windows and steps from an entry's encoder."""

    inputs: SpacewalkInputs

    def windows(self, video: str, items: Sequence[Item], context_s: float) -> Iterator[Rows]:
        """Yield (N, D) features f^s of the samples' windows; in retrieval, then of the first and second candidates.

        context_s: the window length in seconds. The transcript's block is repeated if the steps have both narrations
        and captions, because it is compared with each.
        """
        blocks = self.inputs.entry.blocks
        for times_s in zip(*(item.times_s for item in items), strict=True):
            text = self._texts(video, times_s, context_s) if {*blocks} & {*"TC"} else None
            seen = self._seen(video, times_s, context_s) if "V" in blocks else None
            yield self._joined([seen if block == "V" else text for block in blocks])

    def steps(self, video: str) -> Rows:
        """Return the (K+1, D) features f^a of the labels 0..K.

        Irrelevant has the embedding of its description in all blocks, including the video block: the encoder's text
        and video embeddings must share one space. Its row is NaN if the encoder has no text tower.
        """
        inputs = self.inputs
        if inputs.benchmark.texts_by(inputs.entry):
            narrations, captions = zip(*inputs.text(video).step_texts(), strict=True)
            store = inputs.embeddings(video)
            texts = {"T": store(narrations), "C": store(captions)}
            irrelevant = texts["T"][:1]
        else:
            texts, irrelevant = {}, np.array([[np.nan]], np.float32)
        blocks = []
        for block in inputs.entry.blocks:
            if block in texts:
                blocks.append(texts[block])
                continue
            spans = [step.animation_s for step in inputs.annotation.recordings[video].steps if step.animation_s]
            steps = self._spans(video, spans)
            blocks.append(np.concatenate([np.broadcast_to(irrelevant, steps[:1].shape), steps]))
        return self._joined(blocks)

    def _texts(self, video: str, times_s: Sequence[float], context_s: float) -> Rows:
        text = self.inputs.text(video)
        return self.inputs.embeddings(video)(text.texts(text.windows_s(times_s, context_s)))

    def _seen(self, video: str, times_s: Sequence[float], context_s: float) -> Rows:
        duration_s = self.inputs.annotation.recordings[video].duration_s
        return self._spans(video, [window(t_s, context_s, duration_s) for t_s in times_s])

    def _spans(self, video: str, spans: Sequence[tuple[float, float]]) -> Rows:
        """Return a row for each span: the features of the listed clip, or the mean over the span's seconds."""
        bank = self.inputs.bank
        if self.inputs.benchmark.pipeline.features.describes_clips(self.inputs.entry.backbone):
            return np.array([bank.clip(video, *span) for span in spans], np.float32)
        starts_s, ends_s = zip(*spans, strict=True)
        return np.asarray(bank.means([video] * len(spans), starts_s, ends_s), np.float32)

    def _joined(self, blocks: Sequence[Rows | None]) -> Rows:
        rows = [block for block in blocks if block is not None]
        if self.inputs.benchmark.normalise(self.inputs.entry) == "block":
            rows = [row / np.maximum(np.linalg.norm(row, axis=1, keepdims=True), 1e-12) for row in rows]
        joined: Rows = np.concatenate(rows, axis=1)
        return joined


@dataclass(frozen=True)
class SentenceFeatures(Features):
    """Features with the mean embedding of a window's sentences instead of the embedding of its truncated text."""

    def _texts(self, video: str, times_s: Sequence[float], context_s: float) -> Rows:
        text, store = self.inputs.text(video), self.inputs.embeddings(video)
        vectors = store([sentence.text for sentence in text.sentences])
        sums = np.concatenate([np.zeros((1, vectors.shape[1])), vectors.cumsum(axis=0, dtype=np.float64)])
        return np.stack([_mean(vectors, sums, rows) for rows in text.inside(text.windows_s(times_s, context_s))])


def _mean(vectors: Rows, sums: NDArray[np.float64], rows: NDArray[np.int64]) -> Rows:
    """Return the mean of the numbered rows, or zeros if there are none; consecutive rows use the prefix sums."""
    if not len(rows):
        return np.zeros(vectors.shape[1], np.float32)
    if rows[-1] - rows[0] == len(rows) - 1:
        return np.asarray((sums[rows[-1] + 1] - sums[rows[0]]) / len(rows), np.float32)
    mean: Rows = vectors[rows].mean(axis=0)
    return mean
