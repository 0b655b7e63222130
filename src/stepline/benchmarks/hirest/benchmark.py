"""The HiREST benchmark under one configuration."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from stepline.backbones.weights import locate
from stepline.benchmark import (
    DURATION,
    SPEECH,
    TRAIN,
    VAL,
    VIDEO,
    Benchmark,
    Entry,
    InTime,
    Job,
    Line,
    Option,
    Sees,
    Table,
    UnavailableError,
    Values,
)
from stepline.benchmarks.hirest import texts
from stepline.benchmarks.hirest.kinds import FILES, KINDS, POOL, Found
from stepline.benchmarks.hirest.metrics import (
    CAPTIONS,
    METRICS,
    MOMENTS,
    RETRIEVAL,
    SEGMENTS,
    STATISTICS,
    missing_scorer,
    split_of,
)
from stepline.datasets import hirest
from stepline.errors import ConfigError
from stepline.footage import Footage
from stepline.io import sha256_file
from stepline.mirror import cached_sha256
from stepline.needs import Need, absent, in_order

if TYPE_CHECKING:
    from stepline.benchmarks.hirest.inputs import HirestInputs
    from stepline.report import Picture

HEADS = {"joint": "clip4caption", "joint_released": "hirest-joint"}
"""The initial weights of the joint model, or its released weights, by kind."""
SAID_BY = ("fusion", "caption_frames", "padding", "batch_size", "beam")
"""The options of the joint model that affect predictions with released weights."""
ENCODED = ("zero_shot_retrieval", "zero_shot_moments", *HEADS)
"""The kinds that read features."""
SIZES = {"layers": 2, "hidden": 768}
"""The sizes of CLIP4Caption."""
TRACKS = {"uniform-7": "7 parts", "minilm-segments": "MiniLM", "joint-released": "Joint, released", "joint": "Joint"}
"""The entries whose steps are drawn on timelines, with their labels."""
LABELS = Need("release", "hirest/labels")
"""The test moments, which the authors withhold."""
DECODED = tuple(Need("package", name) for name in ("av", "cv2", "skimage"))
"""The packages of methods that decode videos."""


class Hirest(Benchmark[Entry]):
    """HiREST. Each metric belongs to one split; ``test_507`` is the public part of test."""

    about = "hierarchical retrieval and step captioning"
    folder = Path(__file__).parent
    studies = ("hirest",)
    released = hirest.RELEASES
    datasets = hirest.DATASETS
    kinds = KINDS
    splits = ("train", "val", "test", "pool")
    prediction = Found
    metrics = METRICS
    sees = (
        Sees("query", "the text query"),
        VIDEO,
        SPEECH,
        DURATION,
        TRAIN,
        VAL,
        Sees("moment", "the annotated moment that contains the steps"),
        Sees("steps", "the annotated steps", oracle=True),
    )
    published: ClassVar = {"preprocess_moment_bounds": True, "entailment": "decomposable attention on ELMo"}
    settings = ("baseline",)
    how_to_read_examples = "The top strip shows the annotated steps; the others show predictions of the lowest seed."
    drawn = ("r1", "val_r_05", "test_507_recall_05", "test_507_cider")
    rerun = "the outputs of the notebooks that the authors released"

    @cached_property
    def footage(self) -> Mapping[str, Footage]:
        """The videos, without the distractors if no entry retrieves videos."""
        (dataset,) = self.datasets.values()
        captioned = [self.clip_features] if {*self.measured} & {*CAPTIONS} else []
        read = [name for entry in self.shown.values() for name in self.features(entry)]
        names = tuple(dict.fromkeys([*read, *captioned]))
        retrieves = any(entry.splits == POOL for entry in self.shown.values())
        heard = any(map(self.hears, self.shown.values()))
        videos = dataset if retrieves else hirest.ANNOTATED
        key = f"{self.name}.features"
        return {dataset.name: Footage.of(self.config, videos, key, names, self.decoding, sound=heard)}

    def check(self) -> None:
        """Raise ConfigError if an entry, its folder of files, or the joint model is impossible."""
        for entry in self.entries.values():
            where = f"config: hirest.entries.{entry.id}"
            if entry.kind_name in ENCODED and not entry.features:
                raise ConfigError(
                    f"{where}.features: it is required; choose from {', '.join(self.options['features'])}"
                )
            if entry.kind_name == "uniform" and len(entry.settings) != 1:
                raise ConfigError(f"{where}.settings: give one of parts and part_s")
            if entry.kind_name == "middle" and (percent := entry.settings["percent"]) > 100:
                raise ConfigError(f"{where}.settings.percent: {percent} is greater than the maximum of 100")
        known = [entry.id for entry in self.entries.values() if entry.kind_name in FILES]
        for name, folder in self.options["files"].items():
            if name not in known:
                raise ConfigError(f"config: hirest.files: {name!r} is not allowed; choose from {', '.join(known)}")
            if not Path(os.path.expanduser(folder)).is_dir():
                raise ConfigError(f"config: hirest.files.{name}: {folder!r} is not a folder; give one with predictions")

        own = {key: self.options["joint"][key] for key in SIZES}
        if self.options["joint"]["init"] == "clip4caption" and own != SIZES:
            key = next(key for key, size in SIZES.items() if own[key] != size)
            raise ConfigError(
                f"config: hirest.joint.{key}: {own[key]} is not allowed; CLIP4Caption has {SIZES[key]}: set `init` to "
                "random, or leave it out"
            )

    def features(self, entry: Entry) -> Sequence[str]:
        """Return the name of the backbone or imported bank with the entry's features."""
        return [self.options["features"][entry.features]["video"]] if entry.features else []

    def check_features(self) -> None:
        """Raise ConfigError if a name in ``features`` provides no features of videos or no vectors of queries."""
        for key, named in self.options["features"].items():
            where = f"config: hirest.features.{key}"
            self.footage["hirest"].check(named["video"], f"{where}.video")
            texts.check(named, where, self.config)

    # Inputs of jobs

    def transcripts(self, entry: Entry) -> str:
        """Return which transcripts an entry reads, ``released`` or ``asr``; "" if it reads none."""
        reads = "speech" in entry.sees and entry.kind_name not in FILES
        return str(self.options["transcripts"]) if reads else ""

    def hears(self, entry: Entry) -> bool:
        """Return whether an entry reads transcripts of the recogniser, not the released ones."""
        return self.transcripts(entry) == "asr"

    def reads(self, job: Job) -> Sequence[str]:
        """Return the release, and the release of the authors' transcripts if the job reads them."""
        return [job.release, *(["asr"] if self.transcripts(job.entry) == "released" else [])]

    def reads_besides(self, job: Job, stage: str) -> Sequence[Path]:
        """Return the user's predictions; for scores, the authors' labels and frame features."""
        footage = self.footage["hirest"]
        if stage == "score":
            labels = [self.release_manifest("labels")] if hirest.labels_are_here() else []
            clips = self.clip_score_missing or not job.entry.kind.scores("val_clip_score")
            return labels + ([] if clips else footage.inputs(self.clip_features))
        return self.files(job.entry)

    def files(self, entry: Entry) -> list[Path]:
        """Return the existing prediction files of the user that an entry reads."""
        folder = self.options["files"].get(entry.id)
        listed = [Path(os.path.expanduser(folder)) / name for name in FILES[entry.kind_name]] if folder else []
        return [path for path in listed if path.exists()]

    def decides(self, job: Job) -> Mapping[str, Any]:
        """Return text encoders, weights, transcripts, files and, for released weights, the options that apply."""
        heads = [path for name in self._heads(job.entry) for path in (locate(name) or {}).values()]
        return {
            "texts": texts.records(self, job.entry),
            "weights": {path.name: cached_sha256(path) for path in heads},
            **({} if self.hears(job.entry) else {"transcripts": self.transcripts(job.entry)}),
            "files": {path.name: sha256_file(path) for path in self.files(job.entry)},
            **({"joint": {key: self.options["joint"][key] for key in SAID_BY}} if _is_released(job.entry) else {}),
        }

    # Missing inputs

    def missing_besides(self, entry: Entry, release: str) -> Sequence[Need]:
        """Return the missing files of the user, released transcripts, weights and packages."""
        unpredicted = entry.kind_name in FILES and entry.id not in self.options["files"]
        files = [Need("predictions", entry.id)] if unpredicted else []
        heard = self.transcripts(entry)
        found = [Need("release", "hirest/asr")] if heard == "released" and not self.released.is_there("asr") else []
        heads = [Need("weights", name) for name in self._heads(entry) if not locate(name)]
        packages = absent(*DECODED) if entry.kind.decoded else ()
        return [*files, *found, *texts.missing(self, entry), *heads, *packages]

    def _heads(self, entry: Entry) -> list[str]:
        """Return the names of the weights that an entry's model loads."""
        random = entry.trained and self.options["joint"]["init"] == "random"
        return [] if random else [name for kind, name in HEADS.items() if kind == entry.kind_name]

    def missing_of(self, metric: str) -> Sequence[Need]:
        """Return the authors' labels if the metric needs test moments; for captions, the missing scorer."""
        if metric in MOMENTS and split_of(metric) == "test" and not hirest.labels_are_here():
            return [LABELS]
        if metric in CAPTIONS:
            name = metric.removeprefix(f"{split_of(metric)}_")
            if name == "meteor" and not self.options["metrics"]["meteor"]:
                return [Need("config", "hirest.metrics.meteor", "true")]
            return self.clip_score_missing if name == "clip_score" else missing_scorer(name)
        return ()

    def unscored(self, entry: Entry, release: str, metric: str) -> Sequence[Need]:
        """Return the predictions of your own if they contain no video of the metric's split."""
        return [Need("predictions", entry.id)] if entry.kind_name in FILES else []

    @property
    def clip_features(self) -> str:
        """The name of the frame features that CLIPScore compares with captions."""
        return str(self.options["features"]["clip"]["video"])

    @cached_property
    def clip_score_missing(self) -> Sequence[Need]:
        """The unmet needs of CLIPScore: frame features, with the absent videos, and their text tower."""
        footage = self.footage["hirest"]
        needs = [*footage.missing(self.clip_features), *texts.missing_tower(self, "clip")]
        unseen = footage.is_backbone(self.clip_features) and not footage.pipeline.videos.are_here
        return in_order([*needs, *([Need("videos", "hirest")] if needs and unseen else [])])

    # Tables

    def shown_options(self, entry: Entry, release: str) -> Mapping[str, Option]:
        """Return features, the query encoder, transcripts, and changed options of the released joint model."""
        shown: dict[str, Option] = {}
        if entry.features:
            mine, published = (each["features"][entry.features] for each in (self.options, self.defaults))
            shown["features"] = Option(mine["video"], published["video"])
            shown |= {"text": Option(mine["text"], published["text"])} if mine["text"] else {}
        if heard := self.transcripts(entry):
            shown["transcripts"] = Option(heard, "released")
        if _is_released(entry):
            shown |= {key: option for key, option in self.changed("joint").items() if key in SAID_BY}
        return shown

    def blind(self, entry: Entry, metric: str) -> str:
        """Return the blind baseline: a random order, constants of train, or the most frequent caption."""
        named = {"random": RETRIEVAL, "middle-70": MOMENTS, "uniform-7": SEGMENTS, "frequent": CAPTIONS, "": STATISTICS}
        return next(name for name, metrics in named.items() if metric in metrics)

    def split(self, entry: Entry, metric: str) -> str:
        """Return the split of a metric."""
        return "all" if metric in STATISTICS else split_of(metric)

    def counted(self, entry: Entry, release: str) -> Mapping[str, float]:
        """Return the statistics of the release (Table 1); raise UnavailableError if it is missing."""
        if not self.release_manifest(release).exists():
            raise UnavailableError(Need("release", f"hirest/{release}"))
        return asdict(hirest.statistics())

    def note(self, table: Table, line: Line, release: str, metric: str) -> str:
        """Return a note if the metric needs withheld test moments."""
        withheld = metric in MOMENTS and split_of(metric) == "test" and not hirest.labels_are_here()
        return "the authors withhold test's moments; 507 of them follow from the released steps" if withheld else ""

    def how_to_fill(self, need: Need) -> str:
        """Return the command that meets a need. The user supplies the file with the authors' labels."""
        if need == LABELS:
            return 'install -D -t "$STEPLINE_MIRROR/hirest/labels" all_data_test.json && stepline fetch hirest/labels'
        return super().how_to_fill(need)

    # Computation

    def inputs(self, job: Job) -> "HirestInputs":
        """Return the inputs of a job."""
        from stepline.benchmarks.hirest.inputs import HirestInputs

        return HirestInputs(self, job)

    def examples(self) -> "Sequence[Picture]":
        """Return timelines of the steps of some moments."""
        from stepline.runs.shown import timelines

        def annotated(release: str) -> Mapping[str, SimpleNamespace]:
            pairs = [pair for split in ("val", "test_507") for pair in hirest.load(split) if pair.steps]
            return {
                pair.video: SimpleNamespace(
                    duration_s=pair.duration_s, segments=[(step.start_s, step.end_s) for step in pair.steps]
                )
                for pair in pairs
            }

        return timelines(self, TRACKS, annotated)

    def in_time(self, inputs: "HirestInputs", video: str, made: Found | None) -> InTime | None:
        """Return the truth of a video over time, with a prediction for it."""
        from stepline.benchmarks.hirest.in_time import in_time

        return in_time(inputs, video, made)

    def values(self, inputs: "HirestInputs", made: Sequence[Found]) -> Mapping[str, Values]:
        """Return the values of each query, moment, video and step."""
        from stepline.benchmarks.hirest.score import values

        return values(inputs, made)


def _is_released(entry: Entry) -> bool:
    return entry.kind_name == "joint_released"
