"""How the user started a run, so that printed commands can repeat its options."""

import getpass
import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from stepline.io import read_json, write_json

LAST = Path(".stepline/last-run.json")
"""The file in the work folder that stores how its last run was started."""
VARIABLE = "STEPLINE_INVOCATION"
"""The environment variable that passes the invocation to the workflow's jobs."""


def name_account() -> None:
    """Set ``USER`` to the number of an account that has no name, as in a container: Snakemake and torch need a name."""
    try:
        getpass.getuser()
    except (KeyError, OSError):  # OSError since Python 3.13
        os.environ["USER"] = str(os.getuid())


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """The Snakefile, the configuration files and the values of ``snakemake --config`` of a run.

    snakefile, configfiles: absolute paths; snakefile is "" for the one in the work folder. overrides: values by
    top-level key.
    """

    snakefile: str = ""
    configfiles: tuple[str, ...] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def keep(self) -> None:
        """Set it as the invocation of this process and its child processes."""
        os.environ[VARIABLE] = json.dumps(asdict(self))

    def remember(self, files: Iterable[str], config: Path) -> None:
        """Save it in the work folder as the last run.

        files: the absolute paths of the configuration files that it read, none if another workflow passed the
        configuration. config: the file with the resulting configuration.
        """
        write_json(LAST, {"invocation": asdict(self), "files": list(files), "config": _shown(str(config))})

    def forgets(self) -> Iterator[str]:
        """Yield a warning if this run has no ``--configfile`` but the last one here had one."""
        last = last_run()
        if not self.configfiles and last and last.invocation.configfiles:
            named = last.invocation.named()
            yield f"no --configfile: this is the default configuration; the last run here had --configfile {named}"

    def named(self) -> str:
        """Return the configuration files and overridden keys as text; "" for the default configuration."""
        changed = [f"--config {key}=..." for key in self.overrides]
        return " ".join([*map(_shown, self.configfiles), *changed])

    def command(self, target: str, changes: Mapping[str, Any], *options: str) -> str:
        """Return the shell command that computes ``target`` with the user's configuration and ``changes``.

        changes: values by key, nested as in the configuration. Objects are merged with the user's overrides; other
        values, including lists, replace them. options: further options of snakemake.
        """
        named = ["--snakefile", _shown(self.snakefile)] if self.snakefile else []
        words = ["snakemake", *named, "--cores", "8", target, *options]  # --configfile consumes all words after it
        if self.configfiles:
            words += ["--configfile", *map(_shown, self.configfiles)]
        if merged := _merged(self.overrides, changes):
            words += ["--config", *(f"{key}={_flow(value)}" for key, value in merged.items())]
        return shlex.join(words)

    def verb(self, *words: str) -> str:
        """Return the shell command of a ``stepline`` verb with the user's configuration file."""
        named = ["--configfile", _shown(self.configfiles[-1])] if self.configfiles else []
        return shlex.join(["stepline", *named, *words])


@dataclass(frozen=True)
class LastRun:
    """The last run in this folder, see ``Invocation.remember``."""

    invocation: Invocation
    files: tuple[str, ...]
    config: Path

    def content(self, read: Callable[[str], Any]) -> Any:
        """Return the current content of the configuration files with the overrides. read: returns a file's content."""
        content: Mapping[str, Any] = {}
        for file in self.files:
            content = _merged(content, read(file) or {})
        return _merged(content, self.invocation.overrides)


def last_run() -> LastRun | None:
    """Return the last run in this folder; None if there was none."""
    if not LAST.exists():
        return None
    kept = read_json(LAST)
    return LastRun(_invocation(kept["invocation"]), tuple(kept["files"]), Path(kept["config"]))


def current() -> Invocation:
    """Return the invocation of this run.

    It is the one that ``keep`` stored; otherwise the file in ``STEPLINE_CONFIG``; otherwise the last run's in this
    folder.
    """
    if kept := os.environ.get(VARIABLE):
        return _invocation(json.loads(kept))
    if named := os.environ.get("STEPLINE_CONFIG"):
        return Invocation(configfiles=(os.path.abspath(named),))
    last = last_run()
    return last.invocation if last else Invocation()


def _invocation(content: Mapping[str, Any]) -> Invocation:
    return Invocation(**{**content, "configfiles": tuple(content["configfiles"])})


def command(target: str, changes: Mapping[str, Any]) -> str:
    """Return the shell command that computes ``target`` with the options of this run, see `Invocation.command`."""
    return current().command(target, changes)


def _shown(path: str) -> str:
    """Return a path relative to the current folder if it is inside it, otherwise unchanged."""
    return str(Path(path).relative_to(Path.cwd())) if Path(path).is_relative_to(Path.cwd()) else path


def _merged(given: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(given)
    for key, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merged(merged[key], value) if both else value
    return merged


class _Dumper(yaml.SafeDumper):
    """Quotes text only if needed, and with double quotes, because the shell argument has single quotes."""

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
    """Return a value with numbers, booleans and null replaced by text."""
    if isinstance(value, Mapping):
        return {str(key): _text(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_text(each) for each in value]
    return value if isinstance(value, str) else json.dumps(value)
