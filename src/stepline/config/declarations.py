"""Benchmark declarations: each benchmark is a folder with ``tables.yaml`` and optionally ``options.yaml``."""

import os
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from stepline.config.check import wrong
from stepline.errors import ConfigError
from stepline.io import YAML_CHARACTERS, packaged_yaml, read_yaml

Declaration = dict[str, Any]

TABLES, OPTIONS = "tables.yaml", "options.yaml"
ADVICE = {
    "cannot start any token": "indent with spaces, not tabs, and put text that begins with this character in quotes",
    "mapping values are not allowed": "put a value with a colon in quotes, and indent keys of one level equally",
    "did not find expected ',' or": "close the bracket",
    "did not find expected key": "indent keys of one level equally",
    "unexpected end of stream": "close the quotes",
    "could not find expected ':'": "put a colon and a space after the key",
}
"""Advice for the error messages of libyaml and PyYAML."""


def read(path: Path | str) -> Any:
    """Return the content of a YAML file; raise ConfigError if it is missing or not YAML."""
    try:
        with open(path, encoding="utf-8") as file:
            return read_yaml(file.read(YAML_CHARACTERS + 1))
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(f"{path}: no such file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not YAML: {_odd(error)}") from None


def _odd(error: Exception) -> str:
    """Return one line with the position of a YAML error, the problem and the correction."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or not problem:
        return " ".join(str(error).split())
    advice = next((text for words, text in ADVICE.items() if words in problem), "")
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}{advice and ': '}{advice}"


def folders(config: Mapping[str, Any]) -> dict[str, Path]:
    """Return the folder of each benchmark by name: first the packaged benchmarks, then those in ``benchmarks:``.

    Raises ConfigError if a folder contains no benchmark, or if its name is that of a packaged benchmark.
    """
    own = {name: Path(os.path.expanduser(folder)).absolute() for name, folder in config.get("benchmarks", {}).items()}
    if both := sorted(own.keys() & _packaged()):
        raise ConfigError(f"config: benchmarks: {both[0]!r} is taken; choose another name")
    for name, folder in own.items():
        if not (folder / TABLES).is_file():
            raise ConfigError(f"config: benchmarks.{name}: {folder} has no {TABLES}; give a benchmark's folder")
    return _packaged() | own


@cache
def _packaged() -> dict[str, Path]:
    every = Path(str(files("stepline").joinpath("benchmarks")))
    return {file.parent.name: file.parent for file in sorted(every.glob(f"*/{TABLES}"))}


def is_packaged(folder: Path) -> bool:
    """Return whether a folder is that of a packaged benchmark."""
    return folder in _packaged().values()


@cache
def declaration(folder: Path) -> Declaration:
    """Return the content of a benchmark's ``tables.yaml``; raise ConfigError if it violates the schema.

    The schema is ``declaration.schema.yaml``. All callers share the returned object.
    """
    return _checked(folder / TABLES)


@cache
def options(folder: Path) -> Declaration:
    """Return the content of a benchmark's ``options.yaml``, {} if there is none; raise ConfigError if it is invalid."""
    path = folder / OPTIONS
    if not path.exists():
        return {}
    content = _checked(path)
    if not is_packaged(folder):
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError

        try:
            for part in content.values():
                Draft202012Validator.check_schema({"properties": part})
        except SchemaError as error:
            key = error.json_path.removeprefix("$.properties.")
            raise ConfigError(f"{path}: {key}: {error.instance!r} is not allowed in JSON Schema") from None
    return content


def files_of(declared: Mapping[str, Any]) -> list[str]:
    """Return the names of all table files in the order of tables, including the ``target`` of single entries."""
    found = []
    for name, table in declared["tables"].items():
        entries = [entry for entry in declared["entries"].values() if entry.get("table") == name]
        found += [table.get("target", f"table{str(name).removeprefix('table')}")]
        found += [entry["target"] for entry in entries if "target" in entry]
    return list(dict.fromkeys(found))


def forms() -> dict[str, Any]:
    """Return the schemas of the files in a benchmark's folder, by file name."""
    return packaged_yaml(Path(str(files("stepline").joinpath("config/declaration.schema.yaml"))))  # type: ignore[no-any-return]


def _checked(path: Path) -> Declaration:
    if is_packaged(path.parent):  # tests check the packaged ones, and checking is slow
        return packaged_yaml(path)  # type: ignore[no-any-return]
    content = read(path)
    if error := wrong(content, forms()[path.name]):
        raise ConfigError(f"{path}: {error}")
    return content  # type: ignore[no-any-return]
