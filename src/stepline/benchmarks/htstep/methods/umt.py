"""UMT (Liu et al., 2022) with only its video encoder: each step of the article is a separate query."""

from collections.abc import Sequence
from pathlib import Path

from stepline.benchmark import Entry
from stepline.benchmarks.htstep.inputs import HtstepInputs
from stepline.benchmarks.htstep.methods.heads import Grounder, Head
from stepline.benchmarks.htstep.methods.videos import Articles, Learned, word_vectors
from stepline.models.grounding import Rows
from stepline.models.umt_config import UmtConfig


class UmtMethod(Head):
    """UMT, fitted on the steps that occur in training videos."""

    def train(self, inputs: HtstepInputs, learned: Learned, seed: int, path: Path, resume: str, what: str) -> None:
        """Fit on each step with segments in a video."""
        from stepline.models.umt_training import fit_umt

        options, words = inputs.options["umt"], word_vectors(inputs, inputs.entry, learned.steps)
        fit_umt(
            _config(inputs, words),
            learned.videos,
            path,
            words=words,
            epochs=options["epochs"],
            batch_size=options["batch_size"],
            learning_rate=options["learning_rate"],
            weight_decay=options["weight_decay"],
            seed=seed,
            device=inputs.device,
            resume=resume,
            what=what,
        )

    def grounder(self, inputs: HtstepInputs, entry: Entry, articles: Articles, path: Path) -> Grounder:
        """Return a function that predicts the moments of each step, and the likelihood of a centre in each second."""
        from stepline.models.training import loaded, restore
        from stepline.models.umt import Umt
        from stepline.models.umt_grounding import ground, per_second

        words = word_vectors(inputs, entry, articles.steps)
        with loaded(path) as parameters:
            model = restore(Umt(_config(inputs, words)), parameters, inputs.device)
        return lambda video: (ground(model, video, words), per_second(model, video, words))


def _config(inputs: HtstepInputs, words: Sequence[Rows]) -> UmtConfig:
    options = inputs.options["umt"]
    return UmtConfig(
        feature_dim=inputs.dimension,
        text_dim=words[0].shape[1],
        hidden=options["embed"],
        feedforward=4 * options["embed"],
        padding=options["padding"],
        moments=options["moments"],
    )
