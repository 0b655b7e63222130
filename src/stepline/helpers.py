"""Helpers of the rules: the plan, pipeline, job and resources that a rule's wildcards name."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

import stepline
from stepline import devices, paths, resources
from stepline.benchmark import Job
from stepline.config import Config
from stepline.pipeline import Pipeline
from stepline.pipeline.lost import forget_lost
from stepline.plans import has_tables
from stepline.plans import pipeline as pipeline_of
from stepline.plans import plan as plan_of
from stepline.resources import Resources
from stepline.spec import ReaderName, digest

Wildcards = Any
"""Snakemake's wildcards: parts of a rule's output path, by name."""


class Plan(Protocol):
    """The interface of a benchmark that the rules use.

    Lists of paths are inputs of rules. Params are texts: a job runs again if its inputs or params change.
    """

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """The pipelines of its videos, by data set."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The files of ``results/<study>/`` that a run without a named target writes."""

    @property
    def results(self) -> list[Path]:
        """The paths of all its results."""

    def table_title(self, file: str) -> str:
        """Return the title of a table."""

    def check_table(self, file: str) -> None:
        """Raise ConfigError if a table is not configured."""

    def stale(self) -> Iterable[str]:
        """Yield a line on each kind with predictions from an older version of its source code."""

    def job(self, release: str, entry: str, context: str) -> Job:
        """Return a job; raise ConfigError if there is none."""

    def release_params(self, release: str) -> str:
        """Return the params of fetching a release."""

    def fit_inputs(self, job: Job) -> list[Path]:
        """Return the inputs of fitting."""

    def fit_params(self, job: Job) -> str:
        """Return the params of fitting."""

    def predict_inputs(self, job: Job) -> list[Path]:
        """Return the inputs of prediction."""

    def predict_params(self, job: Job) -> str:
        """Return the params of prediction."""

    def score_inputs(self, job: Job) -> list[Path]:
        """Return the inputs of scoring, in addition to the predictions."""

    def score_params(self, job: Job) -> str:
        """Return the params of scoring."""

    def table_inputs(self, file: str) -> list[Path]:
        """Return the inputs of a table."""

    def table_params(self, file: str) -> str:
        """Return the params of a table."""

    def report_inputs(self) -> list[Path]:
        """Return the inputs of the report."""


def importable() -> str:
    """Create a folder in the work folder from which Python can import this package only, and return it.

    The folder of an installed package contains other packages, which may not fit the Python of a conda environment.
    """
    package = Path(stepline.__file__).resolve().parent
    folder = Path(f".stepline/package-{digest(str(package))}").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (folder / package.name).symlink_to(package)
    return str(folder)


