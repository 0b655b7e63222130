"""The plan of every data set: a benchmark's study has its benchmark's, any other the pipeline alone."""

from typing import Any, Protocol

from stepline.benchmark import Benchmark
from stepline.benchmarks.oepp.plan import Plan as OeppPlan
from stepline.benchmarks.pss.plan import Plan as PssPlan
from stepline.benchmarks.spacewalk.plan import Plan
from stepline.config import Config
from stepline.datasets.configured import is_study
from stepline.datasets.studies import STUDIES
from stepline.pipeline import Pipeline
from stepline.runs import Run

BENCHMARKS: dict[str, type[Benchmark[Any]]] = {made.released.name: made for made in (PssPlan, OeppPlan)}
"""The benchmarks with data sets of their own, by name."""
FOOTAGE = {name: made for made in BENCHMARKS.values() for name in made.footage_sets}
"""By data set, the benchmark that reads its videos."""


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


def plan(config: Config, name: str) -> Pipeline:
    """Return the plan of a data set; raise ConfigError where it is not configured."""
    if name in BENCHMARKS:
        return BENCHMARKS[name].of(config, name)
    if name in FOOTAGE:
        return FOOTAGE[name].configured(config).footage[name]
    return Plan.of(config, name) if is_study(config, name) else Pipeline.of(config, name)


def has_tables(config: Config, name: str) -> bool:
    """Return whether a benchmark runs on the data set of that name."""
    return name in BENCHMARKS or is_study(config, name)


def run(config: Config, name: str) -> Verbs:
    """Return the benchmark's jobs of a study; raise ConfigError where it is not configured."""
    if name in BENCHMARKS:
        return Run(BENCHMARKS[name].of(config, name))
    from stepline.benchmarks.spacewalk.run import Run as SpacewalkRun

    return SpacewalkRun(Plan.of(config, name))


def configured(config: Config) -> list[str]:
    """Return the names of the configured data sets, studies first."""
    studies = [name for name in STUDIES if name in config]
    benchmarks = [name for name in BENCHMARKS if name in config]
    videos = [each for name in benchmarks for each in BENCHMARKS[name].configured(config).datasets]
    return [*studies, *benchmarks, *videos, *config["datasets"]]
