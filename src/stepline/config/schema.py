"""The configuration's schema: the core, and a section for each benchmark, built from its declaration."""

import copy
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepline.config.check import wrong
from stepline.config.declarations import OPTIONS, Declaration, declaration, files_of, is_packaged, options
from stepline.errors import ConfigError
from stepline.io import packaged_yaml

Schema = dict[str, Any]


def schema_of(benchmarks: dict[str, Path]) -> Schema:
    """Return the schema of a configuration with these benchmarks, with every ``$ref`` resolved.

    benchmarks: folders by name. Raises ConfigError if a name is taken or a file in a folder is invalid.
    """
    return _schema(tuple(benchmarks.items()))


@cache
def _schema(benchmarks: tuple[tuple[str, Path], ...]) -> Schema:
    core = packaged_yaml(Path(str(files("stepline").joinpath("config.schema.yaml"))))
    forms, taken = core.pop("$defs"), {"weights": ""}
    dataset, parts = forms["dataset"]["properties"], core["properties"]
    for name, folder in benchmarks:
        declared, own = declaration(folder), options(folder)
        studies = declared.get("studies", {name: {}})
        names = dict.fromkeys([*studies, *declared.get("datasets", [])], name)
        if clash := sorted(studies.keys() & parts.keys() | names.keys() & {"weights"}):
            raise ConfigError(f"config: benchmarks: {clash[0]!r} is taken; choose another name")
        if both := sorted(names.keys() & taken.keys()):
            raise ConfigError(
                f"config: benchmarks: {taken[both[0]]} and {name} both have the name {both[0]!r}, their own or one in "
                "`datasets` of tables.yaml: choose another name"
            )
        known = forms | own.get("$defs", {}) | {"benchmark": _form(declared, own)}
        try:
            parts |= {key: _whole(_study(study), known) for key, study in studies.items()}
            dataset |= _whole(own.get("dataset", {}), known) | dataset
        except KeyError as error:
            raise ConfigError(f"{folder / OPTIONS}: $ref: {error} is not defined; define it in $defs") from None
        except RecursionError:
            raise ConfigError(f"{folder / OPTIONS}: $ref: a definition refers to itself; remove the cycle") from None
        for key in () if is_packaged(folder) else studies:  # tests check the packaged ones, and checking is slow
            if odd := wrong(defaults_of(parts[key]), parts[key]):
                raise ConfigError(f"{folder}: a default is not allowed: {odd}")
        taken |= names
    parts["datasets"]["propertyNames"]["not"] = {"enum": sorted(taken)}
    return _whole(core, forms)  # type: ignore[no-any-return]


def fill(value: Any, by: Schema) -> None:
    """Add the defaults of absent keys, in place."""
    if not isinstance(value, dict):
        return
    properties, other = by.get("properties", {}), by.get("additionalProperties") or {}
    for key, child in properties.items():
        if key not in value and "default" in child:
            value[key] = copy.deepcopy(child["default"])
    for key, child in value.items():
        fill(child, properties.get(key, other))


def defaults_of(part: Schema) -> dict[str, Any]:
    """Return an object with the defaults of all its keys."""
    filled: dict[str, Any] = {}
    fill(filled, part)
    return filled


def _study(declared: Declaration) -> Schema:
    """Return the schema of a study of a benchmark."""
    over = {"releases": {"default": declared["releases"]}} if "releases" in declared else {}
    about = {"description": declared["description"]} if "description" in declared else {}
    return {"$ref": "#/$defs/benchmark", "properties": over} | about


def _form(declared: Declaration, own: Declaration) -> Schema:
    """Return the schema of a benchmark's section."""
    releases, tables = list(declared["releases"] or ()), files_of(declared)
    common: Schema = {
        **({"releases": _chosen("releases", releases, declared.get("default_releases", releases))} if releases else {}),
        "tables": _chosen("tables", tables, tables),
        "metrics": {"$ref": "#/$defs/metrics", "properties": own.get("metrics", {})},
        "subset": {"$ref": "#/$defs/subset", "default": None},
        "entries": {"$ref": "#/$defs/entries"},
    }
    if "features" in declared:
        about = "The backbones used for each of the paper's features."
        common["features"] = _object({name: _features(each) for name, each in declared["features"].items()}, about)
        common["features"]["default"] = {}
    return _object(common | own.get("properties", {}), declared.get("description") or declared["title"])


def _object(properties: Schema, description: str) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "description": description,
        "properties": properties,
    }


def _chosen(form: str, names: list[str], default: list[str]) -> Schema:
    return {"$ref": f"#/$defs/{form}", "items": {"enum": names}, "default": default}


def _features(declared: Declaration) -> Schema:
    made: Schema = {"$ref": "#/$defs/features"} | declared
    if isinstance(declared["default"], dict):
        made |= {"default": {}, "properties": {key: {"default": value} for key, value in declared["default"].items()}}
    return made


def _whole(value: Any, forms: Schema) -> Any:
    """Return a schema with each ``$ref`` resolved; keys next to a ``$ref`` override keys of the definition."""
    if isinstance(value, list):
        return [_whole(each, forms) for each in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("$ref"), str):
        base = _whole(forms[value["$ref"].removeprefix("#/$defs/")], forms)
        own = {key: _whole(each, forms) for key, each in value.items() if key != "$ref"}
        if "properties" not in base or "properties" not in own:
            return base | own
        merged = {key: base["properties"].get(key, {}) | each for key, each in own["properties"].items()}
        return base | own | {"properties": base["properties"] | merged}
    return {key: _whole(each, forms) for key, each in value.items()}
