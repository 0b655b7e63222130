"""Spacewalk-18: step recognition and intra-video retrieval (Krishnan et al., 2024), on all that has its form."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import urlsplit

from stepline import paths
from stepline.backbones.registry import DOT, presets, tower_of
from stepline.backbones.sentence import MODELS
from stepline.backbones.weights import WEIGHTS, locate
from stepline.benchmark import Benchmark, Job, Line, Option, Table, Values
from stepline.benchmarks.spacewalk import presentation
from stepline.benchmarks.spacewalk.checks import check_encoders, check_entries, check_lines
from stepline.benchmarks.spacewalk.demand import StudyDemand
from stepline.benchmarks.spacewalk.kinds import (
    FOLDER,
    KINDS,
    METRICS,
    SEES,
    TEXT_ENCODERS,
    Choice,
    SpacewalkEntry,
)
from stepline.config import Config
from stepline.datasets import configured
from stepline.datasets.studies import STEP_RECOGNITION, Study
from stepline.io import canonical_json
from stepline.needs import Need, unique
from stepline.pipeline import Pipeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stepline.benchmark.declared import SubParsers
    from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
    from stepline.tables import Row

FIXED = {"windows": ("val", "test")}


class Spacewalk(Benchmark[SpacewalkEntry]):
    """A study in Spacewalk-18's form under one configuration."""

    folder = FOLDER
    studies = ("spacewalk", "demo")
    kinds = KINDS
    entry = SpacewalkEntry
    prediction = Choice
    metrics = METRICS
    sees = SEES
    revision = 2
    published: ClassVar = {"average_precision": "interpolated"}
    paper_release = "v0"
    about = "Table 2"
    how_to_read = presentation.WINDOWED
    how_to_read_examples = presentation.LABELS
    settings = ("baseline", "reference", "zero-shot", "tuned", "last-layer", "all-layer")
    rerun = (
        "the number of the same cell in the paper's later edition (WACV 2026): its authors ran it again, on a later "
        "release (v1 or v2, it does not say which)"
    )

    # The study

    @classmethod
    def serves(cls, config: Config) -> list[str]:
        """Return the names of the public studies, and of the user's data sets with a ``study``."""
        return [*cls.studies, *(name for name, declared in config["datasets"].items() if "study" in declared)]

    @classmethod
    def configured(cls, config: Config, name: str) -> Self:
        """Return the plan without a look at what is missing; raise ConfigError where it is not configured."""
        return cls(config, name) if name in config["datasets"] else super().configured(config, name)

    @classmethod
    def add_verbs(cls, verbs: "SubParsers") -> None:
        """Add its own verbs."""
        from stepline.benchmarks.spacewalk.verbs import add

        add(verbs)

    @property
    def title(self) -> str:
        """The study's."""
        return self.released.title

    @cached_property
    def released(self) -> Study:
        """The study; raises ReleaseError where the release of the user's own is absent or changed."""
        return configured.study(self.config, self.name)

    @property
    def options(self) -> Config:
        """The study's part of the configuration."""
        own: Config = (
            self.config[self.name] if self.name in self.config else self.config["datasets"][self.name]["study"]
        )
        return own

    def at(self, changes: Config) -> Config:
        """Return changes of the study's part of the configuration where they stand in the whole."""
        return super().at(changes) if self.name in self.config else {"datasets": {self.name: {"study": changes}}}

    @cached_property
    def pipeline(self) -> Pipeline:
        """The pipeline of the study's videos."""
        return Pipeline(self.config, self.released, StudyDemand(self))

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """The same, by the name of the data set."""
        return {self.name: self.pipeline}

    @cached_property
    def videos(self) -> frozenset[str]:
        """The videos of the configured subset."""
        return self.chosen(self.released)

    def check(self) -> None:
        """Raise ConfigError where releases, the subset, entries, lines or encoders are impossible."""
        for release in self.releases:
            configured.study(self.config, self.name, release)
        self.videos  # noqa: B018 - raises where the subset names what is not listed
        check_entries(self)
        check_lines(self)
        check_encoders(self)

    @property
    def targets(self) -> tuple[str, ...]:
        """What is made of the study where no target is named."""
        return ("table2.csv", "report.html") if "table2" in self.tables else tuple(f"{t}.csv" for t in self.tables)

    def paper_file(self, file: str) -> Path | None:
        """Return the paper's numbers of a table; None where it has none, or the study is another."""
        return super().paper_file(file) if self.name == "spacewalk" else None

    # Entries and lines

    @cached_property
    def entries(self) -> Mapping[str, SpacewalkEntry]:
        """All entries, by id; each sees what its parts see besides windows, whose length is its own."""
        declared: Mapping[str, Any] = self.declared.entries
        seen = {
            name: [*entry.sees, *(w for p in entry.parts for w in declared[p].sees)] for name, entry in declared.items()
        }
        return {name: replace(entry, inputs=tuple(seen[name])) for name, entry in declared.items()}

    def parts(self, entry: SpacewalkEntry) -> tuple[SpacewalkEntry, ...]:
        """Return the entry, and those that its settings name."""
        return (entry, *(self.entries[name] for name in entry.parts))

    def contexts(self, table: Table, line: Line) -> Sequence[tuple[float | None, float | None]]:
        """Return the window lengths at which a line stands, each with that of its job."""
        raise NotImplementedError

    def stands(self, table: Table, line: Line, release: str) -> bool:
        """Return whether a line stands in the table of a release: the paper's in its study, others where configured."""
        raise NotImplementedError

    def is_reference(self, line: Line) -> bool:
        """Return whether a line is copied from the paper, and nothing is computed."""
        return self.entries[line.entry].kind.method is None

    def windows(self, entry: SpacewalkEntry) -> list[float | None]:
        """Return the window lengths, in seconds, at which the configured tables have an entry, in their order."""
        raise NotImplementedError

    def releases_of(self, entry: SpacewalkEntry) -> list[str]:
        """Return the configured releases that have the entry's task."""
        return [release for release in self.releases if entry.task in self.released.tasks[release]]

    # What is missing

    def missing_besides(self, entry: SpacewalkEntry, release: str) -> Sequence[Need]:
        """Return what the entry is missing: anywhere, or the training samples of the release."""
        raise NotImplementedError

    @cached_property
    def wanted(self) -> Mapping[str, SpacewalkEntry]:
        """What is or will be computed for the configured tables, parts of others among it, by id."""
        raise NotImplementedError

    @cached_property
    def ready(self) -> Mapping[str, SpacewalkEntry]:
        """What of that can be computed now."""
        raise NotImplementedError

    @property
    def uses_videos(self) -> bool:
        """Whether an entry that can be computed uses videos."""
        raise NotImplementedError

    def recognised(self, entry: SpacewalkEntry) -> bool:
        """Return whether the entry reads transcripts that a recogniser made."""
        raise NotImplementedError

    # What decides results: `record`, `shown_options`, `decides`, `reads_besides`; `encode_inputs`, `encode_params`

    def shown_options(self, entry: SpacewalkEntry, release: str) -> Mapping[str, Option]:
        """Return the named options that matter to the entry's numbers."""
        raise NotImplementedError

    # Results

    def inputs(self, job: Job) -> "SpacewalkInputs":
        """Return what a job reads."""
        from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs

        return SpacewalkInputs(self, job)

    def select(self, inputs: "SpacewalkInputs", made: Sequence[Choice]) -> tuple[Sequence[Choice], str]:
        """Return predictions with Irrelevant below the threshold that is chosen on val, where the entry has one."""
        raise NotImplementedError

    def values(self, inputs: "SpacewalkInputs", made: Sequence[Choice]) -> Mapping[str, Values]:
        """Return the values of each recording."""
        raise NotImplementedError

    # Pages and figures

    @property
    def results(self) -> list[Path]:
        """All that is made of the study."""
        return sorted([*super().results, *presentation.results(self)])

    @property
    def report_tables(self) -> Sequence[str]:
        """The file of tables that the page shows."""
        return ("table2",)

    def report_inputs(self) -> list[Path]:
        """Return what the page shows: Table 2, and what the stages made of the videos that entries use."""
        return [*super().report_inputs(), *presentation.page_inputs(self)]

    def page(self, rows: "Sequence[Row]") -> Mapping[str, Any]:
        """Return what else the page shows: curves, spreads over videos, timelines and stages."""
        from stepline.benchmarks.spacewalk.report.page import page

        return page(self, rows)

    def figures(self, rows: "Sequence[Row]") -> "Mapping[str, Figure]":
        """Return the picture of a table: values over window lengths."""
        from stepline.benchmarks.spacewalk.report.figure_contexts import styles
        from stepline.benchmarks.spacewalk.report.page import by_context

        return by_context(rows, styles(rows))

    def write_examples(self) -> None:
        """Write ``results/<study>/examples.html``."""
        from stepline.benchmarks.spacewalk.examples import write_study_examples

        write_study_examples(self)
