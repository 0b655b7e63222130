"""The inputs of methods and scores: one release with one configuration, for one entry."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from stepline.asr import transcript
from stepline.asr.transcript import Sentence
from stepline.availability import Record, read_availability, read_manifest
from stepline.benchmark import SPEECH, VIDEO, Benchmark, Job
from stepline.config import Config
from stepline.errors import ConfigError
from stepline.features.bank import Bank
from stepline.features.opening import open_named
from stepline.features.resize import resize
from stepline.footage import Footage
from stepline.media.timeline import absent_s
from stepline.needs import Need

AnyBenchmark = TypeVar("AnyBenchmark", bound=Benchmark[Any])
Stage = Literal["fit", "predict"]


class Span(Protocol):
    """A part [start_s, end_s) of a video, in seconds."""

    @property
    def video(self) -> str:
        """The video."""

    @property
    def start_s(self) -> float:
        """Its start."""

    @property
    def end_s(self) -> float:
        """Its end."""


@dataclass(frozen=True)
class Inputs(Generic[AnyBenchmark]):
    """The inputs of a job. Each benchmark's subclass defines the ground truth.

    stage: the stage whose method gets them; the method can read only what its entry sees. None for scores.
    """

    benchmark: AnyBenchmark
    job: Job
    stage: Stage | None = None

    def staged(self, stage: Stage) -> Self:
        """Return the inputs of a stage's method, with everything that is already read except the truth."""
        made = copy(self)
        vars(made).pop("_truth", None)
        vars(made)["stage"] = stage
        return made

    @property
    def entry(self) -> Any:
        """The entry."""
        return self.job.entry

    @property
    def release(self) -> str:
        """The name of the release."""
        return self.job.release

    @property
    def options(self) -> Config:
        """The benchmark's section of the configuration."""
        return self.benchmark.options

    @property
    def training(self) -> Config:
        """The options of the entry's training, without its seeds."""
        options = self.options[self.entry.kind.options].items()
        return {key: value for key, value in options if key != "seeds"}

    @property
    def spec(self) -> str:
        """The cache key of the entry's predictions, 8 hex digits."""
        return self.benchmark.spec(self.job)

    # Truth

    def load(self, split: str) -> Iterable[Any]:
        """Return the annotated units of a split, each with a ``video``. Subclasses define the type of a unit."""
        raise NotImplementedError

    def truth(self, split: str) -> Sequence[Any]:
        """Return all units of a split, in the released order.

        A method cannot read what its entry does not see: ConfigError for another split, and for the fields of evaluated
        units that belong to other inputs, see ``Sees``.
        """
        if self.stage and split not in self.splits(self.stage):
            words = [each.word for each in self.benchmark.sees if each.split == split]
            what = f"{words[0]!r}" if words else f"a keyword with `split={split!r}`"
            raise ConfigError(f"{self._reader} reads the split {split}: add {what} to its `sees`")
        if split not in self._truth:
            hidden = self._hidden(split)
            self._truth[split] = [Masked(unit, hidden, self._reader) if hidden else unit for unit in self.load(split)]
        return self._truth[split]

    def _hidden(self, split: str) -> dict[str, str]:
        """Return the fields of a split's units that the entry does not see, with their keywords."""
        seen = self.benchmark.seen(self.entry)
        if not self.stage or split in {each.split for each in seen}:
            return {}
        return {field: each.word for each in self.benchmark.sees if each not in seen for field in each.fields}

    @property
    def _reader(self) -> str:
        return f"the method of {self.entry.id} (kind {self.entry.kind_name})"

    @cached_property
    def _truth(self) -> dict[str, Sequence[Any]]:
        return {}

    def used(self, split: str) -> list[Any]:
        """Return the units of the subset's videos for which all inputs of the entry exist."""
        units = [unit for unit in self.chosen(split) if self.has(unit)]
        for bank in self.banks if units else ():
            bank.fetch(unit.video for unit in units)
        return units

    def chosen(self, split: str) -> list[Any]:
        """Return the units of the subset's videos, or all released units if there is no subset."""
        return [unit for unit in self.truth(split) if self._is_chosen(unit.video)]

    def has(self, unit: Any) -> bool:
        """Return whether all inputs of the entry exist for a unit."""
        if self.entry.kind.decoded and self.video_file(unit.video) is None:
            return False
        if self.benchmark.hears(self.entry) and unit.video not in self.spoken:
            return False
        return all(unit.video in bank for bank in self.banks)

    def video_file(self, video: str) -> Path | None:
        """Return the file of a video, None if it does not exist."""
        record = self._availability.get(video)
        there = record is not None and record.status == "present" and Path(record.path).exists()
        return Path(record.path) if record is not None and there else None

    @cached_property
    def _availability(self) -> dict[str, Record]:
        records = self.footage.pipeline.videos.availability
        return {video: record for path in records for video, record in read_availability(path).items()}

    def _is_chosen(self, video: str) -> bool:
        return self.options["subset"] is None or video in self._chosen

    @cached_property
    def _chosen(self) -> frozenset[str]:
        benchmark = self.benchmark
        return benchmark.chosen(benchmark.datasets.get(benchmark.dataset(self.release), benchmark.released))

    @property
    def predicted(self) -> list[str]:
        """The splits that the entry predicts."""
        return list(self.entry.splits)

    def splits(self, stage: Stage) -> list[str]:
        """Return the splits that a stage reads: the evaluated splits and those that the entry uses."""
        evaluated = [] if stage == "fit" else self.predicted
        seen = [each.split for each in self.benchmark.seen(self.entry) if each.split]
        return list(dict.fromkeys([*evaluated, *seen]))

    def missing(self, stage: Stage) -> tuple[Need, ...]:
        """Return the needs that block a stage: a split is empty because of the subset or missing inputs."""
        splits = self.splits(stage)
        if empty := [split for split in splits if not self.chosen(split)]:
            return tuple(Need("split", split) for split in empty)
        without = [split for split in splits if not self.used(split)]
        return self.absent(without) if without else ()

    def absent(self, splits: Sequence[str]) -> tuple[Need, ...]:
        """Return the missing inputs if no unit of these splits has all inputs.

        These are videos, the release's videos in an imported bank, or transcripts of videos that are there.
        """
        listed = {unit.video for split in splits for unit in self.truth(split)}
        banks = dict(zip(self.benchmark.features(self.entry), self.banks, strict=True))
        dataset = self.benchmark.dataset(self.release)
        strange = [name for name in self.imported if listed and not listed & banks[name].videos]
        if strange:
            return tuple(Need("features", f"{name}/{dataset}") for name in strange)
        silent = self.benchmark.hears(self.entry) and not listed & self.spoken
        there = silent and any(
            self._availability[video].status == "present" for video in listed & {*self._availability}
        )
        return (Need("transcripts" if there else "videos", dataset),)

    @property
    def device(self) -> str:
        """The device of models, ``cpu`` or ``cuda``; raises StoreError if ``features.device`` is not available."""
        from stepline.features.network import device_of

        return device_of(self.benchmark.config["features"]).type

    # Features

    @property
    def footage(self) -> Footage:
        """The videos of the release's data set."""
        return self.benchmark.footage[self.benchmark.dataset(self.release)]

    @cached_property
    def banks(self) -> Sequence[Bank]:
        """The banks of the entry's features, in the configured order."""
        return [self.open_bank(name) for name in self.benchmark.features(self.entry)]

    def open_bank(self, name: str) -> Bank:
        """Return the bank with this name; gaps of damaged videos are filled with the nearest rows."""
        return open_named(self.footage, name).fill()

    @property
    def read(self) -> Iterable[Bank]:
        """The banks that the predictions depend on."""
        return self.banks

    @cached_property
    def in_part(self) -> dict[str, float]:
        """The missing seconds of each damaged video. Methods that read videos add their own."""
        return {video: absent_s(damaged.gaps) for bank in self.read for video, damaged in bank.damaged.items()}

    @property
    def imported(self) -> list[str]:
        """The names of the entry's features that are imported banks, not backbones."""
        return [name for name in self.benchmark.features(self.entry) if not self.footage.is_backbone(name)]

    def resized(self, video: str, length: int) -> NDArray[np.float32]:
        """Return the (length, D) features of a video: the rows of each bank resized, then concatenated."""
        return np.concatenate([resize(bank[video], length) for bank in self.banks], axis=1, dtype=np.float32)

    def pooled(self, spans: Sequence[Span]) -> NDArray[np.float64]:
        """Return (N, D): for each span, the mean of its rows of each bank, concatenated; see ``Bank.means``."""
        listed = [[getattr(span, name) for span in spans] for name in ("video", "start_s", "end_s")]
        if not self.banks:
            raise ConfigError(f"{self._reader} reads features, and the entry has none: name a key of `features` in it")
        if self.stage and VIDEO in self.benchmark.sees and VIDEO.word not in self.entry.sees:
            raise ConfigError(f"{self._reader} reads features: add {VIDEO.word!r} to its `sees`")
        return np.concatenate([bank.means(*listed) for bank in self.banks], axis=1)

    @property
    def dimension(self) -> int:
        """The dimension D of the concatenated features."""
        return sum(bank.dimension for bank in self.banks)

    # Speech

    @cached_property
    def spoken(self) -> frozenset[str]:
        """The videos with a transcript of the recogniser."""
        if not self.benchmark.hears(self.entry):
            raise ConfigError(f"{self._reader} reads transcripts: add {SPEECH.word!r} to its `sees`")
        made = [each for path in self.footage.pipeline.speech.manifests for each in read_manifest(path).items()]
        return frozenset(video for video, about in made if about["status"] == "present")

    def sentences(self, video: str) -> tuple[Sentence, ...]:
        """Return the recognised sentences of a video, in order of their starts; empty without a transcript."""
        if video not in self._sentences:
            file = self.footage.pipeline.speech.folder / f"{video}.parquet"
            self._sentences[video] = transcript.read(file) if video in self.spoken else ()
        return self._sentences[video]

    @cached_property
    def _sentences(self) -> dict[str, tuple[Sentence, ...]]:
        return {}

    def said(self, span: Span) -> str:
        """Return the whole sentences that overlap the open interval of a span, joined by spaces."""
        heard = self.sentences(span.video)
        return " ".join(each.text for each in heard if each.start_s < span.end_s and each.end_s > span.start_s)


class Masked:
    """A unit without the fields of inputs that a method does not see; reading one raises ConfigError."""

    def __init__(self, unit: Any, hidden: Mapping[str, str], reader: str) -> None:
        self.__dict__ |= {"_unit": unit, "_hidden": hidden, "_reader": reader}

    def __getattr__(self, name: str) -> Any:
        """Return a field of the unit."""
        if name in self._hidden:
            raise ConfigError(
                f"{self._reader} reads `{name}` of an evaluated unit: add {self._hidden[name]!r} to its `sees`"
            )
        return getattr(self._unit, name)
