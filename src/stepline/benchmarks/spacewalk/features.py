"""Features of windows and steps: blocks of video, transcript and caption, concatenated (paper Sec. 5.1, 5.2)."""

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
    """The features that an entry's encoder makes of windows and steps."""

    inputs: SpacewalkInputs

    def windows(self, video: str, items: Sequence[Item], context_s: float) -> Iterator[Rows]:
        """Yield (N, D) features f^s of the samples' windows, then, in retrieval, of first and second candidates.

        The transcript stands against narration and against caption, so it comes twice where both do.
        """
        blocks = self.inputs.entry.blocks
        for times_s in zip(*(item.times_s for item in items), strict=True):
            text = self._texts(video, times_s, context_s) if {*blocks} & {*"TC"} else None
            seen = self._seen(video, times_s, context_s) if "V" in blocks else None
            yield self._joined([seen if block == "V" else text for block in blocks])

    def steps(self, video: str) -> Rows:
        """Return the (K+1, D) features f^a of the labels 0..K.

        Irrelevant's description stands in all blocks, also that of video, for which its encoders need one space; it is
        NaN where there is no text tower.
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
        """Return a row for each span: the listed clip's, or the mean of its seconds'."""
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
    """The same, with the mean of the sentences of a window in the place of its truncated text."""

    def _texts(self, video: str, times_s: Sequence[float], context_s: float) -> Rows:
        text, store = self.inputs.text(video), self.inputs.embeddings(video)
        vectors = store([sentence.text for sentence in text.sentences])
        sums = np.concatenate([np.zeros((1, vectors.shape[1])), vectors.cumsum(axis=0, dtype=np.float64)])
        return np.stack([_mean(vectors, sums, rows) for rows in text.inside(text.windows_s(times_s, context_s))])


def _mean(vectors: Rows, sums: NDArray[np.float64], rows: NDArray[np.int64]) -> Rows:
    """Return the mean of some rows, zeros of none; of consecutive ones by prefix sums."""
    if not len(rows):
        return np.zeros(vectors.shape[1], np.float32)
    if rows[-1] - rows[0] == len(rows) - 1:
        return np.asarray((sums[rows[-1] + 1] - sums[rows[0]]) / len(rows), np.float32)
    mean: Rows = vectors[rows].mean(axis=0)
    return mean
