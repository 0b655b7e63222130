"""All-layer fine-tuning of InternVideo: both towers are trained, step features are fixed (Sec. 5.1, 5.2, App. E.2)."""

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from math import log
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from stepline import paths
from stepline.availability import read_availability
from stepline.backbones import clip_text, internvideo
from stepline.backbones.registry import files_of
from stepline.benchmarks.spacewalk.features import Features, Rows
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import Chooser, Outcome, SpacewalkMethod, nearer, without_irrelevant
from stepline.benchmarks.spacewalk.windows import window
from stepline.datasets.studies import RETRIEVAL
from stepline.errors import StoreError
from stepline.features.frames import split
from stepline.features.network import Network, device_of
from stepline.features.pictures import Videos, keep, stream
from stepline.media.process import Limits
from stepline.models.all_layer import Recipe, train
from stepline.progress import progress
from stepline.spec import ClipSpec

CLIPS, TEXTS = 4, 64
"""Windows per forward pass in training, and texts in prediction, if ``features.batch_size`` is not set."""
LARGEST_SCALE = 100
"""A learned scale of cosines is clamped to this value after each update, as in InternVideo's code."""


class AllLayer(SpacewalkMethod):
    """All-layer fine-tuning."""

    keeps = "last epoch"

    def fit(self, inputs: SpacewalkInputs, seed: int, path: Path) -> None:
        """Train on train for all epochs and write the towers; Irrelevant samples are left out, as in Eq. 1.

        During training, the frames of all windows are stored next to ``path``. An interrupted fit resumes. Raises
        StoreError if the disk has no space for them, a video cannot be read, or the GPU's memory is full, and
        ConfigError if a loss is not finite.
        """
        context_s = inputs.job.context_s
        assert context_s is not None
        options = inputs.options["all_layer"]
        training = _Training(inputs, context_s, path.with_suffix(".pictures"))
        try:
            train(
                training.parameters,
                training.losses,
                len(training.samples),
                path,
                Recipe(
                    optimiser=options["optimiser"],
                    learning_rate=options["learning_rate"],
                    weight_decay=options["weight_decay"],
                    warm_up=options["warm_up"],
                    epochs=options["epochs"],
                    batch_size=options["batch_size"],
                    seed=seed,
                ),
                at_once=max(
                    1, (inputs.benchmark.config["features"]["batch_size"] or CLIPS) // training.places.shape[1]
                ),
                made_from=training.made_from,
                after=training.clamp,
            )
        except torch.OutOfMemoryError:
            raise StoreError(f"{inputs.entry.id}: the GPU's memory is full: lower features.batch_size") from None
        shutil.rmtree(training.folder)

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the chooser for windows of ``context_s`` seconds: the best step; a threshold decides on Irrelevant."""
        assert context_s is not None
        return _Tuned(inputs, context_s, fits)


def chosen(inputs: SpacewalkInputs) -> dict[str, list[Item]]:
    """Return the training samples by recording.

    They are ``samples_per_video`` evenly spaced samples from each of the first ``videos`` available recordings, in the
    release's order. Irrelevant samples are then left out.
    """
    settings, items = inputs.entry.settings, inputs.items("train")
    found = {}
    for video in inputs.recordings("train")[: settings["videos"]]:
        every = len(items[video])
        n = min(settings["samples_per_video"], every)
        some = [items[video][every * i // n] for i in range(n)]
        found[video] = [item for item in some if inputs.entry.task == RETRIEVAL or item.label > 0]
    return {video: some for video, some in found.items() if some}


class _Windows:
    """The windows of a recording's samples.

    clips: the distinct windows. places: (N, W) indices of each sample's clips; W is 1, in retrieval 3. texts: of each
    clip.
    """

    def __init__(self, inputs: SpacewalkInputs, context_s: float, video: str, items: Sequence[Item]) -> None:
        duration_s = inputs.annotation.recordings[video].duration_s
        spans = [[window(t_s, context_s, duration_s) for t_s in item.times_s] for item in items]
        self.clips = sorted({span for each in spans for span in each})
        place = {clip: number for number, clip in enumerate(self.clips)}
        self.places = np.array([[place[span] for span in each] for each in spans], np.int64)
        self.texts = [inputs.text(video).between(*clip) for clip in self.clips] if _heard(inputs) else []


class _Training:
    """The towers, their trained parameters, and the losses of samples."""

    def __init__(self, inputs: SpacewalkInputs, context_s: float, folder: Path) -> None:
        options, self.entry, self.folder = inputs.options["all_layer"], inputs.entry, folder
        self.normalise, self.compute = inputs.benchmark.normalise(self.entry), options["compute"]
        items = chosen(inputs)
        windows = {video: _Windows(inputs, context_s, video, each) for video, each in items.items()}
        matched = {} if self.entry.task == RETRIEVAL else items
        steps = {video: Features(inputs).steps(video)[1:] for video in matched}
        self.samples = [(video, item) for video, each in items.items() for item in each]
        self.places = np.concatenate([each.places for each in windows.values()])
        spec, videos = _spec(inputs), _videos(inputs, items, folder.parent)
        self.made_from = [
            spec.record(),
            [self.entry.blocks, self.normalise, self.compute, options["logit_scale"]],
            [
                [videos.records[video].identity(spec.orientation), each.clips, each.texts]
                for video, each in windows.items()
            ],
            [[video, item.id, item.label] for video, item in self.samples],
            [hashlib.sha256(rows.tobytes()).hexdigest() for rows in steps.values()],
        ]
        self.device = device_of(inputs.benchmark.config["features"])
        tokens = {video: [clip_text.tokenize(text) for text in each.texts] for video, each in windows.items()}
        self.tokens = {video: torch.tensor(ids, device=self.device) for video, ids in tokens.items()}
        self.steps = {video: torch.from_numpy(rows).to(self.device) for video, rows in steps.items()}
        self.towers = internvideo.trainable(files_of(spec.weights), self.device)
        self.heard = _heard(inputs)
        scale = options["logit_scale"] if self.normalise == "block" else "none"
        self.logit_scale = torch.zeros((), device=self.device) if scale == "none" else self.towers.logit_scale
        self.logit_scale.requires_grad_(scale == "learned")
        self.parameters = self.towers.parameters(video=True, text=self.heard, scale=scale == "learned")
        mean, std = (torch.tensor(each, device=self.device) for each in (spec.mean, spec.std))
        self.mean, self.std = mean.view(3, 1, 1, 1), std.view(3, 1, 1, 1)
        self.pictures = keep(spec, {video: each.clips for video, each in windows.items()}, videos, folder)

    def losses(self, numbers: list[int]) -> torch.Tensor:
        """Return the (n,) cross entropies over the steps of each sample's recording, or over its two candidates."""
        samples = [self.samples[number] for number in numbers]
        places = [self.places[number].tolist() for number in numbers]
        windows = [(video, place) for (video, _), each in zip(samples, places, strict=True) for place in each]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.compute == "bfloat16"):
            seen = self.towers.video(self._inputs(windows))
            told = self.towers.text(self._texts(windows)) if self.heard else None
        rows = _joined(self.entry.blocks, seen.float(), told, self.normalise)
        rows = rows.reshape(len(numbers), -1, rows.shape[1])
        losses = []
        for (video, item), row in zip(samples, rows, strict=True):
            others, label = (self.steps[video], item.label - 1) if self.steps else (row[1:], item.label)
            target = torch.tensor(label, device=self.device)
            losses.append(functional.cross_entropy(others @ row[0] * self.logit_scale.exp(), target))
        return torch.stack(losses)

    def clamp(self) -> None:
        """Clamp a learned scale to at most 100."""
        if self.logit_scale.requires_grad:
            with torch.no_grad():
                self.logit_scale.clamp_(max=log(LARGEST_SCALE))

    def _texts(self, windows: list[tuple[str, int]]) -> torch.Tensor:
        """Return the (n, 77) token ids of the windows' transcripts."""
        return torch.stack([self.tokens[video][place] for video, place in windows])

    def _inputs(self, windows: list[tuple[str, int]]) -> torch.Tensor:
        """Return the network's (n, 3, T, H, W) input, as in ``Network``."""
        clips = torch.from_numpy(np.stack([self.pictures[video][place] for video, place in windows]))
        pixels = clips.to(self.device).permute(0, 4, 1, 2, 3).float()
        return pixels.div_(255).sub_(self.mean).div_(self.std)


