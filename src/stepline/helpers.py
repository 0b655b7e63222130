"""What the rules ask: the plan, the pipeline and the job that their wildcards name."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import stepline
from stepline import devices, resources
from stepline.benchmark import Job
from stepline.config import Config
from stepline.pipeline import Pipeline
from stepline.pipeline.lost import forget_lost
from stepline.plans import has_tables
from stepline.plans import pipeline as pipeline_of
from stepline.plans import plan as plan_of
from stepline.resources import Resources
from stepline.spec import digest

Wildcards = Any
"""Snakemake's: the parts of a rule's output by name."""


class Plan(Protocol):
    """What the rules ask of a benchmark.

    Lists of paths are inputs of rules; texts called params decide, besides the inputs, when a job runs again.
    """

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """The pipelines of its videos, by data set."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The files of ``results/<study>/`` that are made where no target is named."""

    @property
    def results(self) -> list[Path]:
        """All that is made of it."""

    def table_title(self, file: str) -> str:
        """Return what a file of tables shows."""

    def check_table(self, file: str) -> None:
        """Raise ConfigError where a table is not configured."""

    def stale(self) -> Iterable[str]:
        """Yield a line on each kind with predictions that other source of it made."""

    def job(self, release: str, entry: str, context: str) -> Job:
        """Return a job; raise ConfigError where there is none."""

    def release_params(self, release: str) -> str:
        """Return the params of fetching a release."""

    def fit_inputs(self, job: Job) -> list[Path]:
        """Return what fitting reads."""

    def fit_params(self, job: Job) -> str:
        """Return the params of fitting."""

    def predict_inputs(self, job: Job) -> list[Path]:
        """Return what predicting reads."""

    def predict_params(self, job: Job) -> str:
        """Return the params of predicting."""

    def score_inputs(self, job: Job) -> list[Path]:
        """Return what scoring reads besides the predictions."""

    def score_params(self, job: Job) -> str:
        """Return the params of scoring."""

    def table_inputs(self, file: str) -> list[Path]:
        """Return what a table is made from."""

    def table_params(self, file: str) -> str:
        """Return the params of a table."""

    def report_inputs(self) -> list[Path]:
        """Return what the report shows."""


def importable() -> str:
    """Return a folder where Python finds the package and nothing else, made in the work folder.

    The folder of an installed package has other packages too, of another Python than that of a conda environment.
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

    cores: of a job that can use many. gpu: whether jobs that can use a GPU have one.
    """

    plans: Mapping[str, Plan]
    pipelines: Mapping[str, Pipeline]
    cores: int
    gpu: bool

    @classmethod
    def of(cls, config: Config, names: Iterable[str], cores: int) -> "Helpers":
        """Return what there is to do for all names; raise SteplineError where it is impossible."""
        made: dict[str, Plan] = {name: plan_of(config, name) for name in names if has_tables(config, name)}
        pipelines = {name: pipeline for plan in made.values() for name, pipeline in plan.pipelines.items()}
        own = [name for name in names if name not in (*made, *pipelines)]
        pipelines |= {name: pipeline_of(config, name) for name in own}
        gpu = devices.wanted(config["features"]["device"])
        return cls(made, pipelines, cores, gpu)

    def forget_lost(self) -> Iterator[str]:
        """Remove records of which a file is gone, see ``stepline.pipeline.lost``; yield a line on each."""
        for pipeline in self.pipelines.values():
            for record, file in forget_lost(pipeline):
                yield f"{file} is gone: the job of {record} makes it again"

    def note_current(self) -> None:
        """Note which features are the configured ones: what ``stepline.open_bank`` gives."""
        for pipeline in self.pipelines.values():
            pipeline.features.note_current()

    def check_records(self) -> None:
        """Raise StoreError where a record that jobs ask for is damaged."""
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
        """Return the conda environment of a job's fits and predictions."""
        return self._environment(self.job(wildcards).entry.kind.environment)

    def score_environment(self, wildcards: Wildcards) -> str:
        """Return the conda environment of a job's scores."""
        return self._environment(self.job(wildcards).entry.kind.scored_in)

    def backbone_environment(self, wildcards: Wildcards) -> str:
        """Return the conda environment of a backbone: the user's own file, or one in ``envs/``."""
        features = self.pipeline(wildcards).features
        return self._environment(features.environment(features.backbone_of(wildcards.backbone)))

    def _environment(self, name: str) -> str:
        return name if os.path.isabs(name) else f"../../envs/{name}.yaml"  # from the file of the rule

    def entry_threads(self, wildcards: Wildcards) -> int:
        """Return all cores where a job decodes videos, else one."""
        return self.cores if self.job(wildcards).entry.kind.decoded else 1

    def extract_threads(self, wildcards: Wildcards) -> int:
        """Return the cores of a job of features: its share where one of the backbones is a network, else one."""
        return self.cores if self.pipeline(wildcards).features.networks else 1

    def extract_priority(self, wildcards: Wildcards) -> float:
        """Return the priority of a job of features, from 1 to 2: highest for a shard's first, which computes them all.

        So no job waits with a GPU for another one of its shard while there are other shards.
        """
        features = self.pipeline(wildcards).features
        return 1 + 1 / (1 + features.computed.index(features.backbone_of(wildcards.backbone)))

    def group(self, wildcards: Wildcards) -> str | None:
        """Return the group of an entry's jobs, which a cluster runs together: of those that take seconds."""
        kind = self.job(wildcards).entry.kind
        return None if kind.gpu or kind.decoded or kind.scored_in != "core" else "heads"

    def resources(self, rule: str) -> Mapping[str, Callable[[Wildcards, int], int | None]]:
        """Return what the jobs of a rule ask for: by resource, a function of the wildcards and the attempt."""
        first: dict[tuple[str, ...], Resources] = {}

        def asked(name: str) -> Callable[[Wildcards, int], int | None]:
            def of(wildcards: Wildcards, attempt: int) -> int | None:
                key = tuple(wildcards)
                if key not in first:
                    first[key] = self._asked(rule, wildcards)
                value: int | None = getattr(first[key].at(attempt), name)
                return value

            return of

        return {field.name: asked(field.name) for field in fields(Resources)}

    def _asked(self, rule: str, wildcards: Wildcards) -> Resources:
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
