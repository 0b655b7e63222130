"""Which pipeline a data set has, and which plan a benchmark has: the workflow and the verbs ask here."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from stepline.benchmark import Benchmark
from stepline.benchmarks.oepp.plan import Plan as OeppPlan
from stepline.benchmarks.pss.plan import Plan as PssPlan
from stepline.benchmarks.spacewalk.plan import Plan as SpacewalkPlan
from stepline.config import Config
from stepline.datasets.configured import is_study
from stepline.datasets.release import Released
from stepline.datasets.studies import STUDIES
from stepline.errors import ConfigError
from stepline.pipeline import Pipeline
from stepline.runs import Run

BENCHMARKS: dict[str, type[Benchmark[Any]]] = {made.released.name: made for made in (PssPlan, OeppPlan)}
"""The benchmarks with data sets of their own, by name."""
FOOTAGE = {name: made for made in BENCHMARKS.values() for name in made.footage_sets}
"""By data set, the benchmark that reads its videos."""


class Plan(Protocol):
    """What there is to do for a benchmark, or for a study: what the rules and `fetch` ask.

    A job is one entry on one release at one context. Lists of paths are inputs of rules; texts called params decide,
    besides the inputs, when a job runs again.
    """

    @property
    def name(self) -> str:
        """The name that stands in ``results/<name>``."""

    @property
    def dataset(self) -> Released:
        """Its releases."""

    @property
    def releases(self) -> Sequence[str]:
        """The names of the releases to fetch."""

    @property
    def weights(self) -> Sequence[str]:
        """The names of the weights to fetch, besides those of `pipelines`."""

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """By data set, the pipelines of its videos."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The files of ``results/<name>/`` that are made where no target is named."""

    def check_table(self, target: str) -> None:
        """Raise ConfigError where a table is not configured."""

    def job(self, release: str, entry: str, context: str) -> Any:
        """Return a job; raise ConfigError where there is none. ``entry.made`` says in which environment it runs."""

    def release_params(self, release: str) -> str:
        """Return the params of fetching a release."""

    def fit_inputs(self, job: Any) -> list[Path]:
        """Return what fitting reads."""

    def predict_inputs(self, job: Any) -> list[Path]:
        """Return what predicting reads."""

    def predict_params(self, job: Any) -> str:
        """Return the params of fitting and predicting."""

    def score_inputs(self, job: Any) -> list[Path]:
        """Return what scoring reads besides the predictions."""

    def score_params(self) -> str:
        """Return the params of scoring."""

    def table_inputs(self, target: str) -> list[Path]:
        """Return what a table is made from."""

    def table_params(self, target: str) -> str:
        """Return the params of a table."""

    @property
    def report_tables(self) -> list[Path]:
        """The tables that the report shows."""

    def report_inputs(self) -> list[Path]:
        """Return what the report shows besides these."""


class Verbs(Protocol):
    """What the verbs of a benchmark do. context: a window length such as ``180s``, or ``all``."""

    def fit(self, release: str, entry: str, context: str, seed: int) -> None:
        """Fit with one seed."""

    def predict(self, release: str, entry: str, context: str) -> None:
        """Predict, by all fits where the entry is fitted."""

    def score(self, release: str, entry: str, context: str) -> None:
        """Score the predictions."""

    def table(self, target: str) -> None:
        """Write a table."""

    def report(self) -> None:
        """Write the page to look at."""


def has_tables(config: Config, name: str) -> bool:
    """Return whether a benchmark runs on the data set of that name."""
    return name in BENCHMARKS or is_study(config, name)


def plan(config: Config, name: str) -> Plan:
    """Return the plan of a benchmark or study; raise ConfigError where it is not configured."""
    return BENCHMARKS[name].of(config, name) if name in BENCHMARKS else SpacewalkPlan.of(config, name)


def pipeline(config: Config, name: str) -> Pipeline:
    """Return the pipeline of a data set; raise ConfigError where it is not configured, or has no videos of its own."""
    if name in BENCHMARKS:
        listed = " or ".join(BENCHMARKS[name].footage_sets)
        raise ConfigError(f"{name} has no videos of its own: name {listed}")
    if name in FOOTAGE:
        return FOOTAGE[name].configured(config).footage[name].pipeline
    return SpacewalkPlan.of(config, name).pipeline if is_study(config, name) else Pipeline.of(config, name)


def run(config: Config, name: str) -> Verbs:
    """Return the benchmark's jobs of a study; raise ConfigError where it is not configured."""
    if name in BENCHMARKS:
        return Run(BENCHMARKS[name].of(config, name))
    from stepline.benchmarks.spacewalk.run import Run as SpacewalkRun

    return SpacewalkRun(SpacewalkPlan.of(config, name))


def to_fetch(config: Config, names: Sequence[str]) -> tuple[list[str], list[tuple[Released, str]], list[Pipeline]]:
    """Return what benchmarks and data sets want fetched: weights, releases with whose they are, and whose videos."""
    plans = {name: plan(config, name) for name in names if has_tables(config, name)}
    others = [pipeline(config, name) for name in names if name not in plans]
    weights = [weight for each in plans.values() for weight in each.weights]
    weights += [weight for each in others for weight in each.weights]
    releases = [(each.dataset, release) for each in plans.values() for release in each.releases]
    studies = [each.pipelines[name] for name, each in plans.items() if name in each.pipelines]
    return weights, releases, [*studies, *others]


def configured(config: Config) -> list[str]:
    """Return the names of the configured benchmarks and data sets, studies first."""
    studies = [name for name in STUDIES if name in config]
    benchmarks = [name for name in BENCHMARKS if name in config]
    videos = [each for name in benchmarks for each in BENCHMARKS[name].configured(config).datasets]
    return [*studies, *benchmarks, *videos, *config["datasets"]]
