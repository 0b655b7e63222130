"""PDVC with Hungarian, SODA or SoftSODA matching (Sec. 4, 5.2), on learned or on ground-truth proposals."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.methods.trained import Trained, features, fractions
from stepline.datasets.pss import Procedure
from stepline.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from stepline.models.pdvc import Pdvc, PdvcConfig

DECAY = 0.5
"""What the learning rate is multiplied by after each of the decay epochs."""


class PdvcMethod(Trained["Pdvc"]):
    """PDVC; of learned proposals the epoch of the best mean SODA-D F1 on val is kept."""

    def fit(self, inputs: PssInputs, seed: int, path: Path) -> None:
        """Fit on train; keep the epoch of the best mean SODA-D F1 on val, or with given segments of the least loss.

        Raises ConfigError where a training video has more segments than there are queries.
        """
        config, most = _config(inputs), inputs.options["pdvc"]["train_segments"]
        longest = max(len(each.segments) for each in inputs.used("train"))
        if config.proposals == "learned" and min(longest, most or longest) > config.queries:
            raise ConfigError(
                f"config: pss.pdvc.queries: {config.queries} is not allowed; a training video has {longest} segments"
            )
        super().fit(inputs, seed, path)

    def build(self, inputs: PssInputs) -> "Pdvc":
        """Return a model of the configured size."""
        from stepline.models.pdvc import Pdvc

        return Pdvc(_config(inputs))

    def loss(self, model: "Pdvc", inputs: PssInputs, procedure: Procedure) -> "torch.Tensor":
        """Return the loss on a video's segments and sentences, of long videos on as many as are configured, drawn."""
        import torch

        n, most = len(procedure.segments), inputs.options["pdvc"]["train_segments"]
        return _loss(
            model, inputs, procedure, sorted(torch.randperm(n)[:most].tolist()) if most and n > most else range(n)
        )

    def val_loss(self, model: "Pdvc", inputs: PssInputs, videos: Sequence[Procedure]) -> float:
        """Return 1 less the mean SODA-D F1, with given segments the mean loss."""
        if model.config.proposals == "learned":
            return super().val_loss(model, inputs, videos)
        return float(np.mean([float(_loss(model, inputs, each, range(len(each.segments)))) for each in videos]))

    def training(self, inputs: PssInputs) -> dict[str, Any]:
        """Return the largest norm of the gradient, and the decay of the step size after some epochs."""
        options = inputs.options["pdvc"]
        return {
            "clip": options["clip"],
            "factor": lambda epochs: DECAY ** sum(epochs >= each for each in options["decay_epochs"]),
        }

    def decode(self, model: "Pdvc", inputs: PssInputs, procedure: Procedure) -> dict[str, Any]:
        """Return the segments of a video, given ones as they were given, their scores and sentences."""
        given = None if model.config.proposals == "learned" else fractions(inputs, procedure)
        decoded = model.decode(_features(inputs, procedure), duration_s=procedure.duration_s, segments=given)
        seconds = (decoded.segments.double().cpu() * procedure.duration_s).tolist()
        return {
            "segments": tuple(map(tuple, seconds)) if given is None else procedure.segments,
            "scores": tuple(decoded.scores.tolist()),
            "sentences": tuple(map(inputs.words.decode, decoded.captions)),
        }


def _config(inputs: PssInputs) -> "PdvcConfig":
    from stepline.models.pdvc import PdvcConfig

    options, settings = inputs.options["pdvc"], inputs.entry.settings
    return PdvcConfig(
        feature_dim=inputs.dimension,
        vocabulary=inputs.words.size,
        length=inputs.options["length"][inputs.release],
        queries=options["queries"],
        hidden=options["hidden"],
        feedforward=options["hidden"],
        caption_hidden=options["hidden"],
        attention_hidden=options["hidden"],
        encoder_layers=options["layers"],
        decoder_layers=options["layers"],
        levels=options["levels"],
        most_segments=options["most_segments"],
        words=options["words"],
        dropout=options["dropout"],
        matcher=settings["matcher"],
        proposals=settings["proposals"],
        cost=options["cost"],
        gamma=options["gamma"],
        soft_weight=options["soft_weight"],
    )


def _features(inputs: PssInputs, procedure: Procedure) -> "torch.Tensor":
    return features(inputs, procedure, inputs.options["length"][inputs.release])


def _loss(model: "Pdvc", inputs: PssInputs, procedure: Procedure, kept: Sequence[int]) -> "torch.Tensor":
    """Return the loss on some of a video's segments and their sentences."""
    import torch

    ids = [inputs.words.encode(procedure.sentences[each], model.config.words - 2) for each in kept]
    captions = torch.zeros(len(ids), max(map(len, ids)), dtype=torch.int64)
    for row, each in zip(captions, ids, strict=True):
        row[: len(each)] = torch.tensor(each)
    return model.loss(
        _features(inputs, procedure),
        fractions(inputs, procedure)[list(kept)],
        captions.to(inputs.device),
        duration_s=procedure.duration_s,
    )
