"""Step recognition without training: features of segments compared with labels in a text tower's space."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np

from stepline.backbones.registry import FAMILIES, files_of, own_file, similarity, text_tower, with_weights
from stepline.benchmarks.segments.inputs import SegmentInputs
from stepline.benchmarks.segments.methods import Recogniser
from stepline.benchmarks.segments.recognition import Segment
from stepline.errors import ConfigError
from stepline.features.text import kept
from stepline.features.unit import unit


class ZeroShot(Recogniser):
    """The step whose text is most similar to the mean features of the segment, in the space of the backbone's tower.

    The similarity is the dot product if the network's own code uses it, otherwise the cosine.
    """

    def recognise(self, inputs: SegmentInputs, segments: Sequence[Segment], fit: Path) -> list[str]:
        """Return the step of each segment; raise ConfigError if texts and features have another dimension."""
        (name,) = inputs.benchmark.features(inputs.entry)
        tower, own = text_tower(name, inputs.benchmark.config), own_file(name, inputs.benchmark.config)
        assert tower is not None, "the entry is declared only with a tower"
        spec = with_weights(tower)
        encoder = import_module(FAMILIES[spec.architecture]).load_text(spec, files_of(spec.weights, own))
        rows = inputs.pooled(segments)
        texts = list(dict.fromkeys(text for steps in inputs.steps.values() for text in inputs.texts(steps)))
        vectors = kept(inputs.benchmark.name, inputs.release, texts, encoder)(texts).astype(np.float64)
        if vectors.shape[1] != rows.shape[1]:
            raise ConfigError(
                f"{name}: its text tower has vectors of {vectors.shape[1]} numbers, its features {rows.shape[1]}"
            )
        if similarity(inputs.footage.pipeline.features.spec_of(name)) == "cosine":
            rows, vectors = unit(rows), unit(vectors)
        place = {text: index for index, text in enumerate(texts)}
        found = []
        for each, row in zip(segments, rows, strict=True):
            steps = inputs.steps[each.procedure]
            choices = vectors[[place[text] for text in inputs.texts(steps)]]
            found.append(steps[int(np.argmax(choices @ row))])
        return found
