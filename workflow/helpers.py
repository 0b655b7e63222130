"""What the rules ask: the plan, the pipeline and the job that their wildcards name."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stepline.config import Config
from stepline.pipeline import Pipeline
from stepline.plans import Plan, has_tables
from stepline.plans import pipeline as pipeline_of
from stepline.plans import plan as plan_of

Wildcards = Any
"""Snakemake's: the parts of a rule's output by name."""


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
        made = {name: plan_of(config, name) for name in names if has_tables(config, name)}
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

    def job(self, wildcards: Wildcards) -> Any:
        """Return the job of ``entry`` on ``release`` at ``context``."""
        return self.plan(wildcards).job(wildcards.release, wildcards.entry, wildcards.context)

    def entry_environment(self, wildcards: Wildcards) -> str:
        """Return the conda environment of a job's fits and predictions."""
        return self._environment(self.job(wildcards).entry.made.environment)

    def score_environment(self, wildcards: Wildcards) -> str:
        """Return the conda environment of a job's scores."""
        return self._environment(self.job(wildcards).entry.made.scored_in)

    def backbone_environment(self, wildcards: Wildcards) -> str:
        """Return the conda environment of a backbone: the user's own file, or one in ``envs/``."""
        features = self.pipeline(wildcards).features
        return self._environment(features.environment(features.backbone_of(wildcards.backbone)))

    def _environment(self, name: str) -> str:
        return name if os.path.isabs(name) else f"{self.basedir}/envs/{name}.yaml"

    def entry_threads(self, wildcards: Wildcards) -> int:
        """Return all cores where a job decodes videos, else one."""
        return (self.job(wildcards).entry.made.decoded and self.cores) or 1

    def disk_gb(self, stage: str) -> Callable[[Wildcards], int]:
        """Return what says how much disk a stage takes for a shard."""
        return lambda wildcards: self.pipeline(wildcards).videos.disk_gb(stage, wildcards.shard)
