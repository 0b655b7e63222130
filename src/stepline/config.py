"""The configuration, validated at the door."""

import copy
import difflib
import os
import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from stepline.errors import ConfigError
from stepline.io import read_yaml

Config = dict[str, Any]

_NUMBERS: dict[str, Callable[[Any, Any], bool]] = {
    "integer": lambda _, value: type(value) is int,
    "number": lambda _, value: type(value) in (int, float) and isfinite(value),
}
_VALIDATOR = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(_NUMBERS)
)


def load(path: Path | str | None = None) -> Config:
    """Return the validated configuration with defaults filled in.

    path: a YAML or JSON file; by default the one that ``STEPLINE_CONFIG`` names, else ``config.yaml``.
    """
    path = Path(path or os.environ.get("STEPLINE_CONFIG") or "config.yaml")
    try:
        content = read_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; run from the folder that holds config.yaml, or name one") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if content is None:
        raise ConfigError(f"{path}: it is empty; give at least `spacewalk: {{}}`")
    return validate(content)


def validate(config: Any) -> Config:
    """Return a copy of ``config`` with defaults filled in.

    Raises ConfigError, one line that names the key, the value and what is allowed.
    """
    try:
        config = _read(config, _schema())
    except RecursionError:
        raise ConfigError("config: it contains itself (a YAML alias)") from None
    error = _first(_VALIDATOR(_schema()).iter_errors(config))
    if error is not None:
        raise ConfigError(_explain(error))
    _fill(config, _schema())
    return config  # type: ignore[no-any-return]


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = read_yaml(files("stepline").joinpath("config.schema.yaml").read_text())
    return schema


def _resolve(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    base: dict[str, Any] = _schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    own = schema.get("properties", {})
    properties = {key: child | own.get(key, {}) for key, child in base.get("properties", {}).items()}
    return base | schema | {"properties": properties}


def _read(value: Any, schema: dict[str, Any]) -> Any:
    """Return a copy with text read where the schema wants none: ``snakemake --config`` gives nested values as text."""
    schema = _resolve(schema)
    if isinstance(value, dict):
        other = schema.get("additionalProperties") or {}
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise ConfigError(f"config: {wrong[0]!r} is no key: put it in quotes")
        return {key: _read(child, schema.get("properties", {}).get(key, other)) for key, child in value.items()}
    if isinstance(value, list):
        return [_read(item, schema.get("items", {})) for item in value]
    if isinstance(value, str) and "\0" in value:
        raise ConfigError(f"config: {value!r} holds a null character: remove it")
    types = [schema.get("type")] if isinstance(schema.get("type"), str) else schema.get("type", [])
    if isinstance(value, str) and value and "enum" not in schema and types != ["string"]:
        try:  # YAML's numbers have a full stop: 1e-5 is text
            read = float(value) if re.fullmatch(r"[+-]?\d+e[+-]?\d+", value, re.IGNORECASE) else yaml.safe_load(value)
        except yaml.YAMLError:
            return value
        return read if read is None or (isinstance(read, (bool, int, float)) and "string" not in types) else value
    return value


def _fill(value: Any, schema: dict[str, Any]) -> None:
    schema = _resolve(schema)
    if not isinstance(value, dict):
        return
    properties, other = schema.get("properties", {}), schema.get("additionalProperties") or {}
    for key, child in properties.items():
        if key not in value and "default" in child:
            value[key] = copy.deepcopy(child["default"])
    for key, child in value.items():
        _fill(child, properties.get(key, other))


def _first(errors: Iterable[ValidationError]) -> ValidationError | None:
    return min(errors, key=lambda e: (e.validator == "oneOf", [str(p) for p in e.absolute_path]), default=None)


def _explain(error: ValidationError) -> str:
    key = _key(error)
    if error.validator == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))  # type: ignore[union-attr]
        unknown = next(name for name in error.instance if name not in allowed)  # type: ignore[union-attr]
        close = difflib.get_close_matches(str(unknown), allowed, n=1)
        hint = f"did you mean '{close[0]}'? " if close else ""
        name = unknown if key == "the file" else f"{key}.{unknown}"
        return f"config: {name}: unknown key; {hint}allowed: {', '.join(allowed)}"
    if error.validator == "enum":
        allowed = list(map(str, error.validator_value))  # type: ignore[arg-type]
        return f"config: {key}: {error.instance!r} is not allowed; choose from {', '.join(allowed)}"
    if key.endswith("llm.url"):
        return f"config: {key}: give http(s)://HOST[:PORT]/PATH, without a password, a query or a fragment"
    if error.validator == "not":
        return f"config: {key}: {error.instance!r} is taken; choose another name"
    if error.validator == "oneOf":
        return f"config: {key}: {error.instance!r} is not allowed; give exactly one of videos, fraction or hours"
    if error.validator == "type":
        wanted: Any = error.validator_value
        types: list[str] = wanted if isinstance(wanted, list) else [wanted]
        hint = "; put it in quotes" if "string" in types else ""
        return f"config: {key}: {error.instance!r} is not of type {' or '.join(types)}{hint}"
    return f"config: {key}: {error.message}"


def _key(error: ValidationError) -> str:
    key = ""
    for part in error.absolute_path:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
    return key or "the file"
