"""The HT-Step benchmark under one configuration."""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from stepline import paths
from stepline.benchmark import (
    DURATION,
    SPEECH,
    TRAIN,
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
from stepline.benchmarks.htstep import checks, texts
from stepline.benchmarks.htstep.kinds import KINDS, Found
from stepline.benchmarks.htstep.metrics import COUNTS, CROSSTASK, METRICS, PARTS, RECALL, SPLITS, split_of
from stepline.datasets import configured, htstep
from stepline.datasets.dataset import Dataset
from stepline.errors import ConfigError
from stepline.footage import Footage
from stepline.io import canonical_json
from stepline.mirror import cached_sha256
from stepline.needs import Need, in_order
from stepline.pipeline import Pipeline

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers
    from stepline.benchmarks.htstep.inputs import HtstepInputs
    from stepline.report import Picture

ON_CROSSTASK = ("5", "6")
"""The tables on the release ``crosstask``."""
BY_LABELS = tuple(metric for metric in METRICS if split_of(metric))
"""The metrics that need the labels of a split."""
OWN = ("annotations", "candidates", "narrations")
"""The releases whose files the user supplies."""
TRACKS = {"place": "Mean place", "mt-bce": "MT+BCE", "aft": "ActionFormer-T", "actionformer": "ActionFormer"}
"""The entries whose segments are drawn on timelines, with their labels."""
BY_ACTIVITY, BY_ACTIVITY_SPLIT = ("actionformer", "mt-bce-vina"), "test_seen"
"""The entries and the split of the paper's Table 7."""
DRAWN = 8
"""The number of predicted segments drawn per video, the best ones."""
MADE_UP = "the annotation is made up: no result"
"""The note on a number computed from such an annotation."""
CHALLENGE = "EvalAI's challenge 2205"
"""The challenge that evaluates with the withheld labels."""


class Htstep(Benchmark[Entry]):
    """HT-Step. Each metric belongs to one split; the labels of some splits are withheld."""

    about = "article grounding"
    folder = Path(__file__).parent
    studies = ("htstep",)
    released = htstep.RELEASES
    datasets = htstep.DATASETS
    kinds = KINDS
    splits = ("train", *SPLITS, "crosstask", "coin", "narrations")
    prediction = Found
    metrics = METRICS
    revision = 2
    sees = (
        VIDEO,
        Sees("article", "the steps of the article; on HT-Step, of the annotated variation"),
        SPEECH,
        DURATION,
        TRAIN,
        Sees("narrations", "the speech in training videos", split="narrations"),
        Sees("coin", "the annotation of COIN", split="coin"),
    )
    published: ClassVar = {"crosstask_subsets": 20}
    settings = ("baseline",)
    drawn = ("val_seen_map", "crosstask_r1")
    rerun = "what later papers report"
    how_to_read = (
        "Filled markers are ours, with the 95 % interval by bootstrap over the activities; hollow ones are the paper's."
    )
    how_to_read_examples = "The top strip shows the annotated steps; the others show the best predictions."
    also_made = ("table7.csv",)

    @classmethod
    def add_verbs(cls, verbs: "SubParsers") -> None:
        """Add the verb `htstep`."""
        from stepline.benchmarks.htstep.verbs import add

        add(verbs)

    # Videos and features

    @cached_property
    def footage(self) -> Mapping[str, Footage]:
        """The videos of HT-Step, CrossTask, COIN and the configured narrations."""
        read: dict[str, list[str]] = {name: [] for name in [*self.datasets, self.narrated]}
        for job in self._made_of:
            for dataset in self._datasets(job.entry, job.release):
                read[dataset] += self.features(job.entry)
        heard = self.options["transcripts"] == "asr"
        spoken = any("speech" in entry.kind.sees for entry in self.shown.values())
        learned = any(self.trained_on(part) == "narrations" for part in self._parts)
        sound = {"htstep": heard and spoken} | ({self.narrated: heard and learned} if learned else {})
        key, listed = f"{self.name}.features", dict(self.datasets) | {self.narrated: self._narrated}
        return {
            name: Footage.of(
                self.config, listed[name], key, tuple(dict.fromkeys(names)), self.decoding, sound=sound.get(name, False)
            )
            for name, names in read.items()
        }

    @property
    def pipelines(self) -> Mapping[str, Any]:
        """The pipelines of the data sets that the configured tables read, except the user's own data set."""
        used = {dataset for job in self._made_of for dataset in self._datasets(job.entry, job.release)}
        return {name: self.footage[name].pipeline for name in self.datasets if name in used}

    @property
    def narrated(self) -> str:
        """The name of the data set with narrations."""
        name: str = self.options["narrations"]["dataset"]
        return name

    @cached_property
    def _narrated(self) -> Dataset:
        """The data set with narrations."""
        return self.datasets.get(self.narrated) or configured.dataset(self.config, self.narrated)

    def _datasets(self, entry: Entry, release: str) -> list[str]:
        """Return the data sets whose features an entry reads on a release: the predicted one, then the training one."""
        own = {"coin": "coin", "narrations": self.narrated}.get(self.trained_on(entry))
        if not entry.kind.method:
            return []
        return list(dict.fromkeys([self.dataset(release), *([own] if own else [])]))

    def trained_on(self, entry: Entry) -> str:
        """Return the training data of an entry, a key of ``DATA``; "" if it is not trained."""
        return str(entry.settings.get("data", "htstep")) if entry.trained else ""

    def parts(self, entry: Entry) -> Sequence[Entry]:
        """Return the entry, then the chain of entries whose checkpoints it uses to predict or to start training.

        Raises ConfigError if the chain is a cycle.
        """
        found = [entry]
        while other := found[-1].settings.get("of") or found[-1].settings.get("init"):
            if other in (names := [part.id for part in found]):
                where = f"config: htstep.entries.{entry.id}.settings"
                raise ConfigError(f"{where}: {' <- '.join([*names, other])} is a cycle: name another entry")
            found.append(self.entries[other])
        return found

    @cached_property
    def _made_of(self) -> list[Job]:
        """The jobs of each configured entry, and the jobs on HT-Step itself of the other entries in its chain."""
        jobs = list[Job]()
        for entry, release in self.pairs():
            first, *others = self.parts(self.entries[entry])
            jobs += [Job(release=release, entry=first), *(Job(release="v1", entry=other) for other in others)]
        return list({(job.entry.id, job.release): job for job in jobs}.values())

    @cached_property
    def _parts(self) -> list[Entry]:
        """The entries of the configured tables, and the other entries in their chains."""
        return list({job.entry.id: job.entry for job in self._made_of}.values())

    @property
    def releases(self) -> list[str]:
        """The releases to fetch, which jobs of the configured tables read, without those of the user's files."""
        read = (each for job in self._made_of for each in (job.release, *self.reads(job)))
        return [each for each in dict.fromkeys(read) if each not in OWN]

    # Checks of the configuration

    def check(self) -> None:
        """Raise ConfigError if an entry or an option is impossible."""
        checks.check(self)

    # Inputs of jobs

    @property
    def match(self) -> Mapping[str, Any] | None:
        """How the annotation marks full and partial matches; None if this is not configured."""
        return self.options["match"] if self.options["match"]["key"] else None

    @cached_property
    def labelled(self) -> tuple[str, ...]:
        """The splits whose labels are available."""
        return htstep.labelled_splits()

    @cached_property
    def made_up(self) -> bool:
        """Whether the annotation is made up."""
        return htstep.is_made()

    def stands(self, table: Table, line: Line, release: str) -> bool:
        """Return whether the table of a release has the line: Tables 5 and 6 are on CrossTask, the others on v1."""
        return (table.name in ON_CROSSTASK) == (release == "crosstask") and super().stands(table, line, release)

    def reads(self, job: Job) -> Sequence[str]:
        """Return the release, the annotation, and the user's files that an entry reads."""
        entry = job.entry
        if entry.kind.method is None:
            return ["v1"]
        if job.release == "crosstask":
            return ["crosstask"]
        found = ["v1", "annotations"]
        found += ["candidates"] if htstep.candidates_are_here() else []
        found += ["coin"] if self.trained_on(entry) == "coin" else []
        return [*found, *(["narrations"] if self._hears(entry) and self.options["transcripts"] == "released" else [])]

    def hears(self, entry: Entry) -> bool:
        """Return False: `_recognised` names the data set whose transcripts an entry reads, which may be another one."""
        return False

    def _hears(self, entry: Entry) -> bool:
        """Return whether an entry reads transcripts; the user's own predictions read none here."""
        return "speech" in entry.kind.sees or self.trained_on(entry) == "narrations"

    def _recognised(self, entry: Entry) -> str:
        """Return the data set whose recognised speech an entry reads, or ""."""
        heard = self.options["transcripts"] == "asr" and self._hears(entry)
        return (self.narrated if entry.trained else "htstep") if heard else ""

    def reads_besides(self, job: Job, stage: str) -> Sequence[Path]:
        """Return features and transcripts of other training videos, checkpoints, and the user's files."""
        entry, found = job.entry, list[Path]()
        if stage == "score":
            labels = [each for each in self.reads(job) if each in ("annotations", "candidates")]
            return [*map(self.release_manifest, labels)]
        if stage == "fit":
            trained = {"coin": "coin", "narrations": self.narrated}.get(self.trained_on(entry))
            found += [path for name in self.features(entry) if trained for path in self.footage[trained].inputs(name)]
        recognised = self._recognised(entry)
        if recognised and (stage == "fit" or "speech" in entry.kind.sees):
            found += self.footage[recognised].pipeline.speech.manifests
        if stage == ("fit" if entry.trained else "predict"):
            found += [path for part in self.parts(entry)[1:2] for path in self.fits(Job(release="v1", entry=part))]
        return [*found, *(self.files(entry) if stage == "predict" else [])]

    def files(self, entry: Entry) -> list[Path]:
        """Return the existing prediction files of the user that an entry reads."""
        folder = self.options["files"].get(entry.id)
        listed = [Path(os.path.expanduser(folder)) / f"{split}.csv" for split in entry.splits] if folder else []
        return [path for path in listed if path.exists()]

    def decides(self, job: Job) -> Mapping[str, Any]:
        """Return text encoders, transcripts, training data, files, and the spec of the next entry in the chain."""
        entry, options = job.entry, self.options
        before = [self.spec(Job(release="v1", entry=part)) for part in self.parts(entry)[1:2]]
        recognised = self._recognised(entry)
        heard = self.footage[recognised].pipeline.speech.record if recognised else "released"
        other = self._datasets(entry, job.release)[1:]
        trained = [self.footage[dataset].record(name) for dataset in other for name in self.features(entry)]
        said = options["narrations"] if self.trained_on(entry) == "narrations" else ""
        return {
            "texts": texts.record(self, entry),
            "before": before,
            "transcripts": heard if self._hears(entry) else "",
            "trained_on": trained,
            "narrations": said,
            "files": {path.name: cached_sha256(path) for path in self.files(entry)},
        }

    def jobs(self, file: str | None = None, entry: str = "") -> Iterator[Job]:
        """Yield the jobs of a table; without a table, all jobs, including entries whose checkpoints others read."""
        yield from super().jobs(file, entry)
        if file is None:
            for part in self._parts:
                if part.id not in self.shown and entry in ("", part.id) and not self.missing(part, "v1"):
                    yield Job(release="v1", entry=part)

    def measures(self, job: Job, metric: str) -> bool:
        """Return whether a metric applies to the release of a job."""
        return (metric in CROSSTASK) == (job.release == "crosstask")

    def score_params(self, job: Job) -> str:
        """Return the cache key of scores apart from their inputs, including how matches are read."""
        return canonical_json([super().score_params(job), self.match if job.release == "v1" else None])

    def table_inputs(self, file: str) -> list[Path]:
        """Return the inputs of a table, including counted releases and the submissions for withheld splits."""
        submitted = [job.entry for job in self.jobs(file) if job.release == "v1" and self.withheld(job.entry)]
        counts = any(self.entries[line.entry].kind.method is None for _, line, _ in self.lines(file))
        counted = [name for name in ("annotations", "candidates") if counts and self.released.is_there(name)]
        found = [*super().table_inputs(file), *map(self.release_manifest, counted)]
        return [*found, *(paths.submissions(self.name, entry.id) for entry in submitted)]

    def withheld(self, entry: Entry) -> list[str]:
        """Return the predicted splits of an entry whose labels are not available.

        Such splits are only predicted if the candidates, which list the steps to look for, are available.
        """
        if entry.kind_name == "files":
            predicted = [path.stem for path in self.files(entry)]
        else:
            predicted = list(entry.splits) if entry.kind.method and htstep.candidates_are_here() else []
        return [split for split in predicted if split not in self.labelled]

    @property
    def by_activity(self) -> list[Job]:
        """The jobs in Table 7, which are the jobs of the configured tables on HT-Step itself."""
        return [job for job in self.jobs() if job.release == "v1" and job.entry.id in self.shown]

    @property
    def by_activity_needs(self) -> dict[str, str]:
        """What each entry of the paper's Table 7 lacks, as text."""
        labels = self.missing_of(f"{BY_ACTIVITY_SPLIT}_map")
        needs = {entry: in_order([*self.lacking(self.entries[entry], "v1"), *labels]) for entry in BY_ACTIVITY}
        return {entry: ", ".join(map(str, lacking)) for entry, lacking in needs.items()}

    # Missing inputs

    def pipelines_of(self, entry: Entry, release: str) -> Sequence[Pipeline]:
        """Return the pipelines of the videos whose features or recognised speech an entry's whole chain reads."""
        found: dict[str, Pipeline] = {}
        for number, part in enumerate(self.parts(entry)):
            names, datasets = self.features(part), self._datasets(part, "v1" if number else release)
            read = [name for name in datasets if any(map(self.footage[name].is_backbone, names))]
            found |= {name: self.footage[name].pipeline for name in filter(None, [*read, self._recognised(part)])}
        return [*found.values()]

    def missing_besides(self, entry: Entry, release: str) -> Sequence[Need]:
        """Return the missing files, transcripts, features of other videos and encoders of an entry's whole chain."""
        found = texts.missing(self, entry)
        if entry.kind_name == "files" and entry.id not in self.options["files"]:
            found.append(Need("predictions", entry.id))
        if release == "v1" and self.trained_on(entry) == "htstep" and self._withholds("train"):
            found.append(Need("labels", "htstep/train"))
        for dataset in self._datasets(entry, release)[1:]:
            found += [need for name in self.features(entry) for need in self.footage[dataset].missing(name)]
        if recognised := self._recognised(entry):
            found += self.footage[recognised].pipeline.speech.missing
        for part in self.parts(entry)[1:2]:
            found += self.missing(part, "v1")
        return found

    def missing_of(self, metric: str) -> Sequence[Need]:
        """Return the labels of a split if they are withheld, and the key of matches if it is needed and not set."""
        if metric in COUNTS and metric != "videos" and not htstep.annotations_are_here():
            return [Need("release", "htstep/annotations")]
        if metric not in BY_LABELS:
            return []
        found = []
        if self._withholds(split_of(metric)):
            found.append(Need("labels", f"htstep/{split_of(metric)}"))
        if metric.endswith(("_full_map", "_partial_map")) and not self.match:
            found.append(Need("config", "htstep.match.key", "KEY"))
        return found

    def _withholds(self, split: str) -> bool:
        """Return whether the labels of a split are not in the annotation, or are known to be in none that is public."""
        return split not in self.labelled and (htstep.annotations_are_here() or split in htstep.WITHHELD)

    def unscored(self, entry: Entry, release: str, metric: str) -> Sequence[Need]:
        """Return why a metric has no value: the labels of its split are missing, or none of its videos was predicted.

        Recall has no needs, because methods are not required to predict times.
        """
        split = self.split(entry, metric)
        if metric in COUNTS:
            withheld = [each for each in PARTS[split] if self._withholds(each)] if metric != "videos" else []
            return [Need("labels", f"htstep/{each}") for each in withheld]
        if metric in RECALL or self.missing_of(metric):
            return []
        if split not in entry.splits and release == "v1":
            return [Need("config", f"htstep.entries.{entry.id}.splits", split)]
        return [Need("split", split) if self.subset else Need("videos", self.dataset(release))]

    # Tables

    def shown_options(self, entry: Entry, release: str) -> Mapping[str, Option]:
        """Return features, the text encoder, transcripts, and the narrations used in training."""
        shown, parts = dict(super().shown_options(entry, release)), self.parts(entry)
        if keys := [key for part in parts if (key := texts.encoder_of(part))]:
            mine, published = (each["texts"][keys[0]] for each in (self.options, self.defaults))
            shown["texts"] = Option(mine, published)
        if any(self._hears(part) for part in parts):
            shown["transcripts"] = Option(self.options["transcripts"], "released")
        if any(self.trained_on(part) == "narrations" for part in parts):
            mine, default = (each["narrations"] for each in (self.options, self.defaults))
            shown |= {f"narrations.{key}": Option(mine[key], default[key], said=False) for key in mine}
        return shown

    def line_options(self, line: Line, release: str) -> Mapping[str, Option]:
        """Return the named options of a line, including a made-up annotation."""
        found = dict(super().line_options(line, release))
        if self._is_made_up(self.entries[line.entry], release):
            found["annotation"] = Option("made up", "released")
        return found

    def _is_made_up(self, entry: Entry, release: str) -> bool:
        """Return whether an entry is counted, scored or trained on a made-up annotation."""
        trained = any(self.trained_on(part) == "htstep" for part in self.parts(entry))
        return (release == "v1" or trained) and self.made_up

    def seen(self, entry: Entry) -> tuple[Sees, ...]:
        """Return the inputs that an entry, or another entry in its chain, may see."""
        words = {word for part in self.parts(entry) for word in part.sees}
        return tuple(each for each in self.sees if each.word in words)

    def blind(self, entry: Entry, metric: str) -> str:
        """Return the blind baseline: uniform cuts on CrossTask, the mean place in train otherwise."""
        if metric in COUNTS:
            return ""
        return "uniform" if metric in CROSSTASK else "place"

    def split(self, entry: Entry, metric: str) -> str:
        """Return the split of a metric."""
        if metric in COUNTS:
            return str(entry.settings["part"])
        return split_of(metric) or "crosstask"

    def counted(self, entry: Entry, release: str) -> Mapping[str, float]:
        """Return the counts of a part (Table 1); raise UnavailableError if the list of videos is missing."""
        from stepline.benchmarks.htstep.score import counted

        if not self.release_manifest("v1").exists():
            raise UnavailableError(Need("release", "htstep/v1"))
        return counted(entry.settings["part"])

    def note(self, table: Table, line: Line, release: str, metric: str) -> str:
        """Return a note if the labels of the split are withheld, or the annotation is made up."""
        entry, split = self.entries[line.entry], split_of(metric)
        said = [MADE_UP] if self._is_made_up(entry, release) else []
        if split in self.withheld(entry) and not self.missing(entry, release):
            submission = paths.submissions(self.name, entry.id) / f"{split}.csv"
            said.append(f"the labels are withheld: submit {submission} to {CHALLENGE}")
        return "; ".join(said)

    def how_to_fill(self, need: Need) -> str:
        """Return the command that meets a need. The user supplies their own files."""
        own = {f"htstep/{name}": f"{name}/{file.path}" for name in OWN for file in htstep.FILES[name]}
        name = "htstep/annotations" if need.kind == "labels" else need.what
        if need.kind in ("release", "labels") and name in own:
            folder, _, file = own[name].partition("/")
            return f'install -D -t "$STEPLINE_MIRROR/htstep/{folder}" {file} && stepline fetch {name}'
        return super().how_to_fill(need)

    # Computation

    def inputs(self, job: Job) -> "HtstepInputs":
        """Return the inputs of a job."""
        from stepline.benchmarks.htstep.inputs import HtstepInputs

        return HtstepInputs(self, job)

    def examples(self) -> "Sequence[Picture]":
        """Return timelines of the steps of some videos."""
        from stepline.runs.shown import timelines

        def annotated(release: str) -> Mapping[str, SimpleNamespace]:
            if release != "v1" or not htstep.annotations_are_here():
                return {}
            return {
                each.video: SimpleNamespace(
                    duration_s=max(segment.end_s for segment in each.segments),
                    segments=[(segment.start_s, segment.end_s) for segment in each.segments],
                )
                for each in htstep.load("val_seen", None)
                if each.segments
            }

        return timelines(self, TRACKS, annotated, most=DRAWN)

    def in_time(self, inputs: "HtstepInputs", video: str, made: Found | None) -> InTime | None:
        """Return the truth of a video over time, with a prediction for it."""
        from stepline.benchmarks.htstep.in_time import in_time

        return in_time(inputs, video, made)

    def values(self, inputs: "HtstepInputs", made: Sequence[Found]) -> Mapping[str, Values]:
        """Return the values of each activity, step and task."""
        from stepline.benchmarks.htstep.score import values

        return values(inputs, made)
