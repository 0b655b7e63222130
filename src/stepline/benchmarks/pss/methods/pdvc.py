"""PDVC with Hungarian, SODA or SoftSODA matching (Sec. 4, 5.2), on learned or on ground-truth proposals."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stepline.benchmarks.pss.material import Material
from stepline.benchmarks.pss.methods import Method
from stepline.benchmarks.pss.predictions import Prediction
from stepline.benchmarks.pss.words import Words
from stepline.datasets.pss import Procedure
from stepline.features.network import device_of
from stepline.metrics.soda import soda_d
from stepline.models.training import fit_head, loaded, restore
from stepline.spec import digest

if TYPE_CHECKING:
    import torch

    from stepline.models.pdvc import Decoded, Pdvc, PdvcConfig


def fit(material: Material, seed: int, path: Path) -> None:
    """Fit on train; keep the epoch of the best mean SODA-D F1 on val, or with given segments of the least loss."""
    import torch

    from stepline.models.pdvc import Pdvc

    options = material.plan.study_config["pdvc"]
    config, words = _config(material), Words.of(material.dataset)
    device = device_of(material.plan.config["features"]["device"]).type
    train, val = material.used("train"), material.used("val")
    most = options["train_segments"]

    def losses(model: Pdvc, batch: torch.Tensor) -> Iterator[torch.Tensor]:
        for index in batch.tolist():
            procedure = train[index]
            n = len(procedure.segments)
            kept = sorted(torch.randperm(n)[:most].tolist()) if most and n > most else range(n)
            yield _loss(model, material, procedure, _targets(procedure, words, config, kept, device), device)

    def val_loss(model: Pdvc) -> float:
        if config.proposals == "ground_truth":
            targets = [_targets(each, words, config, range(len(each.segments)), device) for each in val]
            found = zip(val, targets, strict=True)
            return float(np.mean([float(_loss(model, material, *each, device)) for each in found]))
        scores = [
            soda_d(each.segments, _decoded(model, material, each, device)[0], order="start_end").f1 for each in val
        ]
        return -float(np.mean(scores))

    halved = options["decay_epochs"]
    fit_head(
        lambda: Pdvc(config),
        losses,
        val_loss,
        len(train),
        path,
        epochs=options["epochs"],
        batch_size=1,
        learning_rate=options["learning_rate"],
        seed=seed,
        device=device,
        resume=digest([material.spec, [each.video for each in train + val]]),
        weight_decay=options["weight_decay"],
        clip=options["clip"],
        factor=lambda epoch: 0.5 ** sum(epoch >= each for each in halved),
        what=f"{material.entry.id} on {material.dataset}, seed {seed}",
    )


def make(material: Material, fits: list[Path]) -> Iterator[tuple[int, Method]]:
    """Yield the fitted model of each seed."""
    from stepline.models.pdvc import Pdvc

    words = Words.of(material.dataset)
    device = device_of(material.plan.config["features"]["device"]).type
    for seed, path in zip(material.entry.seeds, fits, strict=True):
        made = Pdvc(_config(material))
        with loaded(path) as parameters:
            model = restore(made, parameters, device)

        def predict(seed: int, split: str, procedure: Procedure, model: Pdvc = model) -> Prediction:
            segments, decoded = _decoded(model, material, procedure, device)
            return Prediction(
                seed=seed,
                split=split,
                video=procedure.video,
                segments=segments,
                scores=tuple(decoded.scores.tolist()),
                sentences=tuple(map(words.decode, decoded.captions)),
            )

        yield seed, predict


def _config(material: Material) -> "PdvcConfig":
    from stepline.models.pdvc import PdvcConfig

    options, settings = material.plan.study_config["pdvc"], material.entry.settings
    return PdvcConfig(
        feature_dim=material.dimension,
        vocabulary=Words.of(material.dataset).size,
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


def _features(material: Material, procedure: Procedure, device: str) -> "torch.Tensor":
    import torch

    length = material.plan.study_config["length"][material.dataset]
    return torch.from_numpy(material.features(procedure.video, length)).to(device)


def _loss(
    model: "Pdvc", material: Material, procedure: Procedure, targets: "tuple[torch.Tensor, torch.Tensor]", device: str
) -> "torch.Tensor":
    return model.loss(_features(material, procedure, device), *targets, duration_s=procedure.duration_s)


def _targets(
    procedure: Procedure, words: Words, config: "PdvcConfig", kept: "range | list[int]", device: str
) -> "tuple[torch.Tensor, torch.Tensor]":
    """Return some or all segments as fractions of the duration, (n, 2), and their captions, (n, W)."""
    import torch

    segments = torch.tensor([procedure.segments[each] for each in kept]) / procedure.duration_s
    ids = [words.encode(procedure.sentences[each], config.words - 2) for each in kept]
    captions = torch.zeros(len(ids), max(map(len, ids)), dtype=torch.int64)
    for row, each in zip(captions, ids, strict=True):
        row[: len(each)] = torch.tensor(each)
    return segments.clamp(0, 1).to(device), captions.to(device)


def _decoded(
    model: "Pdvc", material: Material, procedure: Procedure, device: str
) -> "tuple[tuple[tuple[float, float], ...], Decoded]":
    """Return what the model says of a video, and its segments in seconds; given ones as they were given."""
    given = None
    if model.config.proposals == "ground_truth":
        import torch

        given = (torch.tensor(procedure.segments) / procedure.duration_s).clamp(0, 1).to(device)
    decoded = model.decode(_features(material, procedure, device), duration_s=procedure.duration_s, segments=given)
    if given is not None:
        return procedure.segments, decoded
    seconds = (decoded.segments.double().cpu() * procedure.duration_s).tolist()
    return tuple((start_s, end_s) for start_s, end_s in seconds), decoded
