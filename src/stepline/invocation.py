"""How the user started a run, so that commands that are printed for the user say it again."""

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

VARIABLE = "STEPLINE_INVOCATION"
"""The environment variable by which the workflow's jobs know it."""


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """Configuration files and the Snakefile, absolute paths, and the values of ``snakemake --config`` by top-level key.

    snakefile: "" is that of the folder.
    """

    snakefile: str = ""
    configfiles: tuple[str, ...] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def keep(self) -> None:
        """Make it that of this process and of those that it starts."""
        os.environ[VARIABLE] = json.dumps(asdict(self))

    def command(self, target: str, changes: Mapping[str, Any], *options: str) -> str:
        """Return the shell command that makes ``target`` with the user's configuration and ``changes`` of it.

        changes: values by key, nested as in the configuration. Those of an object are added to the user's own
        overrides, any other value, a list too, replaces them. options: further ones of snakemake.
        """
        named = ["--snakefile", _shown(self.snakefile)] if self.snakefile else []
        words = ["snakemake", *named, "--cores", "8", target, *options]  # --configfile takes all words behind it
        if self.configfiles:
            words += ["--configfile", *map(_shown, self.configfiles)]
        if merged := _merged(self.overrides, changes):
            words += ["--config", *(f"{key}={_flow(value)}" for key, value in merged.items())]
        return shlex.join(words)

    def verb(self, *words: str) -> str:
        """Return the shell command of one of Stepline's verbs with the user's configuration file."""
        named = ["--configfile", _shown(self.configfiles[-1])] if self.configfiles else []
        return shlex.join(["stepline", *named, *words])


def current() -> Invocation:
    """Return the run's: what was kept, else the configuration file that ``STEPLINE_CONFIG`` names, if any."""
    if kept := os.environ.get(VARIABLE):
        content = json.loads(kept)
        return Invocation(**content | {"configfiles": tuple(content["configfiles"])})
    named = os.environ.get("STEPLINE_CONFIG")
    return Invocation(configfiles=(os.path.abspath(named),) if named else ())


def command(target: str, changes: Mapping[str, Any]) -> str:
    """Return the shell command that makes ``target`` as this run was started, see `Invocation.command`."""
    return current().command(target, changes)


def _shown(path: str) -> str:
    """Return a path as it is from here, where it is below."""
    return str(Path(path).relative_to(Path.cwd())) if Path(path).is_relative_to(Path.cwd()) else path


def _merged(given: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(given)
    for key, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merged(merged[key], value) if both else value
    return merged


class _Dumper(yaml.SafeDumper):
    """Writes text in quotes only where it is none without, and then in double ones, which stand well in the shell's."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - Snakemake reads all scalars as text

    def choose_scalar_style(self) -> str:
        style: str = super().choose_scalar_style()
        return '"' if style == "'" else style


def _flow(value: Any) -> str:
    """Return a value as YAML on one line, as ``snakemake --config`` reads it."""
    written: str = yaml.dump(
        _text(value), Dumper=_Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**9
    )
    return written.removesuffix("\n").removesuffix("\n...")


def _text(value: Any) -> Any:
    """Return a value with text in the place of numbers, booleans and null."""
    if isinstance(value, Mapping):
        return {str(key): _text(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_text(each) for each in value]
    return value if isinstance(value, str) else json.dumps(value)
