"""Grounding without training: features of a video compared with texts of steps in their joint space."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from stepline.backbones.registry import similarity
from stepline.benchmark import Method
from stepline.benchmarks.htstep.inputs import HtstepInputs
from stepline.benchmarks.htstep.kinds import Found
from stepline.benchmarks.htstep.methods.videos import DECIMALS, Articles, found, step_vectors, unit
from stepline.errors import ConfigError
from stepline.models.blobs import blobs


class ZeroShot(Method[HtstepInputs, Found]):
    """Blobs in the cosines of each second and step, shifted to [0, 1]; the best second is the step's time.

    If the network's own code uses the dot product, the time is the second with the highest dot product.
    """

    def predict(self, inputs: HtstepInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the segments of each video; raise ConfigError if features and texts differ in size."""
        (name,), footage, articles = inputs.benchmark.features(inputs.entry), inputs.footage, Articles(inputs)
        by_dot = footage.is_backbone(name) and similarity(footage.pipeline.features.spec_of(name)) != "cosine"
        vectors = step_vectors(inputs, inputs.entry, articles.steps).astype(np.float64)
        for each in inputs.evaluated:
            video = articles.video(each)
            rows, texts = np.asarray(video.rows, np.float64), vectors[video.candidates]
            if rows.shape[1] != texts.shape[1]:
                raise ConfigError(
                    f"config: htstep.features.{inputs.entry.features}: rows of {rows.shape[1]} numbers cannot be "
                    f"compared with texts of {texts.shape[1]}; name features of the texts' network"
                )
            cosines = unit(rows) @ unit(texts).T
            said = blobs(((1 + cosines) / 2).round(DECIMALS))
            seconds = (rows @ texts.T if by_dot else cosines).round(DECIMALS)
            yield found(
                each, said._replace(step=video.candidates[said.step]), articles.steps, seed=0, confidence=seconds
            )
