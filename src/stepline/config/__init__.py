"""Loading and validation of the configuration."""

import hashlib
import json
import os
import re
import sys
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from stepline.config.check import wrong
from stepline.config.declarations import folders, options, read
from stepline.config.schema import Schema, defaults_of, fill, schema_of
from stepline.errors import ConfigError
from stepline.invocation import last_run
from stepline.io import YAML_VALUES, canonical_json, read_yaml, write_bytes

Config = dict[str, Any]

EXAMPLE = "datasets: {mine: {videos: /path/to/videos}}"
"""A complete configuration."""
KEPT = re.compile("config-([0-9a-f]{8})[.]json")
"""The file name of a validated configuration, which contains its sha256."""


def load(path: Path | str | None = None) -> Config:
    """Return the validated configuration with defaults filled in.

    path: a YAML or JSON file. The default is the file in ``STEPLINE_CONFIG``; otherwise the configuration of the last
    run in this folder, which is then named on standard error; otherwise ``config.yaml``.
    """
    path = path or os.environ.get("STEPLINE_CONFIG")
    if not path and (last := last_run()):
        _say(last.invocation.named())
        if last.files:
            return validate(last.content(read))
        path = last.config
    path = Path(path or "config.yaml")
    if not path.exists():
        near = get_close_matches(path.name, [file.name for file in path.absolute().parent.glob("*.y*ml")], n=1)
        hint = f"did you mean {near[0]}?" if near else "run in its folder, or name another with --configfile"
        raise ConfigError(f"{path}: no such file; {hint}")
    if (kept := KEPT.fullmatch(path.name)) and _digest(path.read_bytes()) == kept[1]:
        return json.loads(path.read_bytes())  # type: ignore[no-any-return]
    content = read(path)
    if content is None:
        raise ConfigError(f"{path}: it is empty; write what to compute, such as `{EXAMPLE}`")
    return validate(content)


def is_there(path: Path | str | None = None) -> bool:
    """Return whether a configuration exists that ``load`` can read."""
    return bool(path or os.environ.get("STEPLINE_CONFIG") or last_run() or Path("config.yaml").exists())


@cache
def _say(configuration: str) -> None:
    """Print once which configuration this process uses, if it is not the default."""
    if configuration:
        print(f"configuration: {configuration}, as in the last run here", file=sys.stderr)


def keep(config: Config) -> Path:
    """Write a validated configuration to ``.stepline`` and return its path; ``load`` does not validate it again."""
    content = canonical_json(config).encode()
    path = Path(f".stepline/config-{_digest(content)}.json").absolute()
    if not path.exists():
        write_bytes(path, content)
    return path


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]


def validate(config: Any) -> Config:
    """Return a copy of ``config`` with defaults filled in.

    A data set with a key that a benchmark declares configures this benchmark.
    Raises ConfigError with one line that contains the key, the value and what is allowed.
    """
    named = {"benchmarks": config["benchmarks"]} if isinstance(config, dict) and "benchmarks" in config else {}
    known = folders(_checked(named, schema_of(folders({}))))
    whole = schema_of(known)
    checked: Config = _checked(config, whole)
    used = {key for declared in checked.get("datasets", {}).values() for key in declared}
    for name, folder in known.items():
        if used & options(folder).get("dataset", {}).keys():
            checked.setdefault(name, {})
    fill(checked, whole)
    return checked


def defaults(name: str, config: Config) -> Config:
    """Return the default section of a key of the configuration, which is validated."""
    return defaults_of(schema_of(folders(config))["properties"][name])


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
    """Return the number of values, counting shared ones repeatedly: Snakemake parses its configuration files itself."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in counted:
        counted[id(value)] = 0  # in case it contains itself
        held = value.values() if isinstance(value, dict) else value
        counted[id(value)] = 1 + sum(_values(each, counted) for each in held)
    return counted[id(value)]


def _read(value: Any, schema: Schema) -> Any:
    """Return a copy with text parsed if the schema requires another type: ``--config`` passes nested values as text."""
    if isinstance(value, dict):
        other = schema.get("additionalProperties") or {}
        if odd := [key for key in value if not isinstance(key, str)]:
            raise ConfigError(f"config: {odd[0]!r} is no key: put it in quotes")
        return {key: _read(child, schema.get("properties", {}).get(key, other)) for key, child in value.items()}
    if isinstance(value, list):
        return [_read(item, schema.get("items", {})) for item in value]
    if isinstance(value, str) and "\0" in value:
        raise ConfigError(f"config: {value!r} contains a null character: remove it")
    types = [schema.get("type")] if isinstance(schema.get("type"), str) else schema.get("type", [])
    if isinstance(value, str) and value and "enum" not in schema and types != ["string"]:
        try:  # YAML requires a decimal point: 1e-5 is text
            read = float(value) if re.fullmatch(r"[+-]?\d+e[+-]?\d+", value, re.IGNORECASE) else read_yaml(value)
        except yaml.YAMLError:
            return value
        return read if read is None or (isinstance(read, (bool, int, float)) and "string" not in types) else value
    return value
