"""PDVC with Hungarian, SODA or SoftSODA matching (Sec. 4, 5.2), on learned or on ground-truth proposals."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stepline.benchmarks.pss.material import Material
from stepline.benchmarks.pss.methods import Method
from stepline.benchmarks.pss.methods.trained import device, fit_videos, fitted, missed
from stepline.benchmarks.pss.predictions import Prediction
from stepline.benchmarks.pss.words import Words
from stepline.datasets.pss import Procedure
from stepline.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from stepline.models.pdvc import Decoded, Pdvc, PdvcConfig

DECAY = 0.5
"""What the learning rate is multiplied by after each of the decay epochs."""


def fit(material: Material, seed: int, path: Path) -> None:
    """Fit on train; keep the epoch of the best mean SODA-D F1 on val, or with given segments of the least loss.

    Raises ConfigError where a training video has more segments than there are queries.
    """
    import torch

    from stepline.models.pdvc import Pdvc

    options = material.plan.study_config["pdvc"]
    words = _words(material)
    config = _config(material, words)
    most = options["train_segments"]
    longest = max(len(each.segments) for each in material.used("train"))
    if config.proposals == "learned" and min(longest, most or longest) > config.queries:
        raise ConfigError(
            f"config: pss.pdvc.queries: {config.queries} is not allowed; a training video has {longest} segments"
        )

    def loss(model: Pdvc, procedure: Procedure) -> torch.Tensor:
        n = len(procedure.segments)
        kept = sorted(torch.randperm(n)[:most].tolist()) if most and n > most else range(n)
        return _loss(model, material, procedure, words, kept)

    def val_loss(model: Pdvc, videos: Sequence[Procedure]) -> float:
        if config.proposals == "learned":
            return missed(videos, lambda each: _decoded(model, material, each)[0])
        found = [float(_loss(model, material, each, words, range(len(each.segments)))) for each in videos]
        return float(np.mean(found))

    fit_videos(
        material,
        seed,
        path,
        lambda: Pdvc(config),
        loss,
        val_loss,
        clip=options["clip"],
        factor=lambda epochs: DECAY ** sum(epochs >= each for each in options["decay_epochs"]),
    )


def make(material: Material, fits: list[Path]) -> Iterator[tuple[int, Method]]:
    """Yield the fitted model of each seed."""
    from stepline.models.pdvc import Pdvc

    words = _words(material)

    def predict(model: Pdvc, seed: int, split: str, procedure: Procedure) -> Prediction:
        segments, decoded = _decoded(model, material, procedure)
        return Prediction(
            seed=seed,
            split=split,
            video=procedure.video,
            segments=segments,
            scores=tuple(decoded.scores.tolist()),
            sentences=tuple(map(words.decode, decoded.captions)),
        )

    yield from fitted(material, fits, lambda: Pdvc(_config(material, words)), predict)


def _words(material: Material) -> Words:
    if material.plan.study_config["vocabulary"] == "released":
        return Words.released(material.dataset)
    return Words.counted(sentence for each in material.used("train") for sentence in each.sentences)


def _config(material: Material, words: Words) -> "PdvcConfig":
    from stepline.models.pdvc import PdvcConfig

    options, settings = material.plan.study_config["pdvc"], material.entry.settings
    return PdvcConfig(
        feature_dim=material.dimension,
        vocabulary=words.size,
        length=material.plan.study_config["length"][material.dataset],
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


def _features(material: Material, procedure: Procedure) -> "torch.Tensor":
    import torch

    length = material.plan.study_config["length"][material.dataset]
    return torch.from_numpy(material.features(procedure.video, length)).to(device(material))


def _segments(material: Material, procedure: Procedure, kept: Sequence[int]) -> "torch.Tensor":
    """Return some of a video's segments as fractions of its duration, (n, 2)."""
    import torch

    fractions = torch.tensor([procedure.segments[each] for each in kept]) / procedure.duration_s
    return fractions.clamp(0, 1).to(device(material))


def _loss(model: "Pdvc", material: Material, procedure: Procedure, words: Words, kept: Sequence[int]) -> "torch.Tensor":
    """Return the loss on some of a video's segments and their sentences."""
    import torch

    ids = [words.encode(procedure.sentences[each], model.config.words - 2) for each in kept]
    captions = torch.zeros(len(ids), max(map(len, ids)), dtype=torch.int64)
    for row, each in zip(captions, ids, strict=True):
        row[: len(each)] = torch.tensor(each)
    return model.loss(
        _features(material, procedure),
        _segments(material, procedure, kept),
        captions.to(device(material)),
        duration_s=procedure.duration_s,
    )


def _decoded(
    model: "Pdvc", material: Material, procedure: Procedure
) -> "tuple[tuple[tuple[float, float], ...], Decoded]":
    """Return a video's segments in seconds, given ones as they were given, and all that the model says of it."""
    learned = model.config.proposals == "learned"
    given = None if learned else _segments(material, procedure, range(len(procedure.segments)))
    decoded = model.decode(_features(material, procedure), duration_s=procedure.duration_s, segments=given)
    if not learned:
        return procedure.segments, decoded
    seconds = (decoded.segments.double().cpu() * procedure.duration_s).tolist()
    return tuple((start_s, end_s) for start_s, end_s in seconds), decoded
