"""MT+BCE: a transformer over a video's seconds and its article's sentences, with blobs in its scores as segments."""

from collections.abc import Sequence
from pathlib import Path

from stepline.benchmark import Entry
from stepline.benchmarks.htstep.inputs import HtstepInputs
from stepline.benchmarks.htstep.methods.heads import Grounder, Head
from stepline.benchmarks.htstep.methods.videos import Articles, Learned, sentence_vectors
from stepline.models.grounding import Rows
from stepline.models.step_grounding_config import StepGroundingConfig

NARRATED = 1024
"""The maximum length of a video in seconds if training starts with narrations (App. B)."""


class MtBce(Head):
    """MT+BCE, fitted on all steps of the articles of training videos, shown or not."""

    def train(self, inputs: HtstepInputs, learned: Learned, seed: int, path: Path, resume: str, what: str) -> None:
        """Fit on whole articles."""
        from stepline.models.step_grounding_training import fit_step_grounding

        options, sentences = inputs.options["mt_bce"], sentence_vectors(inputs, inputs.entry, learned.steps)
        fit_step_grounding(
            _config(inputs, inputs.entry, sentences),
            learned.videos,
            path,
            sentences=sentences,
            epochs=options["epochs"],
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
        """Return a function that predicts the blobs of each step, and its confidence in each second."""
        from stepline.models.step_grounding import StepGrounding, ground, per_second
        from stepline.models.training import loaded, restore

        sentences = sentence_vectors(inputs, entry, articles.steps)
        with loaded(path) as parameters:
            model = restore(StepGrounding(_config(inputs, entry, sentences)), parameters, inputs.device)
        return lambda video: (ground(model, video, sentences), per_second(model, video, sentences))


def _config(inputs: HtstepInputs, entry: Entry, sentences: Sequence[Rows]) -> StepGroundingConfig:
    options, benchmark = inputs.options["mt_bce"], inputs.benchmark
    narrated = any(benchmark.trained_on(part) == "narrations" for part in benchmark.parts(entry))
    return StepGroundingConfig(
        feature_dim=inputs.dimension,
        text_dim=sentences[0].shape[1],
        width=options["width"],
        joint_layers=options["layers"],
        positions=min(options["max_length"], NARRATED if narrated else options["max_length"]),
    )
