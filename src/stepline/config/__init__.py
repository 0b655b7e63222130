"""The configuration, validated at the door."""

import hashlib
import json
import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from stepline.config.check import wrong
from stepline.config.declarations import folders, read
from stepline.config.schema import Schema, defaults_of, fill, schema_of
from stepline.errors import ConfigError
from stepline.invocation import last_run
from stepline.io import YAML_VALUES, canonical_json, read_yaml, write_bytes

Config = dict[str, Any]

EXAMPLE = "datasets: {mine: {videos: /path/to/videos}}"
"""A whole configuration."""
KEPT = re.compile("config-([0-9a-f]{8})[.]json")
"""The name of a validated configuration, by its sha256."""


def load(path: Path | str | None = None) -> Config:
    """Return the validated configuration with defaults filled in.

    path: a YAML or JSON file; by default the one that ``STEPLINE_CONFIG`` names, else what the last run in this folder
    read, which a line on standard error names, else ``config.yaml``.
    """
    path = path or os.environ.get("STEPLINE_CONFIG")
    if not path and (last := last_run()):
        _say(last.invocation.named())
        if last.files:
            return validate(last.content(read))
        path = last.config
    path = Path(path or "config.yaml")
    if not path.exists():
        raise ConfigError(f"{path}: no such file; run where it is, or name another: `stepline --configfile FILE ...`")
    if (kept := KEPT.fullmatch(path.name)) and _digest(path.read_bytes()) == kept[1]:
        return json.loads(path.read_bytes())  # type: ignore[no-any-return]
    content = read(path)
    if content is None:
        raise ConfigError(f"{path}: it is empty; write what to compute, such as `{EXAMPLE}`")
    return validate(content)


def is_there(path: Path | str | None = None) -> bool:
    """Return whether there is a configuration to ``load``."""
    return bool(path or os.environ.get("STEPLINE_CONFIG") or last_run() or Path("config.yaml").exists())


@cache
def _say(configuration: str) -> None:
    """Say once by which configuration this process works, where it is not the default."""
    if configuration:
        print(f"configuration: {configuration}, as in the last run here", file=sys.stderr)


def keep(config: Config) -> Path:
    """Return a file with a validated configuration, which ``load`` does not validate again, in ``.stepline``."""
    content = canonical_json(config).encode()
    path = Path(f".stepline/config-{_digest(content)}.json").absolute()
    if not path.exists():
        write_bytes(path, content)
    return path


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]


def validate(config: Any) -> Config:
    """Return a copy of ``config`` with defaults filled in.

    Raises ConfigError, one line that names the key, the value and what is allowed.
    """
    named = {"benchmarks": config["benchmarks"]} if isinstance(config, dict) and "benchmarks" in config else {}
    whole = schema_of(folders(_checked(named, schema_of(folders({})))))
    checked: Config = _checked(config, whole)
    fill(checked, whole)
    return checked


def defaults(name: str, config: Config) -> Config:
    """Return what the part of a benchmark, or of a study in its form, is where it gives nothing.

    name: a key of the configuration, or a data set with a ``study``, which is the part. config: a validated one.
    """
    parts = schema_of(folders(config))["properties"]
    own = parts["datasets"]["additionalProperties"]["properties"]
    return defaults_of(own["study"] if name in config["datasets"] else parts[name])


def _checked(config: Any, by: Schema) -> Any:
    try:
        if _values(config, {}) > YAML_VALUES:
            raise ConfigError(f"config: it has more than {YAML_VALUES} values, with its aliases")
        config = _read(config, by)
    except RecursionError:
        raise ConfigError("config: it contains itself (a YAML alias)") from None
    if error := wrong(config, by):
        raise ConfigError(f"config: {error}")
    return config


def _values(value: Any, counted: dict[int, int]) -> int:
    """Return how many values there are, each as often as it is held: Snakemake reads its configuration files itself."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in counted:
        counted[id(value)] = 0  # where it holds itself
        held = value.values() if isinstance(value, dict) else value
        counted[id(value)] = 1 + sum(_values(each, counted) for each in held)
    return counted[id(value)]


def _read(value: Any, schema: Schema) -> Any:
    """Return a copy with text read where the schema wants none: ``snakemake --config`` gives nested values as text."""
    if isinstance(value, dict):
        other = schema.get("additionalProperties") or {}
        if odd := [key for key in value if not isinstance(key, str)]:
            raise ConfigError(f"config: {odd[0]!r} is no key: put it in quotes")
        return {key: _read(child, schema.get("properties", {}).get(key, other)) for key, child in value.items()}
    if isinstance(value, list):
        return [_read(item, schema.get("items", {})) for item in value]
    if isinstance(value, str) and "\0" in value:
        raise ConfigError(f"config: {value!r} holds a null character: remove it")
    types = [schema.get("type")] if isinstance(schema.get("type"), str) else schema.get("type", [])
    if isinstance(value, str) and value and "enum" not in schema and types != ["string"]:
        try:  # YAML's numbers have a full stop: 1e-5 is text
            read = float(value) if re.fullmatch(r"[+-]?\d+e[+-]?\d+", value, re.IGNORECASE) else read_yaml(value)
        except yaml.YAMLError:
            return value
        return read if read is None or (isinstance(read, (bool, int, float)) and "string" not in types) else value
    return value
