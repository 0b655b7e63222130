"""ActionFormer (Zhang et al., 2022): segments of steps from a temporal pyramid, with classes or step texts."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import Entry
from stepline.benchmarks.htstep.inputs import HtstepInputs
from stepline.benchmarks.htstep.methods.heads import Grounder, Head
from stepline.benchmarks.htstep.methods.videos import Articles, Learned, step_vectors
from stepline.models.actionformer_config import ActionFormerConfig, Decoding

Texts = NDArray[np.float32]


class ActionFormerMethod(Head):
    """ActionFormer with a class for each step, or ActionFormer-T, which compares points with the texts of steps."""

    def train(self, inputs: HtstepInputs, learned: Learned, seed: int, path: Path, resume: str, what: str) -> None:
        """Fit on the segments of all steps."""
        from stepline.models.actionformer_training import fit_actionformer

        options = inputs.options["actionformer"]
        texts = step_vectors(inputs, inputs.entry, learned.steps) if _has_texts(inputs.entry) else None
        fit_actionformer(
            _config(inputs, texts, len(learned.steps)),
            learned.videos,
            path,
            texts=texts,
            epochs=options["epochs"],
            warmup_epochs=options["warmup_epochs"],
            batch_size=options["batch_size"],
            learning_rate=options["learning_rate"],
            weight_decay=options["weight_decay"],
            seed=seed,
            device=inputs.device,
            resume=resume,
            begin=inputs.begin(seed),
            what=what,
        )

    def grounder(self, inputs: HtstepInputs, entry: Entry, articles: Articles, path: Path) -> Grounder:
        """Return a function that predicts segments by soft NMS, and the confidence of each second and step."""
        from stepline.models.actionformer import ActionFormer
        from stepline.models.actionformer_grounding import ground, per_second
        from stepline.models.training import loaded, restore

        texts = step_vectors(inputs, entry, articles.steps) if _has_texts(entry) else None
        with loaded(path) as parameters:
            model = restore(ActionFormer(_config(inputs, texts, len(articles.steps))), parameters, inputs.device)
        decoding = Decoding(most=inputs.options["actionformer"]["segments"])
        return lambda video: (ground(model, video, texts, settings=decoding), per_second(model, video, texts))


def _has_texts(entry: Entry) -> bool:
    return entry.kind_name == "actionformer_t"


def _config(inputs: HtstepInputs, texts: Texts | None, classes: int) -> ActionFormerConfig:
    options = inputs.options["actionformer"]
    whole = inputs.release == "v1" and inputs.benchmark.trained_on(inputs.entry) != "narrations"
    return ActionFormerConfig(
        feature_dim=inputs.dimension,
        classes=classes if texts is None else None,
        text_dim=None if texts is None else texts.shape[1],
        max_length=options["max_length"],
        embed=options["embed"],
        pyramid_dim=options["embed"],
        head_dim=options["embed"],
        text_embed=options["embed"],
        window=options["window"],
        candidates=options["classes"] if whole else "article",
    )
