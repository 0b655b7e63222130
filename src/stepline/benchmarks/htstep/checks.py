"""Checks of HT-Step's configuration."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.benchmark import Entry, Table
from stepline.benchmarks.htstep import texts
from stepline.benchmarks.htstep.metrics import CROSSTASK
from stepline.config import Config
from stepline.datasets import configured
from stepline.errors import ConfigError
from stepline.models.actionformer_config import legal_windows

if TYPE_CHECKING:
    from stepline.benchmarks.htstep.benchmark import Htstep

TRANSFERRED = ("actionformer_t", "umt", "mt_bce")
"""The kinds whose checkpoints can predict the steps of unseen articles."""
LEVELS = 6
"""The number of levels of ActionFormer's pyramid."""


def check(benchmark: "Htstep") -> None:
    """Raise ConfigError if an entry or an option is impossible."""
    for entry in benchmark.entries.values():
        _entry(benchmark, entry)
    for table, line, release in benchmark.lines():
        _line(benchmark, table, benchmark.entries[line.entry], release)
    for key, names in benchmark.options["features"].items():
        if len(names) != 1:
            raise ConfigError(f"config: htstep.features.{key}: {len(names)} names are not allowed; give one")
    known = [entry.id for entry in benchmark.entries.values() if entry.kind_name == "files"]
    for name, folder in benchmark.options["files"].items():
        if name not in known:
            raise ConfigError(f"config: htstep.files: {name!r} is not allowed; choose from {', '.join(known)}")
        if not Path(os.path.expanduser(folder)).is_dir():
            raise ConfigError(f"config: htstep.files.{name}: {folder!r} is not a folder; give one with predictions")
    _options(benchmark.options)
    texts.check(benchmark)
    if benchmark.narrated not in benchmark.datasets:
        configured.dataset(benchmark.config, benchmark.narrated)


def _entry(benchmark: "Htstep", entry: Entry) -> None:
    where, reads = f"config: htstep.entries.{entry.id}", entry.kind_name not in ("statistics", "files")
    if reads != bool(entry.features):
        allowed = f"it is required; choose from {', '.join(benchmark.options['features'])}"
        raise ConfigError(f"{where}.features: {allowed if reads else 'it is not allowed'}")
    if entry.kind.method and (odd := [split for split in entry.splits if split not in entry.kind.splits]):
        raise ConfigError(f"{where}.splits: {odd[0]!r} is not allowed; choose from {', '.join(entry.kind.splits)}")
    benchmark.parts(entry)
    for key in ("init", "of"):
        other = entry.settings.get(key)
        if other and other not in (fitting := _others(benchmark, entry)):
            allowed = f"choose from {', '.join(fitting)}" if fitting else "none has the same features and text"
            raise ConfigError(f"{where}.settings.{key}: {other!r} does not fit; {allowed}")


def _line(benchmark: "Htstep", table: Table, entry: Entry, release: str) -> None:
    """Raise ConfigError if the kind of an entry has no numbers on the release of a table."""
    fitting = [
        name
        for name, kind in benchmark.kinds.items()
        if (any(map(kind.scores, CROSSTASK)) if release == "crosstask" else name != "transfer")
    ]
    if entry.kind_name not in fitting:
        raise ConfigError(
            f"config: htstep.entries.{entry.id}.kind: {entry.kind_name!r} has no numbers in table {table.name}; "
            f"choose from {', '.join(fitting)}"
        )


def _others(benchmark: "Htstep", entry: Entry) -> list[str]:
    """Return the entries whose checkpoint the entry can predict with or start its training from."""
    transferred = entry.kind_name == "transfer"
    return [
        other.id
        for other in benchmark.entries.values()
        if other.kind_name in (TRANSFERRED if transferred else (entry.kind_name,))
        and other.features == entry.features
        and other.id != entry.id
        and (transferred or other.settings.get("text") == entry.settings.get("text"))
    ]


def _options(options: Config) -> None:
    sizes = options["actionformer"]
    fitting = (*legal_windows(sizes["max_length"], LEVELS), -1)
    if sizes["window"] not in fitting:
        known = ", ".join(map(str, fitting))
        raise ConfigError(
            f"config: htstep.actionformer.window: {sizes['window']} does not fit max_length {sizes['max_length']}; "
            f"choose from {known}"
        )
    match = options["match"]
    if match["full"] == match["partial"]:
        raise ConfigError(f"config: htstep.match.partial: {match['partial']!r} is also the value of full: give another")
