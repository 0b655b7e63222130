"""Retrieval without training: features of videos compared with queries in the text tower's space (Sec. 4.1)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.backbones.registry import similarity
from stepline.benchmark import Method
from stepline.benchmarks.hirest import texts
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.benchmarks.hirest.methods.found import DECIMALS, FRAMES, asked, found, rankings, sampled
from stepline.errors import ConfigError
from stepline.models.moments import above, around, pooled, uniform_rows

RULES: Mapping[str, Callable[[NDArray[np.float64]], tuple[int, int]]] = {
    "drop_0.05": partial(above, drop=0.05),
    "drop_0.10": partial(above, drop=0.10),
    "around_8": partial(around, reach=8),
}
"""Similarities of the 32 frames -> the first and last frame of the moment."""


class VideoRetrieval(Method[HirestInputs, Found]):
    """The pool by similarity with the query. The setting ``frames`` is how many of a video's 32 frames are averaged.

    The similarity is the dot product if the network's own code uses it; otherwise, and for imported banks, the cosine.
    """

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the ranking of each query; raise ConfigError if ``frames`` is greater than 32."""
        entry, (bank,), (name,) = inputs.entry, inputs.banks, inputs.benchmark.features(inputs.entry)
        if (frames := entry.settings["frames"]) > FRAMES:
            where = f"config: hirest.entries.{entry.id}.settings.frames"
            raise ConfigError(f"{where}: {frames} is greater than the maximum of {FRAMES}")
        network = inputs.footage.is_backbone(name)
        compared = similarity(inputs.footage.pipeline.features.spec_of(name)) if network else "cosine"
        pool = [each.video for each in inputs.used("pool")]
        queries = asked(inputs, pool)
        rows = (bank[video][uniform_rows(len(bank[video]), FRAMES)] for video in pool)
        videos = np.stack([pooled(each, frames, compared) for each in rows])
        yield from rankings(queries, pool, _vectors(inputs, queries) @ videos.T)


class MomentRetrieval(Method[HirestInputs, Found]):
    """The frames around the one most similar to the query, by cosine; the setting ``rule`` is a key of `RULES`.

    A moment extends from the time of its first frame to the time of its last, because the released loader reads frames
    as times. So a moment of a single frame has no length.
    """

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the moment of each pair."""
        (bank,), rule = inputs.banks, RULES[inputs.entry.settings["rule"]]
        queries = list(dict.fromkeys(pair.query for pair in inputs.evaluated))
        vectors = dict(zip(queries, _vectors(inputs, queries), strict=True))
        for pair in inputs.evaluated:
            (block,) = bank.blocks[pair.video]
            rows = sampled(pair.duration_s / block.hop_s, block.length)
            ends = rows[list(rule(_cosines(bank[pair.video][rows], vectors[pair.query])))]
            yield found(pair, moment=tuple((block.t0_s + block.hop_s * ends).tolist()))


def _vectors(inputs: HirestInputs, queries: Sequence[str]) -> NDArray[np.float64]:
    """Return the (N, D) vectors of queries; raise ConfigError if the features have another D."""
    key = inputs.entry.features
    encoder = texts.query_encoder(inputs.benchmark, key)
    vectors = texts.encoded(encoder, "queries", queries).astype(np.float64)
    if vectors.shape[1] != inputs.dimension:
        raise ConfigError(
            f"config: hirest.features.{key}.text: {encoder.spec.name} has vectors of {vectors.shape[1]} numbers, but "
            f"the features have rows of {inputs.dimension}: name their text tower"
        )
    return vectors


def _cosines(rows: NDArray[np.floating], query: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (T,) cosines of rows with the query; 0 for a row of zeros."""
    wide = rows.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1) * np.linalg.norm(query)
    cosines: NDArray[np.float64] = np.divide(wide @ query, lengths, out=np.zeros(len(wide)), where=lengths > 0)
    return cosines.round(DECIMALS)
