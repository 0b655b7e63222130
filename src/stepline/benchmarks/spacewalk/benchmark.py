"""Spacewalk-18: step recognition and intra-video retrieval (Krishnan et al. 2024), on any study in its format."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stepline import paths, service
from stepline.backbones.registry import DOT, presets, tower_of
from stepline.backbones.sentence import MODELS
from stepline.benchmark import Benchmark, InTime, Job, Line, Option, Table, Values
from stepline.benchmarks.spacewalk import presentation
from stepline.benchmarks.spacewalk.checks import check
from stepline.benchmarks.spacewalk.demand import StudyDemand
from stepline.benchmarks.spacewalk.kinds import (
    FOLDER,
    KINDS,
    METRICS,
    SEES,
    Choice,
    SpacewalkEntry,
)
from stepline.benchmarks.spacewalk.missing import asks_nobody, missing_part, weights
from stepline.datasets.schema import Split
from stepline.datasets.studies import STEP_RECOGNITION, STUDIES, Study, study
from stepline.needs import Need, in_order
from stepline.pipeline import Pipeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stepline.benchmark.declared import SubParsers
    from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
    from stepline.tables import Row


class Spacewalk(Benchmark[SpacewalkEntry]):
    """A study in Spacewalk-18's format under one configuration."""

    folder = FOLDER
    studies = ("spacewalk", "demo")
    kinds = KINDS
    entry = SpacewalkEntry
    prediction = Choice
    metrics = METRICS
    sees = SEES
    splits = ("test",)
    revision = 4
    published: ClassVar = {"average_precision": "interpolated"}
    paper_release = "v0"
    about = "Table 2"
    how_to_read = presentation.WINDOWED
    how_to_read_examples = presentation.LABELS
    settings = ("baseline", "reference", "zero-shot", "tuned", "last-layer", "all-layer")
    rerun = (
        "the number in the same cell of the paper's later edition (WACV 2026), for which the authors repeated the "
        "experiment on a later release (v1 or v2; the paper does not say which)"
    )

    # The study

    @classmethod
    def add_verbs(cls, verbs: "SubParsers") -> None:
        """Add the benchmark's own verbs to the command line."""
        from stepline.benchmarks.spacewalk.verbs import add

        add(verbs)

    @property
    def title(self) -> str:
        """The study's title."""
        return self.released.title

    @cached_property
    def released(self) -> Study:
        """The study."""
        return STUDIES[self.name]

    @property
    def releases(self) -> list[str]:
        """The releases to fetch: all configured ones, because durations are measured on each."""
        configured: list[str] = self.options["releases"]
        return configured

    @cached_property
    def pipeline(self) -> Pipeline:
        """The pipeline of the study's videos."""
        return Pipeline(self.config, self.released, StudyDemand(self))

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """The study's pipeline, by data set."""
        return {self.name: self.pipeline}

    @cached_property
    def in_subset(self) -> frozenset[str]:
        """The videos of the configured subset."""
        return self.chosen(self.released)

    def check(self) -> None:
        """Raise ConfigError if releases, the subset, entries, lines or encoders are impossible."""
        for release in self.releases:
            study(self.name, release)
        self.in_subset  # noqa: B018 - raises if the subset names unlisted videos
        check(self)

    @property
    def targets(self) -> tuple[str, ...]:
        """The default targets."""
        return ("table2.csv", "report.html") if "table2" in self.tables else tuple(f"{t}.csv" for t in self.tables)

    def paper_file(self, file: str) -> Path | None:
        """Return the file with the paper's numbers for a table; None if there is none, or for other studies."""
        return super().paper_file(file) if self.name == "spacewalk" else None

    # Entries and lines

    @cached_property
    def entries(self) -> Mapping[str, SpacewalkEntry]:
        """All entries, by id; each also sees the inputs of its parts, except their windows."""
        known: Mapping[str, Any] = self.declared.entries
        seen = {
            name: [*entry.sees, *(word for part in entry.parts for word in known[part].sees if word != "window")]
            for name, entry in known.items()
        }
        return {name: replace(entry, inputs=tuple(seen[name])) for name, entry in known.items()}

    def parts(self, entry: SpacewalkEntry) -> tuple[SpacewalkEntry, ...]:
        """Return the entry and the entries that its settings name."""
        return (entry, *(self.entries[name] for name in entry.parts))

    def contexts(self, table: Table, line: Line) -> Sequence[tuple[float | None, float | None]]:
        """Return the window lengths of a line in seconds, each with the window length of its job.

        A line's ``contexts`` is `unlimited`, `repeated` (one job without windows, shown at each window length of the
        table), or a list of lengths in seconds. With `windows`, or by default, the line has the table's lengths.
        """
        of_table = self.options["contexts_s"].get(table.name, self.options["contexts_s"][table.task])
        if line.contexts == "repeated":
            return [(context_s, None) for context_s in of_table]
        if line.contexts == "unlimited":
            return [(None, None)]
        if line.contexts in ("windows", (None,)):
            return [(context_s, context_s) for context_s in of_table]
        return super().contexts(table, line)

    def stands(self, table: Table, line: Line, release: str) -> bool:
        """Return whether the table of a release has the line.

        The study `spacewalk` has all lines of the paper and of language models. Any other line needs its encoder, or a
        language model, to be configured.
        """
        has_task = table.task in self.released.tasks[release]
        return has_task and super().stands(table, line, release) and all(map(self._is_listed, self._parts_of(line)))

    def _parts_of(self, line: Line) -> tuple[SpacewalkEntry, ...]:
        return self.parts(self.entries[line.entry])

    def _is_listed(self, entry: SpacewalkEntry) -> bool:
        if self.name == "spacewalk" and (entry.protocol == "paper" or entry.kind_name == "llm"):
            return True
        configured = ["", *self.options["text_encoders"], *self.options["video_encoders"]]
        return not asks_nobody(self, entry) and entry.encoder in configured and entry.kind.method is not None

    def is_reference(self, line: Line) -> bool:
        """Return whether a line is copied from the paper without computation."""
        return self.entries[line.entry].kind.method is None

    def windows(self, *ids: str) -> list[float | None]:
        """Return the window lengths, in seconds, of the configured tables' jobs that use any of the entries.

        Lengths ascend, after None, which is unlimited.
        """
        found = {
            job_s
            for table, line, _ in self.lines()
            if any(part.id in ids for part in self._parts_of(line))
            for _, job_s in self.contexts(table, line)
        }
        return sorted(found, key=lambda length_s: length_s or 0)

    def releases_of(self, entry: SpacewalkEntry) -> list[str]:
        """Return the configured releases that have the entry's task."""
        return [release for release in self.releases if entry.task in self.released.tasks[release]]

    # Needs

    def pipelines_of(self, entry: SpacewalkEntry, release: str) -> Sequence[Pipeline]:
        """Return the study's pipeline if the entry reads videos, their features or speech recognised in them."""
        read = any(part.backbone or part.kind.decoded or self.recognised(part) for part in self.parts(entry))
        return [self.pipeline] if read else []

    def missing_besides(self, entry: SpacewalkEntry, release: str) -> Sequence[Need]:
        """Return the unmet needs of the entry: those on any release, and the release's training samples."""
        unsampled = entry.trained and "train" not in self.released.splits(release, entry.task)
        samples = [Need("samples", f"{release}/{entry.task}/train")] if unsampled else []
        return [*self.missing_anywhere(entry), *samples]

    def missing_anywhere(self, entry: SpacewalkEntry) -> Sequence[Need]:
        """Return the entry's unmet needs that do not depend on the release; empty if nothing is predicted."""
        if entry.id not in self._anywhere:
            self._anywhere[entry.id] = in_order(need for part in self.parts(entry) for need in missing_part(self, part))
        return self._anywhere[entry.id]

    @cached_property
    def _anywhere(self) -> dict[str, Sequence[Need]]:
        return {}

    @cached_property
    def wanted(self) -> Mapping[str, SpacewalkEntry]:
        """The entries to compute for the configured tables, now or once their needs are met, and their parts, by id."""
        computed = [entry for entry in self.shown.values() if entry.kind.method]
        kept = [each for each in computed if not any(need.kind == "config" for need in self.missing_anywhere(each))]
        return {part.id: part for entry in kept for part in self.parts(entry)}

    @cached_property
    def ready(self) -> Mapping[str, SpacewalkEntry]:
        """The wanted entries that can be computed now, by id."""
        able = [entry for entry in self.wanted.values() if not self.missing_anywhere(entry)]
        return {part.id: part for entry in able for part in self.parts(entry)}

    @property
    def uses_videos(self) -> bool:
        """Whether an entry that can be computed uses videos."""
        return any(map(self.recognised, self.ready.values())) or bool(self.pipeline.features.computed)

    @property
    def weights(self) -> Sequence[str]:
        """The names of the weights of the configured encoders and of the speech recogniser."""
        return weights(self)

    # Inputs and cache keys of entries

    def recognised(self, entry: SpacewalkEntry) -> bool:
        """Return whether the entry reads transcripts of the speech recogniser."""
        return self._reads_speech(entry) and self.options["transcripts"] == "asr"

    def _reads_speech(self, entry: SpacewalkEntry) -> bool:
        return entry.kind.transcribed or bool(self.texts_by(entry))

    def tower(self, backbone: str) -> str:
        """Return the name of a backbone's text tower; "" if it has none or is not a preset."""
        preset = presets().get(backbone)
        tower = tower_of(preset) if preset else None
        return tower.name if tower else ""

    def texts_by(self, entry: SpacewalkEntry) -> str:
        """Return the name of the encoder of the entry's texts; "" if it reads no text embeddings.

        Zero-shot step recognition from video alone embeds one text, the description of Irrelevant.
        """
        if not entry.kind.texts:
            return ""
        if entry.encoder in MODELS:
            return entry.encoder
        described = entry.kind_name == "zero-shot" and entry.task == STEP_RECOGNITION
        return self.tower(entry.encoder) if described or entry.blocks.strip("V") else ""

    def normalise(self, entry: SpacewalkEntry) -> str:
        """Return the normalisation, ``block`` or ``none``: the configured one, or for ``model`` the encoder's own."""
        chosen: str = self.options["normalise"]
        return self._compared(entry) if chosen == "model" else chosen

    def _compared(self, entry: SpacewalkEntry) -> str:
        preset = presets().get(entry.encoder)
        return "none" if preset and preset.architecture in DOT else "block"

    def shown_options(self, entry: SpacewalkEntry, release: str) -> Mapping[str, Option]:
        """Return the language model, the source of text, the normalisation of features, and the described spans."""
        chosen = dict[str, Option]()
        for part in self.parts(entry):
            if part.kind_name == "llm" and not asks_nobody(self, part):
                asked = self.changed("llm")
                chosen |= {key: replace(each, said=False) for key, each in asked.items() if key != "concurrency"}
            if self._reads_speech(part):
                chosen["transcripts"] = Option(self.options["transcripts"], "released")
            if part.blocks and part.encoder != "tfidf":
                chosen["normalise"] = Option(self.normalise(part), self._compared(part), said=False)
            unlimited = part.backbone and not part.kind.windowed
            if self.pipeline.videos.annotated and (unlimited or self.recognised(part)):
                chosen["spans"] = Option("annotated", "all", said=False)
        return chosen

    def backbones(self, entry: SpacewalkEntry, release: str) -> Sequence[str]:
        """Return the backbones of the entry and its parts."""
        return [part.backbone for part in self.parts(entry) if part.backbone]

    def blind(self, entry: SpacewalkEntry, metric: str) -> str:
        """Return the entry Random of the same task."""
        return "2a-random" if entry.task == STEP_RECOGNITION else "2b-random"

    def options_of(self, entry: SpacewalkEntry, metric: str) -> Sequence[str]:
        """Return the keys of ``metrics`` that affect a metric of an entry."""
        thresholded = metric == "accuracy" and entry.thresholded
        return [*super().options_of(entry, metric), *(["threshold_f1"] if thresholded else [])]

    def decides(self, job: Job) -> Mapping[str, Any]:
        """Return further fields of a job's spec: windows, text, encoders, and the same fields of the entry's parts."""
        own, *parts = (self._decides(part, job.release) for part in self.parts(job.entry))
        return {"context_s": job.context_s, **own, **({"parts": parts} if parts else {})}

    def _decides(self, entry: SpacewalkEntry, release: str) -> Mapping[str, Any]:
        encoders = filter(None, (entry.backbone, self.texts_by(entry)))
        record = {
            **entry.record,
            "task": entry.task,
            "options": {key: option.value for key, option in self.shown_options(entry, release).items()},
            "blocks": entry.blocks,
            "encoders": [self.pipeline.features.spec_of(name).record() for name in encoders],
        }
        if entry.kind_name == "llm":
            record["llm"] = service.record(self.options["llm"])
        return record | (self.pipeline.speech.record if self.recognised(entry) else {})

    def splits_of(self, entry: SpacewalkEntry, stage: str) -> tuple[Split, ...]:
        """Return the splits that a stage reads; they include val if a threshold or settings are chosen on it."""
        chosen = entry.thresholded or (stage == "predict" and entry.parts)
        return ("train", "val") if stage == "fit" else ("val", "test") if chosen else ("test",)

    def reads_besides(self, job: Job, stage: str) -> Sequence[Path]:
        """Return a stage's samples; for fits and predictions also features, transcripts and embeddings."""
        splits, features = self.splits_of(job.entry, stage), self.pipeline.features
        inputs = [paths.samples(self.name, job.release, job.entry.task, split) for split in splits]
        listed = [v.id for v in self.released.videos() if v.split in splits and v.id in self.in_subset]
        for part in self.parts(job.entry) if stage != "score" else ():
            inputs += features.manifests(part.backbone) if part.backbone else []
            if encoder := self.texts_by(part):
                place, spec = (self.name, job.release, job.entry.task), features.spec_of(encoder)
                inputs += [paths.text_manifest(*place, video, spec) for video in listed]
            inputs += self.pipeline.speech.manifests if self.recognised(part) else []
            inputs += self.pipeline.videos.availability if part.kind.decoded else []
        return inputs

    def table_inputs(self, file: str) -> list[Path]:
        """Return the inputs of a table: scores, and records of deleted videos."""
        return [*super().table_inputs(file), *self.pipeline.videos.dropped]

    # Results

    def inputs(self, job: Job) -> "SpacewalkInputs":
        """Return the inputs of a job."""
        from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs

        return SpacewalkInputs(self, job)

    def select(self, inputs: "SpacewalkInputs", made: Sequence[Choice]) -> tuple[Sequence[Choice], str]:
        """Return the predictions, with Irrelevant below the threshold chosen on val if the entry has one."""
        from stepline.benchmarks.spacewalk.score import select

        return select(inputs, made)

    def in_time(self, inputs: "SpacewalkInputs", video: str, made: Choice | None) -> InTime | None:
        """Return the ground truth and a prediction of a video over time."""
        from stepline.benchmarks.spacewalk.in_time import in_time

        return in_time(inputs, video, made)

    def values(self, inputs: "SpacewalkInputs", made: Sequence[Choice]) -> Mapping[str, Values]:
        """Return the values of each recording."""
        from stepline.benchmarks.spacewalk.score import values

        return values(inputs, made)

    # Pages and figures

    @property
    def results(self) -> list[Path]:
        """All result files."""
        return sorted([*super().results, *presentation.results(self)])

    @property
    def report_tables(self) -> Sequence[str]:
        """The table files on the page."""
        return ("table2",)

    def report_inputs(self) -> list[Path]:
        """Return the inputs of the page: Table 2, and the thumbnails and transcripts of the videos that entries use."""
        return [*super().report_inputs(), *presentation.page_inputs(self)]

    def page(self, rows: "Sequence[Row]") -> Mapping[str, Any]:
        """Return further content of the page: curves, spreads over videos, timelines and outputs of stages."""
        from stepline.benchmarks.spacewalk.report.page import page

        return page(self, rows)

    def figures(self, rows: "Sequence[Row]") -> "Mapping[str, Figure]":
        """Return the figure of a table: values against window length."""
        from stepline.benchmarks.spacewalk.report.figure_contexts import styles
        from stepline.benchmarks.spacewalk.report.page import by_context

        return by_context(rows, styles(rows))

    def write_examples(self) -> None:
        """Write ``results/<study>/examples.html``."""
        from stepline.benchmarks.spacewalk.examples import write_study_examples

        write_study_examples(self)
