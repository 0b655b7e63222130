"""The largest requests of the rules with a user's profile, compared with the partitions of a Slurm cluster."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stepline import resources, slurm
from stepline.config import Config
from stepline.config.declarations import read
from stepline.doctor import Check
from stepline.errors import ConfigError, SteplineError
from stepline.overview.graph import Graph

PROFILES = "~/.config/snakemake", "/etc/xdg/snakemake"
UNITS = {"mem": {"m": 1, "g": 10**3, "t": 10**6}, "runtime": {"m": 1, "h": 60, "d": 1440}}
"""Resource -> the first letter of a unit -> MB or minutes."""


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
    limits, common, changed = (
        _resources(settings.get(key)) for key in ("resources", "default-resources", "set-resources")
    )
    found = {}
    for rule, of in largest.items():
        own = {key.removeprefix(f"{rule}:"): value for key, value in changed.items() if key.startswith(f"{rule}:")}
        asked = common | of | own
        for name, most in limits.items():
            if isinstance(most, int) and isinstance(value := asked.get(name), int):
                asked[name] = min(value, most)
        if lines := [*slurm.beyond(asked)]:
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
        if job.rule in resources.LOCAL:
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


def _resources(given: Any) -> dict[str, int | str]:
    """Return a profile's resources by ``name`` or ``rule:name``; an expression is a text.

    given: a mapping, or texts such as ``name=value``.
    """
    if isinstance(given, Mapping):
        rules = {key: of for key, of in given.items() if isinstance(of, Mapping)}
        given = {**given, **{f"{key}:{name}": value for key, of in rules.items() for name, value in of.items()}}
        given = [f"{key}={value}" for key, value in given.items()]
    texts = given if isinstance(given, list) else str(given or "").split()
    return dict(_resource(*str(text).partition("=")[::2]) for text in texts)


def _resource(name: str, value: str) -> tuple[str, int | str]:
    """Return a resource in MB or minutes; Snakemake also takes texts such as ``mem=8GB`` and ``runtime=2d``."""
    found = re.fullmatch(r"(\d+) *([a-z]?)[a-z]*", value.lower())
    factor = found and ({"": 1} | UNITS.get(name.rpartition(":")[2], {})).get(found[2])
    return f"{name}_mb" if name.endswith("mem") else name, int(found[1]) * factor if found and factor else value
