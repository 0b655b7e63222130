"""PDVC with Hungarian, SODA or SoftSODA matching (Sec. 4, 5.2), on learned or on ground-truth proposals."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.methods.trained import Trained, device, fit_videos, missed
from stepline.datasets.pss import Procedure
from stepline.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from stepline.models.pdvc import Decoded, Pdvc, PdvcConfig

DECAY = 0.5
"""What the learning rate is multiplied by after each of the decay epochs."""


class PdvcMethod(Trained["Pdvc"]):
    """PDVC; of learned proposals the epoch of the best mean SODA-D F1 on val is kept."""

    def fit(self, inputs: PssInputs, seed: int, path: Path) -> None:
        """Fit on train; keep the epoch of the best mean SODA-D F1 on val, or with given segments of the least loss.

        Raises ConfigError where a training video has more segments than there are queries.
        """
        import torch

        options = inputs.options["pdvc"]
        config = _config(inputs)
        most = options["train_segments"]
        longest = max(len(each.segments) for each in inputs.used("train"))
        if config.proposals == "learned" and min(longest, most or longest) > config.queries:
            raise ConfigError(
                f"config: pss.pdvc.queries: {config.queries} is not allowed; a training video has {longest} segments"
            )

        def loss(model: "Pdvc", procedure: Procedure) -> torch.Tensor:
            n = len(procedure.segments)
            kept = sorted(torch.randperm(n)[:most].tolist()) if most and n > most else range(n)
            return _loss(model, inputs, procedure, kept)

        def val_loss(model: "Pdvc", videos: Sequence[Procedure]) -> float:
            if config.proposals == "learned":
                return missed(videos, lambda each: _decoded(model, inputs, each)[0])
            found = [float(_loss(model, inputs, each, range(len(each.segments)))) for each in videos]
            return float(np.mean(found))

        fit_videos(
            inputs,
            seed,
            path,
            lambda: self.build(inputs),
            loss,
            val_loss,
            clip=options["clip"],
            factor=lambda epochs: DECAY ** sum(epochs >= each for each in options["decay_epochs"]),
        )

    def build(self, inputs: PssInputs) -> "Pdvc":
        """Return a model of the configured size."""
        from stepline.models.pdvc import Pdvc

        return Pdvc(_config(inputs))

    def decode(self, model: "Pdvc", inputs: PssInputs, procedure: Procedure) -> dict[str, Any]:
        """Return the segments of a video, their scores and sentences."""
        segments, decoded = _decoded(model, inputs, procedure)
        return {
            "segments": segments,
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
    import torch

    length = inputs.options["length"][inputs.release]
    return torch.from_numpy(inputs.resized(procedure.video, length)).to(device(inputs))


def _segments(inputs: PssInputs, procedure: Procedure, kept: Sequence[int]) -> "torch.Tensor":
    """Return some of a video's segments as fractions of its duration, (n, 2)."""
    import torch

    fractions = torch.tensor([procedure.segments[each] for each in kept]) / procedure.duration_s
    return fractions.clamp(0, 1).to(device(inputs))


def _loss(model: "Pdvc", inputs: PssInputs, procedure: Procedure, kept: Sequence[int]) -> "torch.Tensor":
    """Return the loss on some of a video's segments and their sentences."""
    import torch

    ids = [inputs.words.encode(procedure.sentences[each], model.config.words - 2) for each in kept]
    captions = torch.zeros(len(ids), max(map(len, ids)), dtype=torch.int64)
    for row, each in zip(captions, ids, strict=True):
        row[: len(each)] = torch.tensor(each)
    return model.loss(
        _features(inputs, procedure),
        _segments(inputs, procedure, kept),
        captions.to(device(inputs)),
        duration_s=procedure.duration_s,
    )


def _decoded(
    model: "Pdvc", inputs: PssInputs, procedure: Procedure
) -> "tuple[tuple[tuple[float, float], ...], Decoded]":
    """Return a video's segments in seconds, given ones as they were given, and all that the model says of it."""
    learned = model.config.proposals == "learned"
    given = None if learned else _segments(inputs, procedure, range(len(procedure.segments)))
    decoded = model.decode(_features(inputs, procedure), duration_s=procedure.duration_s, segments=given)
    if not learned:
        return procedure.segments, decoded
    seconds = (decoded.segments.double().cpu() * procedure.duration_s).tolist()
    return tuple((start_s, end_s) for start_s, end_s in seconds), decoded
