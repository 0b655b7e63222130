"""How the user started a run, so that commands that are printed for the user say it again."""

import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from stepline.io import read_json, write_json

LOOKS = re.compile("-[A-Za-z]*n[A-Za-z]*|--dry-?run|--lint")
"""Words of Snakemake's command line with which nothing runs."""
LAST = Path(".stepline/last-run.json")
"""In the work folder: how its last run was started."""
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

    def remember(self, words: Iterable[str], files: Iterable[str], config: Path) -> None:
        """Note in the work folder that this is its last run, unless its command line only looks what would run.

        words: of Snakemake's command line. files: the configuration files that it read, absolute paths, none where
        another workflow gave it its part. config: the file with the configuration that came of them.
        """
        if not any(map(LOOKS.fullmatch, words)):
            write_json(LAST, {"invocation": asdict(self), "files": list(files), "config": _shown(str(config))})

    def forgets(self) -> str:
        """Return a line for whoever may have left out the configuration of the last run here, "" where it is there."""
        last = last_run()
        if self.configfiles or not last or not last.invocation.configfiles:
            return ""
        named = last.invocation.named()
        return f"no --configfile: this is the default configuration; the last run here had --configfile {named}"

    def named(self) -> str:
        """Return what named the configuration, as it is shown: files and overridden keys; "" of the default."""
        changed = [f"--config {key}=..." for key in self.overrides]
        return " ".join([*map(_shown, self.configfiles), *changed])

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


@dataclass(frozen=True)
class LastRun:
    """The last run in this folder, see ``Invocation.remember``."""

    invocation: Invocation
    files: tuple[str, ...]
    config: Path

    def content(self, read: Callable[[str], Any]) -> Any:
        """Return the configuration as its files say now, with the overrides. read: returns the content of a file."""
        content: Mapping[str, Any] = {}
        for file in self.files:
            content = _merged(content, read(file) or {})
        return _merged(content, self.invocation.overrides)


def last_run() -> LastRun | None:
    """Return the last run in this folder, None where there was none."""
    if not LAST.exists():
        return None
    kept = read_json(LAST)
    return LastRun(_invocation(kept["invocation"]), tuple(kept["files"]), Path(kept["config"]))


def current() -> Invocation:
    """Return the run's: what was kept, else the file that ``STEPLINE_CONFIG`` names, else the last run's here."""
    if kept := os.environ.get(VARIABLE):
        return _invocation(json.loads(kept))
    if named := os.environ.get("STEPLINE_CONFIG"):
        return Invocation(configfiles=(os.path.abspath(named),))
    last = last_run()
    return last.invocation if last else Invocation()


def _invocation(content: Mapping[str, Any]) -> Invocation:
    return Invocation(**{**content, "configfiles": tuple(content["configfiles"])})


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