@dataclass(frozen=True)
class Helpers:
    """The plans of benchmarks and studies, and the pipelines of data sets with videos, by name.

    cores: the number for a job that can use several. gpu: whether jobs that can use a GPU get one. reader: of videos.
    limit: returns the most that a job may request of a resource, if there is a limit. exceeded: how often a rule's job
    with some wildcards exceeded its request of a resource.
    """

    plans: Mapping[str, Plan]
    pipelines: Mapping[str, Pipeline]
    cores: int
    gpu: bool
    reader: ReaderName
    limit: Callable[[str], int | None] = lambda _: None
    exceeded: Counter[tuple[str, tuple[str, ...], str]] = field(default_factory=Counter)

    @classmethod
    def of(
        cls, config: Config, names: Iterable[str], cores: int, limit: Callable[[str], int | None] = lambda _: None
    ) -> "Helpers":
        """Return the plans and pipelines of all names; raise SteplineError if one is impossible."""
        made: dict[str, Plan] = {name: plan_of(config, name) for name in names if has_tables(config, name)}
        pipelines = {name: pipeline for plan in made.values() for name, pipeline in plan.pipelines.items()}
        own = [name for name in names if name not in (*made, *pipelines)]
        pipelines |= {name: pipeline_of(config, name) for name in own}
        gpu = devices.wanted(config["features"]["device"])
        return cls(made, pipelines, cores, gpu, config["media"]["reader"], limit)

    def forget_lost(self, *, looks: bool) -> Iterator[str]:
        """Remove records that list a file which is gone or damaged, see ``pipeline.lost``; yield a line on each."""
        for pipeline in self.pipelines.values():
            yield from forget_lost(pipeline, looks=looks)

    def left_out(self) -> Iterator[str]:
        """Yield a line on each data set whose folder contains other files than its videos."""
        for name, pipeline in self.pipelines.items():
            if line := pipeline.dataset.left_out():
                yield f"{name}: {line}"

    def note_current(self) -> None:
        """Record which features are configured; ``stepline.open_bank`` returns these."""
        for pipeline in self.pipelines.values():
            pipeline.features.note_current()

    def check_records(self) -> None:
        """Raise StoreError if a record that jobs use is damaged."""
        for pipeline in self.pipelines.values():
            pipeline.check_records()

    def plan(self, wildcards: Wildcards) -> Plan:
        """Return the plan of ``study``."""
        return self.plans[wildcards.study]

    def pipeline(self, wildcards: Wildcards) -> Pipeline:
        """Return the pipeline of ``dataset``."""
        return self.pipelines[wildcards.dataset]

    def job(self, wildcards: Wildcards) -> Job:
        """Return the job of ``entry`` on ``release`` at ``context``."""
        return self.plan(wildcards).job(wildcards.release, wildcards.entry, wildcards.context)

    def entry_environment(self, wildcards: Wildcards) -> str:
        """Return the conda environment of an entry's fits and predictions."""
        kind = self.job(wildcards).entry.kind
        return self._environment(self.reader if kind.decoded and self.reader != "pyav" else kind.environment)

    def score_environment(self, wildcards: Wildcards) -> str:
        """Return the conda environment of an entry's scores."""
        return self._environment(self.job(wildcards).entry.kind.scored_in)

    def backbone_environment(self, wildcards: Wildcards) -> str:
        """Return the conda environment of a backbone: the user's own file, or one in ``envs/``."""
        features = self.pipeline(wildcards).features
        return self._environment(features.environment(features.backbone_of(wildcards.backbone)))

    def _environment(self, name: str) -> str:
        return name if os.path.isabs(name) else f"../../envs/{name}.yaml"  # relative to the rule's file

    def entry_threads(self, wildcards: Wildcards) -> int:
        """Return ``cores`` if the job decodes videos, otherwise 1."""
        return self.cores if self.job(wildcards).entry.kind.decoded else 1

    def extract_threads(self, wildcards: Wildcards) -> int:
        """Return the threads of a features job: ``cores`` if any backbone is a network, otherwise 1."""
        return self.cores if self.pipeline(wildcards).features.networks else 1

    def extract_priority(self, wildcards: Wildcards) -> float:
        """Return the priority of a features job, in (1, 2]: highest for a shard's first, which computes all features.

        This way no job occupies a GPU while it waits for another job of its shard, as long as other shards remain. A
        job whose process was killed while it computed its own features alone comes after the others.
        """
        features = self.pipeline(wildcards).features
        backbone = features.backbone_of(wildcards.backbone)
        mark = paths.computing(features.store(backbone, wildcards.shard))
        killed = mark.is_file() and mark.read_text(encoding="utf-8") == "alone"
        return 1 + 1 / (1 + (len(features.computed) if killed else features.computed.index(backbone)))

    def group(self, wildcards: Wildcards) -> str | None:
        """Return the group of an entry's jobs, which a cluster runs together; None unless they take only seconds."""
        kind = self.job(wildcards).entry.kind
        return None if kind.gpu or kind.decoded or kind.scored_in != "core" else "heads"

    def resources(self, rule: str) -> Mapping[str, Callable[[Wildcards], int | None]]:
        """Return a function of the wildcards for each resource that the jobs of a rule request.

        An attempt requests what the first one did, and as much again for each earlier one that exceeded it.
        """
        first: dict[tuple[str, ...], Resources] = {}

        def asked(name: str) -> Callable[[Wildcards], int | None]:
            def of(wildcards: Wildcards) -> int | None:
                key = tuple(wildcards)
                if key not in first:
                    first[key] = self.first(rule, wildcards)
                value: int | None = getattr(first[key], name)
                return value and min(value * (1 + self.exceeded[rule, key, name]), self.limit(name) or sys.maxsize)

            return of

        return {field.name: asked(field.name) for field in fields(Resources)}

    def first(self, rule: str, wildcards: Wildcards) -> Resources:
        """Return the estimate of a job's resources, which its first attempt requests."""
        match rule:
            case "videos":
                return resources.of_videos(self.pipeline(wildcards), wildcards.shard)
            case "media" | "thumbnails":
                return resources.of_media(self.pipeline(wildcards), wildcards.shard)
            case "transcribe":
                return resources.of_transcribe(self.pipeline(wildcards), wildcards.shard, gpu=self.gpu)
            case "extract":
                return resources.of_extract(self.pipeline(wildcards), wildcards.shard, gpu=self.gpu)
            case "encode" | "clusters":
                return resources.of_encode(wildcards.encoder)
            case "fit" | "predict":
                pipelines = self.plan(wildcards).pipelines.values()
                return resources.of_entry(self.job(wildcards), pipelines, fit=rule == "fit", gpu=self.gpu)
            case "score":
                return resources.of_score(self.job(wildcards))
            case _:
                return resources.LIGHT