class _Tuned:
    """Windows described by the fine-tuned towers, compared with the pre-trained features of the steps."""

    def __init__(self, inputs: SpacewalkInputs, context_s: float, fits: Sequence[Path]) -> None:
        self.inputs, self.context_s, self.folder = inputs, context_s, fits[0].parent
        self.spec, options = _spec(inputs), inputs.benchmark.config["features"]
        self.device = device_of(options)
        loaded = [internvideo.load(self.spec, {fit.name: fit}) for fit in fits]
        self.networks = [Network(self.spec, each, self.device, options["batch_size"]) for each in loaded]
        self.texts_at_once = options["batch_size"] or TEXTS
        self.towers = [internvideo.load_text_tower({fit.name: fit}).to(self.device) for fit in fits if _heard(inputs)]

    def __call__(self, video: str, items: list[Item]) -> list[Outcome]:
        """Return, for each seed, the chosen labels and the scores of a recording's samples."""
        windows = _Windows(self.inputs, self.context_s, video, items)
        entry, normalise = self.inputs.entry, self.inputs.benchmark.normalise(self.inputs.entry)
        outcomes: list[Outcome] = []
        for number, (seed, seen) in enumerate(zip(entry.seeds, self._seen(video, windows), strict=True)):
            told = self._told(number, windows) if self.towers else None
            rows = _joined(entry.blocks, torch.from_numpy(seen), told, normalise).numpy()[windows.places]
            if entry.task == RETRIEVAL:
                outcomes.append((seed, *nearer((rows[:, :1] * rows[:, 1:]).sum(axis=2))[1:]))
                continue
            scores = rows[:, 0] @ Features(self.inputs).steps(video)[1:].T
            outcomes.append((seed, scores.argmax(axis=1) + 1, without_irrelevant(scores)))
        return outcomes

    def _seen(self, video: str, windows: _Windows) -> list[Rows]:
        """Return the (n, D) vectors of the windows from each network; the video is decoded once."""
        found = [np.zeros((len(windows.clips), self.spec.dimension), np.float32) for _ in self.networks]
        videos, size = _videos(self.inputs, [video], self.folder), self.networks[0].batch_size
        batches = stream(self.spec, {video: windows.clips}, videos, size)
        for batch in progress(batches, what=video, unit="batches", total=len(split(len(windows.clips), size))):
            for rows, network in zip(found, self.networks, strict=True):
                rows[batch.places] = network(batch.clips, batch.shown)
        return found

    def _told(self, number: int, windows: _Windows) -> torch.Tensor:
        """Return the (n, D) vectors of the windows' texts."""
        tokens = torch.tensor([clip_text.tokenize(text) for text in windows.texts])
        batches = progress(torch.split(tokens, self.texts_at_once), what="texts", unit="batches")
        with torch.inference_mode():
            return torch.cat([self.towers[number](batch.to(self.device)).cpu() for batch in batches])


def _heard(inputs: SpacewalkInputs) -> bool:
    return bool({*inputs.entry.blocks} & {*"TC"})


def _joined(blocks: str, seen: torch.Tensor, told: torch.Tensor | None, normalise: str) -> torch.Tensor:
    """Return the (n, D) features of windows: the video for block V, the transcript for every other block."""
    parts = [seen if block == "V" or told is None else told.float() for block in blocks]
    return torch.cat([functional.normalize(part, dim=1) if normalise == "block" else part for part in parts], dim=1)


def _spec(inputs: SpacewalkInputs) -> ClipSpec:
    spec = inputs.benchmark.pipeline.features.spec_of(inputs.entry.backbone)
    assert isinstance(spec, ClipSpec)
    return spec


def _videos(inputs: SpacewalkInputs, names: Iterable[str], scratch: Path) -> Videos:
    plan = inputs.benchmark
    shards = {plan.pipeline.videos.shards[video] for video in names}
    return Videos(
        records={k: v for shard in shards for k, v in read_availability(paths.availability(plan.name, shard)).items()},
        limits=Limits(**plan.config["media"]["limits"]),
        decoders=plan.config["features"]["decoders"],
        scratch=scratch,
    )
