"""HT-Step under one configuration."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from stepline import paths
from stepline.benchmark import (
    DURATION,
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
from stepline.benchmarks.htstep.metrics import COUNTS, CROSSTASK, METRICS, RECALL, SPLITS, split_of
from stepline.datasets import configured, htstep
from stepline.datasets.dataset import Dataset
from stepline.errors import ConfigError
from stepline.footage import Footage
from stepline.io import canonical_json
from stepline.mirror import cached_sha256
from stepline.needs import Need, unique

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers
    from stepline.benchmarks.htstep.inputs import HtstepInputs
    from stepline.report import Picture

ON_CROSSTASK = ("5", "6")
"""The tables that stand on the release ``crosstask``."""
BY_LABELS = tuple(metric for metric in METRICS if split_of(metric))
"""The metrics that need the labels of a split."""
OWN = ("annotations", "candidates", "narrations")
"""The releases that are the user's own files."""
OTHERS = ("crosstask", "coin")
"""The releases that list the videos of another data set."""
TRACKS = {"place": "Mean place", "mt-bce": "MT+BCE", "aft": "ActionFormer-T", "actionformer": "ActionFormer"}
"""The entries whose segments are drawn over time."""
DRAWN = 8
"""Of the predicted segments of a video, the best ones are drawn."""
MADE_UP = "the annotation is made up: no result"
"""What stands beside a number of such an annotation."""
CHALLENGE = "EvalAI's challenge 2205"
"""Who has the withheld labels."""


