"""What the rules ask: the plan, the pipeline and the job that their wildcards name."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stepline.benchmark import Job
from stepline.config import Config
from stepline.pipeline import Pipeline
from stepline.plans import has_tables
from stepline.plans import pipeline as pipeline_of
from stepline.plans import plan as plan_of

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


@dataclass(frozen=True)
class Helpers:
    """The plans of benchmarks and studies, and the pipelines of data sets with videos, by name.

    basedir: the folder of the Snakefile. cores: of the run, None where Snakemake was given none.
    """

    plans: Mapping[str, Plan]
    pipelines: Mapping[str, Pipeline]
    basedir: str
    cores: int | None

    @classmethod
    def of(cls, config: Config, names: Iterable[str], basedir: str, cores: int | None) -> "Helpers":
        """Return what there is to do for all names; raise SteplineError where it is impossible or a record damaged."""
        made: dict[str, Plan] = {name: plan_of(config, name) for name in names if has_tables(config, name)}
        pipelines = {name: pipeline for plan in made.values() for name, pipeline in plan.pipelines.items()}
        own = [name for name in names if name not in (*made, *pipelines)]
        pipelines |= {name: pipeline_of(config, name) for name in own}
        for pipeline in pipelines.values():
            pipeline.check_records()
        return cls(made, pipelines, basedir, cores)

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
        return name if os.path.isabs(name) else f"{self.basedir}/envs/{name}.yaml"

    def entry_threads(self, wildcards: Wildcards) -> int:
        """Return all cores where a job decodes videos, else one."""
        return (self.job(wildcards).entry.kind.decoded and self.cores) or 1

    def gpu(self, wildcards: Wildcards, device: str) -> int:
        """Return how many GPUs a job asks for: one where it can use one and the configuration says so."""
        return int(self.job(wildcards).entry.kind.gpu and device == "cuda")

    def disk_gb(self, stage: str) -> Callable[[Wildcards], int]:
        """Return what says how much disk a stage takes for a shard."""
        return lambda wildcards: self.pipeline(wildcards).videos.disk_gb(stage, wildcards.shard)
