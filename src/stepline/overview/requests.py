"""The largest requests of the rules with a user's profile, compared with the partitions of a Slurm cluster."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stepline import slurm
from stepline.config import Config
from stepline.config.declarations import read
from stepline.doctor import Check
from stepline.errors import ConfigError, SteplineError
from stepline.overview.graph import Graph

PROFILES = "~/.config/snakemake", "/etc/xdg/snakemake"
LOCAL = "table", "pairs", "picture", "results", "report", "summary", "page"
"""Rules that run on the login node."""


def of_partitions(config: Config, profile: str) -> Iterator[Check]:
    """Yield a check for each rule with a request that no partition allows, or one check if there is none.

    Without Slurm there are no checks. profile: as in ``snakemake --profile``, or "".
    """
    if not slurm.partitions():
        return
    try:
        settings, largest = _read(profile) if profile else {}, _largest(config)
    except SteplineError as error:
        yield Check("cluster", "requests", "broken", str(error))
        return
    limits, common, changed = (_pairs(settings.get(key)) for key in ("resources", "default-resources", "set-resources"))
    found = {}
    for rule, of in largest.items():
        asked = {name: min(value, limits.get(name, value)) for name, value in of.items()}
        own = {key.removeprefix(f"{rule}:"): value for key, value in changed.items() if key.startswith(f"{rule}:")}
        if lines := [*slurm.beyond(f"{rule}:", common | asked | own)]:
            found[rule] = "; ".join(lines)
    yield from (Check("cluster", rule, "broken", text) for rule, text in found.items())
    if not found:
        name = profile or "no profile: name yours with --profile"
        yield Check("cluster", "requests", "ok", f"partitions allow the largest requests of all rules ({name})")


def _largest(config: Config) -> dict[str, dict[str, int]]:
    """Return the largest request of each rule that runs on a cluster, by resource."""
    graph = Graph(config)
    found: dict[str, dict[str, int]] = {}
    for job in graph.jobs:
        if job.rule in LOCAL:
            continue
        asked, largest = graph.helpers.first(job.rule, job.by), found.setdefault(job.rule, {})
        together = len(graph.helpers.pipeline(job.by).features.computed) if job.rule == "extract" else 1
        requests = {"mem_mb": asked.mem_mb, "runtime": asked.runtime * together, "gpu": asked.gpu or 0}
        found[job.rule] = {name: max(value, largest.get(name, 0)) for name, value in requests.items()}
    return found


def _read(profile: str) -> Mapping[str, Any]:
    places = [Path(folder, profile, "config.yaml").expanduser() for folder in (".", *PROFILES)]
    for place in places:
        if place.exists():
            content = read(place)
            if not isinstance(content, Mapping):
                raise ConfigError(f"{place}: options with values are expected, such as `jobs: 20`")
            return content
    raise ConfigError(f"--profile {profile}: none of these files exists: {', '.join(map(str, places))}")


def _pairs(given: Any) -> dict[str, Any]:
    """Return a profile's resources by ``name`` or ``rule:name``; it has a mapping, or texts such as ``name=value``."""
    if isinstance(given, Mapping):
        rules = {key: of for key, of in given.items() if isinstance(of, Mapping)}
        return {**given, **{f"{key}:{name}": value for key, of in rules.items() for name, value in of.items()}}
    pairs = (each.partition("=") for each in (given.split() if isinstance(given, str) else given or ()))
    return {name: int(value) if value.isdigit() else value for name, _, value in pairs}