class Htstep(Benchmark[Entry]):
    """HT-Step. Its metrics are of a split each; the labels of some splits are withheld."""

    about = "article grounding"
    folder = Path(__file__).parent
    studies = ("htstep",)
    released = htstep.RELEASES
    datasets = htstep.DATASETS
    kinds = KINDS
    splits = ("train", *SPLITS, "crosstask", "coin", "narrations")
    prediction = Found
    metrics = METRICS
    sees = (
        VIDEO,
        Sees("article", "the steps of the article, of HT-Step in the variation that was annotated"),
        Sees("speech", "the transcript"),
        DURATION,
        TRAIN,
        Sees("narrations", "what is said in training videos", split="narrations"),
        Sees("coin", "the annotation of COIN", split="coin"),
    )
    published: ClassVar = {"crosstask_subsets": 20}
    settings = ("baseline",)
    drawn = ("val_seen_map", "crosstask_r1")
    rerun = "what later papers report"
    how_to_read = (
        "Filled markers are ours, with the 95 % interval by bootstrap over the activities; hollow ones are the paper's."
    )
    how_to_read_examples = "The top strip holds the annotated steps, those below the best predictions."
    also_made = ("table7.csv",)

    @classmethod
    def add_verbs(cls, verbs: "SubParsers") -> None:
        """Add the verb `htstep`."""
        from stepline.benchmarks.htstep.verbs import add

        add(verbs)

    # Videos and features

    @cached_property
    def footage(self) -> Mapping[str, Footage]:
        """The videos of HT-Step, CrossTask and COIN, and of the configured narrations."""
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
            name: Footage(
                self.config, listed[name], key, tuple(dict.fromkeys(names)), self.decoding, sound=sound.get(name, False)
            )
            for name, names in read.items()
        }

    @property
    def pipelines(self) -> Mapping[str, Any]:
        """The pipelines of the videos that the configured tables read, but for those of the user's own data set."""
        used = {dataset for job in self._made_of for dataset in self._datasets(job.entry, job.release)}
        return {name: self.footage[name].pipeline for name in self.datasets if name in used}

    @property
    def narrated(self) -> str:
        """The data set of narrations."""
        name: str = self.options["narrations"]["dataset"]
        return name

    @cached_property
    def _narrated(self) -> Dataset:
        """The data set of narrations."""
        return self.datasets.get(self.narrated) or configured.dataset(self.config, self.narrated)

    def _datasets(self, entry: Entry, release: str) -> list[str]:
        """Return the data sets whose features an entry reads on a release: those that it predicts, and trains on."""
        own = {"coin": "coin", "narrations": self.narrated}.get(self.trained_on(entry))
        if not entry.kind.method:
            return []
        return list(dict.fromkeys([self.dataset(release), *([own] if own else [])]))

    def trained_on(self, entry: Entry) -> str:
        """Return what an entry is trained on, one of ``DATA``; "" of one that is not."""
        return str(entry.settings.get("data", "htstep")) if entry.trained else ""

    def parts(self, entry: Entry) -> Sequence[Entry]:
        """Return the entry, then each whose checkpoint the one before predicts by, or is trained from.

        Raises ConfigError where training has no beginning.
        """
        found = [entry]
        while other := found[-1].settings.get("of") or found[-1].settings.get("init"):
            if other in (names := [part.id for part in found]):
                where = f"config: htstep.entries.{entry.id}.settings"
                raise ConfigError(f"{where}: {' <- '.join([*names, other])} has no beginning")
            found.append(self.entries[other])
        return found

    @cached_property
    def _made_of(self) -> list[Job]:
        """Each configured entry on its releases, and on HT-Step itself those that it is made of."""
        jobs = list[Job]()
        for entry, release in self.pairs():
            first, *others = self.parts(self.entries[entry])
            jobs += [Job(release=release, entry=first), *(Job(release="v1", entry=other) for other in others)]
        return list({(job.entry.id, job.release): job for job in jobs}.values())

    @cached_property
    def _parts(self) -> list[Entry]:
        """The entries of the configured tables, and those that they are made of."""
        return list({job.entry.id: job.entry for job in self._made_of}.values())

    @property
    def releases(self) -> list[str]:
        """The releases to fetch: those that jobs of the configured tables read, without the user's own files."""
        read = (each for job in self._made_of for each in (job.release, *self.reads(job)))
        return [each for each in dict.fromkeys(read) if each not in OWN]

    # Whether it is possible

    def check(self) -> None:
        """Raise ConfigError where an entry, or a size of a model, is impossible."""
        checks.check(self)

    # What jobs read

    @property
    def match(self) -> Mapping[str, Any] | None:
        """How the annotation says full and partial; None where it is not configured."""
        return self.options["match"] if self.options["match"]["key"] else None

    @cached_property
    def labelled(self) -> tuple[str, ...]:
        """The splits whose labels are here."""
        return htstep.labelled_splits()

    @cached_property
    def made_up(self) -> bool:
        """Whether the annotation is made up."""
        return htstep.is_made()

    def stands(self, table: Table, line: Line, release: str) -> bool:
        """Return whether a line stands in the table of a release: Tables 5 and 6 on CrossTask, the others on v1."""
        return (table.name in ON_CROSSTASK) == (release == "crosstask") and super().stands(table, line, release)

    def reads(self, job: Job) -> Sequence[str]:
        """Return the release, the annotation, and what else an entry reads of the user's."""
        entry = job.entry
        if entry.kind.method is None:
            return ["v1"]
        if job.release == "crosstask":
            return ["crosstask"]
        found = ["v1", "annotations"]
        found += ["candidates"] if htstep.candidates_are_here() else []
        found += ["coin"] if self.trained_on(entry) == "coin" else []
        return [*found, *(["narrations"] if self._hears(entry) and self.options["transcripts"] == "released" else [])]

    def _hears(self, entry: Entry) -> bool:
        """Return whether an entry reads what is said; predictions of the user's own read nothing, whatever they saw."""
        return "speech" in entry.kind.sees or self.trained_on(entry) == "narrations"

    def reads_besides(self, job: Job, stage: str) -> Sequence[Path]:
        """Return features and transcripts of other videos that are trained on, checkpoints, and the user's files."""
        entry, found = job.entry, list[Path]()
        if stage == "score":
            labels = [each for each in self.reads(job) if each in ("annotations", "candidates")]
            return [*map(self.release_manifest, labels)]
        if stage == "fit":
            trained = {"coin": "coin", "narrations": self.narrated}.get(self.trained_on(entry))
            found += [path for name in self.features(entry) if trained for path in self.footage[trained].inputs(name)]
        heard = self.options["transcripts"] == "asr" and self._hears(entry)
        if heard and (stage == "fit" or "speech" in entry.kind.sees):
            name = self.narrated if entry.trained else "htstep"
            found += self.footage[name].pipeline.speech.manifests
        if stage == ("fit" if entry.trained else "predict"):
            found += [path for part in self.parts(entry)[1:2] for path in self.fits(Job(release="v1", entry=part))]
        return [*found, *(self.files(entry) if stage == "predict" else [])]

    def files(self, entry: Entry) -> list[Path]:
        """Return the user's files of predictions that an entry reads, as far as they are there."""
        folder = self.options["files"].get(entry.id)
        listed = [Path(folder).expanduser() / f"{split}.csv" for split in entry.splits] if folder else []
        return [path for path in listed if path.exists()]

    def decides(self, job: Job) -> Mapping[str, Any]:
        """Return what else decides predictions: encoders of texts, transcripts, files, and the entry before."""
        entry, options = job.entry, self.options
        before = [self.spec(Job(release="v1", entry=part)) for part in self.parts(entry)[1:2]]
        speech = self.footage[self.narrated if entry.trained else "htstep"].pipeline.speech
        heard = (speech.record if options["transcripts"] == "asr" else "released") if self._hears(entry) else ""
        other = self._datasets(entry, job.release)[1:]
        trained = [self.footage[dataset].record(name) for dataset in other for name in self.features(entry)]
        said = options["narrations"] if self.trained_on(entry) == "narrations" else ""
        return {
            "texts": texts.record(self, entry),
            "before": before,
            "transcripts": heard,
            "trained_on": trained,
            "narrations": said,
            "files": {path.name: cached_sha256(path) for path in self.files(entry)},
        }

    def jobs(self, file: str | None = None, entry: str = "") -> Iterator[Job]:
        """Yield the jobs of a table, or of all; of all, those of entries whose checkpoints others read, too."""
        yield from super().jobs(file, entry)
        if file is None:
            for part in self._parts:
                if part.id not in self.shown and entry in ("", part.id) and not self.missing(part, "v1"):
                    yield Job(release="v1", entry=part)

    def measures(self, job: Job, metric: str) -> bool:
        """Return whether a metric is of a job's release."""
        return (metric in CROSSTASK) == (job.release == "crosstask")

    def score_params(self, job: Job) -> str:
        """Return what decides scores, besides their inputs, as text; how matches are read is of it."""
        return canonical_json([super().score_params(job), self.match if job.release == "v1" else None])

    def table_inputs(self, file: str) -> list[Path]:
        """Return what a table collects and counts, and the submissions that stand for numbers of withheld splits."""
        submitted = [job.entry for job in self.jobs(file) if job.release == "v1" and self.withheld(job.entry)]
        counts = any(self.entries[line.entry].kind.method is None for _, line, _ in self.lines(file))
        counted = [name for name in ("annotations", "candidates") if counts and self.released.is_there(name)]
        found = [*super().table_inputs(file), *map(self.release_manifest, counted)]
        return [*found, *(paths.submissions(self.name, entry.id) for entry in submitted)]

    def withheld(self, entry: Entry) -> list[str]:
        """Return the splits that an entry predicts and whose labels are not here.

        None of these is predicted where no candidates say which steps are looked for.
        """
        if entry.kind_name == "files":
            predicted = [path.stem for path in self.files(entry)]
        else:
            predicted = list(entry.splits) if entry.kind.method and htstep.candidates_are_here() else []
        return [split for split in predicted if split not in self.labelled]

    @property
    def by_activity(self) -> list[Job]:
        """The jobs whose scores of activities Table 7 shows: those of the configured tables on HT-Step itself."""
        return [job for job in self.jobs() if job.release == "v1" and job.entry.id in self.shown]

    # What is missing

    def missing_besides(self, entry: Entry, release: str) -> Sequence[Need]:
        """Return files, transcripts, other videos' features and encoders that the entry, or one before, is missing."""
        if entry.kind_name == "files" and entry.id not in self.options["files"]:
            return [Need("config", f"htstep.files.{entry.id}", "FOLDER")]
        found = texts.missing(self, entry)
        if release == "v1" and self.trained_on(entry) == "htstep" and self._withholds("train"):
            found.append(Need("labels", "htstep/train"))
        for dataset in self._datasets(entry, release)[1:]:
            footage, names = self.footage[dataset], self.features(entry)
            if dataset in OTHERS and any(map(footage.is_backbone, names)) and not self.released.is_there(dataset):
                found.append(Need("release", f"htstep/{dataset}"))
            found += [need for name in names for need in footage.missing(name)]
        if self.options["transcripts"] == "asr" and self._hears(entry):
            found += self.footage[self.narrated if entry.trained else "htstep"].pipeline.speech.missing
        for part in self.parts(entry)[1:2]:
            found += self.missing(part, "v1")
        return unique(found)

    def missing_of(self, metric: str) -> Sequence[Need]:
        """Return the labels of a split, where they are withheld, and the key of full and partial matches."""
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
        """Return whether the annotation is here, and has no labels of a split."""
        return htstep.annotations_are_here() and split not in self.labelled

    def unscored(self, entry: Entry, release: str, metric: str) -> Sequence[Need]:
        """Return why a metric has no value: its split's labels are not here, or none of its videos was predicted.

        Of recall nothing is missing: a method need not say times.
        """
        split = self.split(entry, metric)
        if metric in RECALL:
            return []
        if metric in COUNTS:
            return [Need("labels", f"htstep/{split}")]
        if split not in entry.splits and release == "v1":
            return [Need("config", f"htstep.entries.{entry.id}.splits", split)]
        return [Need("split", split) if self.subset else Need("videos", self.dataset(release))]

    # What tables say

    def shown_options(self, entry: Entry, release: str) -> Mapping[str, Option]:
        """Return features, the encoder of texts, transcripts and whose narrations are learned."""
        shown, parts = dict(super().shown_options(entry, release)), self.parts(entry)
        if keys := [key for part in parts if (key := texts.encoder_of(part))]:
            mine, published = (each["texts"][keys[0]] for each in (self.options, self.defaults))
            shown["texts"] = Option(mine, published)
        if any(self._hears(part) for part in parts):
            shown["transcripts"] = Option(self.options["transcripts"], "released")
        if any(self.trained_on(part) == "narrations" for part in parts):
            shown["narrations"] = Option(self.narrated, "howto100m")
        return shown

    def line_options(self, line: Line, release: str) -> Mapping[str, Option]:
        """Return the named options of a line, with an annotation that is made up."""
        found = dict(super().line_options(line, release))
        if self._is_made_up(self.entries[line.entry], release):
            found["annotation"] = Option("made up", "released")
        return found

    def _is_made_up(self, entry: Entry, release: str) -> bool:
        """Return whether an entry is counted, scored or trained on annotation that is made up."""
        trained = any(self.trained_on(part) == "htstep" for part in self.parts(entry))
        return (release == "v1" or trained) and self.made_up

    def seen(self, entry: Entry) -> tuple[Sees, ...]:
        """Return what an entry, or what it is made of, may see."""
        words = {word for part in self.parts(entry) for word in part.sees}
        return tuple(each for each in self.sees if each.word in words)

    def blind(self, entry: Entry, metric: str) -> str:
        """Return what sees no video: uniform cuts on CrossTask, the mean place of train elsewhere."""
        if metric in COUNTS:
            return ""
        return "uniform" if metric in CROSSTASK else "place"

    def split(self, entry: Entry, metric: str) -> str:
        """Return the split that a metric is of."""
        if metric in COUNTS:
            return str(entry.settings["part"])
        return split_of(metric) or "crosstask"

    def counted(self, entry: Entry, release: str) -> Mapping[str, float]:
        """Return the counts of a split (Table 1); raise UnavailableError where the list of videos is not there."""
        from stepline.benchmarks.htstep.score import counted

        if not self.release_manifest("v1").exists():
            raise UnavailableError(Need("release", "htstep/v1"))
        return counted(entry.settings["part"])

    def note(self, table: Table, line: Line, release: str, metric: str) -> str:
        """Return what must be known of a split whose labels are withheld, or of an annotation that is made up."""
        entry, split = self.entries[line.entry], split_of(metric)
        said = [MADE_UP] if self._is_made_up(entry, release) else []
        if split in self.withheld(entry) and not self.missing(entry, release):
            submission = paths.submissions(self.name, entry.id) / f"{split}.csv"
            said.append(f"the labels are withheld: {submission} is what {CHALLENGE} takes")
        return "; ".join(said)

    def how_to_fill(self, need: Need) -> str:
        """Return a command that brings what is missing; the user's own files come by hand."""
        own = {f"htstep/{name}": f"{name}/{file.path}" for name in OWN for file in htstep.FILES[name]}
        name = "htstep/annotations" if need.kind == "labels" else need.what
        if need.kind in ("release", "labels") and name in own:
            folder, _, file = own[name].partition("/")
            return f'install -D -t "$STEPLINE_MIRROR/htstep/{folder}" {file} && stepline fetch {name}'
        return super().how_to_fill(need)

    # What is computed

    def inputs(self, job: Job) -> "HtstepInputs":
        """Return what a job reads."""
        from stepline.benchmarks.htstep.inputs import HtstepInputs

        return HtstepInputs(self, job)

    def examples(self) -> "Sequence[Picture]":
        """Return the steps of some videos over time."""
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
        """Return the truth of a video and what a prediction says of it over time."""
        from stepline.benchmarks.htstep.in_time import in_time

        return in_time(inputs, video, made)

    def values(self, inputs: "HtstepInputs", made: Sequence[Found]) -> Mapping[str, Values]:
        """Return the values of each activity, step and task."""
        from stepline.benchmarks.htstep.score import values

        return values(inputs, made)
