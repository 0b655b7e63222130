"""PDVC with Hungarian, SODA or SoftSODA matching (Sec. 4, 5.2), with learned or ground-truth proposals."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.methods.trained import Trained, features, fractions
from stepline.datasets.pss import Procedure
from stepline.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from stepline.models.pdvc import Pdvc
    from stepline.models.pdvc_config import PdvcConfig

DECAY = 0.5
"""The factor on the learning rate after each of the decay epochs."""
COUNT_WEIGHTS = {"learned": 0.5, "ground_truth": 0.0}
"""The weight of the counter's loss in the released configurations; with given segments, their number is known."""
TOGETHER = 8
"""The batch size of decoding, in videos."""


class PdvcMethod(Trained["Pdvc"]):
    """PDVC with the matcher and proposals of the entry's settings."""

    def fit(self, inputs: PssInputs, seed: int, path: Path) -> None:
        """Fit on train; keep the epoch of the best mean SODA-D F1 on val, or of the lowest loss with given segments.

        Raises ConfigError if a training video has more segments than there are queries.
        """
        config, most = _config(inputs), _most(inputs)
        longest = max(len(each.segments) for each in inputs.used("train"))
        learned = min(longest, most or longest)
        if config.proposals == "learned" and learned > config.queries:
            raise ConfigError(
                f"config: pss.pdvc.queries: {config.queries} is not allowed; {learned} segments per video are trained"
            )
        super().fit(inputs, seed, path)

    def build(self, inputs: PssInputs) -> "Pdvc":
        """Return a model of the configured size."""
        from stepline.models.pdvc import Pdvc

        return Pdvc(_config(inputs))

    def losses(self, model: "Pdvc", inputs: PssInputs, videos: Sequence[Procedure]) -> "list[torch.Tensor]":
        """Return the loss on the videos' segments and sentences, on at most ``train_segments`` random ones each."""
        import torch

        most = _most(inputs)
        sizes = [len(each.segments) for each in videos]
        kept = [sorted(torch.randperm(n)[:most].tolist()) if most and n > most else range(n) for n in sizes]
        return [_loss(model, inputs, videos, kept)]

    def val_loss(self, model: "Pdvc", inputs: PssInputs, videos: Sequence[Procedure]) -> float:
        """Return 1 minus the mean SODA-D F1, or with given segments the mean loss per video."""
        if model.config.proposals == "learned":
            return super().val_loss(model, inputs, videos)
        losses = [float(_loss(model, inputs, [each], [range(len(each.segments))])) for each in videos]
        return sum(losses) / len(losses)

    def training(self, inputs: PssInputs) -> dict[str, Any]:
        """Return the batch size, the maximum norm of the gradient, and the decay of the learning rate."""
        options = inputs.options["pdvc"]
        return {
            "batch_size": options["batch_size"],
            "fused": True,
            "clip": options["clip"],
            "factor": lambda epochs: DECAY ** sum(epochs >= each for each in options["decay_epochs"]),
        }

    def decode(self, model: "Pdvc", inputs: PssInputs, videos: Sequence[Procedure]) -> Iterator[dict[str, Any]]:
        """Yield the segments of each video, with scores and sentences; given segments are returned unchanged."""
        learned = model.config.proposals == "learned"
        for start in range(0, len(videos), TOGETHER):
            some = videos[start : start + TOGETHER]
            given = None if learned else [fractions(inputs, each) for each in some]
            decoded = model.decode(_features(inputs, some), durations_s=_durations(inputs, some), segments=given)
            for each, said in zip(some, decoded, strict=True):
                seconds = (said.segments.double().cpu() * each.duration_s).tolist()
                yield {
                    "segments": tuple(map(tuple, seconds)) if learned else each.segments,
                    "scores": tuple(said.scores.tolist()),
                    "sentences": tuple(map(inputs.words.decode, said.captions)),
                }


def _config(inputs: PssInputs) -> "PdvcConfig":
    from stepline.models.pdvc_config import PdvcConfig

    options, settings = inputs.options["pdvc"], inputs.entry.settings
    return PdvcConfig(
        feature_dim=inputs.dimension,
        vocabulary=inputs.words.size,
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
        caption_padding=options["caption_padding"],
        count_weights=options["count_weights"],
        count_weight=COUNT_WEIGHTS[settings["proposals"]],
        matcher=settings["matcher"],
        proposals=settings["proposals"],
        cost=options["cost"],
        gamma=options["gamma"],
        soft_weight=options["soft_weight"],
    )


def _most(inputs: PssInputs) -> int | None:
    """Return the maximum number of segments per video in an update; None is all.

    With given segments all are used; the released code uses up to 30.
    """
    most: int | None = inputs.options["pdvc"]["train_segments"]
    return most if inputs.entry.settings["proposals"] == "learned" else None


def _features(inputs: PssInputs, videos: Sequence[Procedure]) -> "torch.Tensor":
    import torch

    return torch.stack([features(inputs, each, inputs.options["length"][inputs.release]) for each in videos])


def _durations(inputs: PssInputs, videos: Sequence[Procedure]) -> "torch.Tensor":
    import torch

    return torch.tensor([each.duration_s for each in videos], dtype=torch.float32, device=inputs.device)


def _loss(
    model: "Pdvc", inputs: PssInputs, videos: Sequence[Procedure], kept: Sequence[Sequence[int]]
) -> "torch.Tensor":
    """Return the loss on the ``kept`` segments of each video and their sentences."""
    import torch

    captions = []
    for each, places in zip(videos, kept, strict=True):
        ids = [inputs.words.encode(each.sentences[place], model.config.words - 2) for place in places]
        rows = torch.nn.utils.rnn.pad_sequence([torch.tensor(row, dtype=torch.int64) for row in ids], batch_first=True)
        captions.append(rows.to(inputs.device))
    losses = model.losses(
        _features(inputs, videos),
        [fractions(inputs, each)[list(places)] for each, places in zip(videos, kept, strict=True)],
        captions,
        durations_s=_durations(inputs, videos),
    )
    return model.total(losses)
