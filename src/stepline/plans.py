"""The plan of every data set: a benchmark's study has its benchmark's, any other the pipeline alone."""

from typing import TYPE_CHECKING

from stepline.benchmarks.pss.plan import Footage
from stepline.benchmarks.pss.plan import Plan as PssPlan
from stepline.benchmarks.spacewalk.plan import Plan
from stepline.config import Config
from stepline.datasets.configured import is_study
from stepline.datasets.pss import DATASETS
from stepline.datasets.studies import STUDIES
from stepline.pipeline import Pipeline

if TYPE_CHECKING:
    from stepline.benchmarks.pss.run import Run as PssRun
    from stepline.benchmarks.spacewalk.run import Run


def plan(config: Config, name: str) -> Pipeline:
    """Return the plan of a data set; raise ConfigError where it is not configured."""
    if name == "pss":
        return PssPlan.of(config, name)
    if name in DATASETS:
        return Footage.of(config, name)
    return Plan.of(config, name) if is_study(config, name) else Pipeline.of(config, name)


def has_tables(config: Config, name: str) -> bool:
    """Return whether a benchmark runs on the data set of that name."""
    return name == "pss" or is_study(config, name)


def run(config: Config, name: str) -> "Run | PssRun":
    """Return the benchmark's jobs of a study; raise ConfigError where it is not configured."""
    if name == "pss":
        from stepline.benchmarks.pss.run import Run as PssRun

        return PssRun(PssPlan.of(config, name))
    from stepline.benchmarks.spacewalk.run import Run

    return Run(Plan.of(config, name))


def configured(config: Config) -> list[str]:
    """Return the names of the configured data sets, studies first."""
    footage = ["pss", *config["pss"]["releases"]] if "pss" in config else []
    return [*(name for name in STUDIES if name in config), *footage, *config["datasets"]]
