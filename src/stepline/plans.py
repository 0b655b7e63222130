"""The registry of benchmarks, and the plan or pipeline of a name under a configuration, for the workflow and verbs."""

import sys
from collections.abc import Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from stepline.benchmark import Benchmark
from stepline.benchmark.outside import PREFIX, described
from stepline.benchmarks.hirest.benchmark import Hirest
from stepline.benchmarks.htstep.benchmark import Htstep
from stepline.benchmarks.oepp.benchmark import Oepp
from stepline.benchmarks.pss.benchmark import Pss
from stepline.benchmarks.segments.benchmark import Segments
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.config import Config, validate
from stepline.config.declarations import folders
from stepline.datasets.release import Released
from stepline.errors import ConfigError
from stepline.pipeline import Pipeline

BENCHMARKS: tuple[type[Benchmark[Any]], ...] = (Spacewalk, Pss, Oepp, Hirest, Htstep, Segments)
"""The registry. Custom benchmarks, in their own folders, are named by ``benchmarks:`` in the configuration."""


def benchmarks(config: Config) -> dict[str, type[Benchmark[Any]]]:
    """Return the benchmark of every study that a configuration can name, by study."""
    found = {name: each for each in BENCHMARKS for name in each.studies}
    for name in config["benchmarks"]:
        found[name] = _external(name, folders(config)[name])
    return found


def plan(config: Config, name: str) -> Benchmark[Any]:
    """Return the plan of a study; raise ConfigError if it is unknown, not configured, or impossible."""
    return benchmark(config, name).of(config, name)


def benchmark(config: Config, name: str) -> type[Benchmark[Any]]:
    """Return the benchmark of a study; raise ConfigError if it is unknown."""
    known = benchmarks(config)
    if name not in known:
        raise ConfigError(f"study {name!r} is not known; choose from {', '.join(known)}")
    return known[name]


def has_tables(config: Config, name: str) -> bool:
    """Return whether a name belongs to a study."""
    return name in benchmarks(config)


def pipeline(config: Config, name: str) -> Pipeline:
    """Return the pipeline of a data set; raise ConfigError if it is not configured or has no videos of its own."""
    for study, made in benchmarks(config).items() if name not in config["datasets"] else ():
        datasets = made(config, study).datasets
        if name in datasets:
            return made.configured(config, study).pipelines[name]
        if name == study:
            pipelines = {} if datasets else made.of(config, study).pipelines
            if name not in pipelines:
                others = f": name {' or '.join(datasets)}" if datasets else ""
                raise ConfigError(f"{name} has no videos of its own{others}")
            return pipelines[name]
    return Pipeline.of(config, name)


def plans_of(config: Config, dataset: str) -> list[Benchmark[Any]]:
    """Return the plans of the configured studies that use the videos of a data set."""
    found = {name: made for name, made in benchmarks(config).items() if name in config}
    return [
        made.of(config, name) for name, made in found.items() if dataset in (made(config, name).datasets or (name,))
    ]


def configured(config: Config) -> list[str]:
    """Return the names of the configured studies with tables, then the names of other data sets with videos."""
    plans = {name: made.configured(config, name) for name, made in benchmarks(config).items() if name in config}
    studies = [name for name, made in plans.items() if made.targets]
    videos = [each for name in studies for each in plans[name].pipelines]
    return list(dict.fromkeys([*studies, *videos, *config["datasets"]]))


def to_fetch(config: Config, names: Sequence[str]) -> tuple[list[str], list[tuple[Released, str]], list[Pipeline]]:
    """Return what studies and data sets need: weights by name, releases with their studies, pipelines of videos."""
    plans = {name: plan(config, name) for name in names if has_tables(config, name)}
    pipelines = {each.name: each for made in plans.values() for each in made.pipelines.values()}
    pipelines |= {name: pipeline(config, name) for name in names if name not in (*plans, *pipelines)}
    weights = [weight for each in plans.values() for weight in each.weights]
    weights += [weight for made in pipelines.values() for weight in made.weights]
    releases = [(made.released, release) for made in plans.values() for release in made.releases]
    return list(dict.fromkeys(weights)), releases, list(pipelines.values())


def released(name: str, release: str, config: Mapping[str, Any]) -> Released:
    """Return the releases of a study; raise ConfigError if the study or ``release`` is unknown.

    config: names custom benchmarks.
    """
    known = benchmarks(validate(config))
    if name not in known:
        raise ConfigError(f"study {name!r} is not known; choose from {', '.join(known)}")
    whole = validate(config if name in config else {**config, name: {}})
    found = known[name].configured(whole, name).released
    if release not in found.known:
        raise ConfigError(f"release {release!r} of {name} is not known; choose from {', '.join(found.known)}")
    return found


def _external(name: str, folder: Path) -> type[Benchmark[Any]]:
    """Return the class ``BENCHMARK`` of a custom benchmark's package, which is imported once."""
    module = f"{PREFIX}{name}"
    if module not in sys.modules:
        spec = spec_from_file_location(module, folder / "__init__.py", submodule_search_locations=[str(folder)])
        if spec is None or spec.loader is None or not (folder / "__init__.py").is_file():
            raise ConfigError(f"config: benchmarks.{name}: {folder} has no __init__.py; name a benchmark's folder")
        sys.modules[module] = module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[module])
        except Exception as error:
            said = described(error, folder)
            del sys.modules[module]
            raise ConfigError(f"config: benchmarks.{name}: {folder} cannot be imported: {said}") from error
    found = getattr(sys.modules[module], "BENCHMARK", None)
    if not (isinstance(found, type) and issubclass(found, Benchmark)):
        raise ConfigError(f"config: benchmarks.{name}: {folder}/__init__.py has no BENCHMARK, a subclass of Benchmark")
    found.folder, found.studies = folder, (name,)
    return found
