"""The plan of every data set: a study's is its benchmark's, any other has the pipeline alone."""

from stepline.benchmarks.spacewalk.plan import Plan
from stepline.config import Config
from stepline.datasets.configured import is_study
from stepline.datasets.studies import STUDIES
from stepline.pipeline import Pipeline


def plan(config: Config, name: str) -> Pipeline:
    """Return the plan of a data set; raise ConfigError where it is not configured."""
    return Plan.of(config, name) if is_study(config, name) else Pipeline.of(config, name)


def configured(config: Config) -> list[str]:
    """Return the names of the configured data sets, studies first."""
    return [*(name for name in STUDIES if name in config), *config["datasets"]]
