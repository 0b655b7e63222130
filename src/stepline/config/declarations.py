"""What benchmarks declare: each is a folder with ``tables.yaml`` and, where it has own options, ``options.yaml``."""

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
    "cannot start any token": "indent with spaces, not with tabs, and put text that begins so in quotes",
    "mapping values are not allowed": "put a value with a colon in quotes, and indent keys of one level equally",
    "did not find expected ',' or": "close the bracket",
    "did not find expected key": "indent keys of one level equally",
    "unexpected end of stream": "close the quotes",
    "could not find expected ':'": "put a colon and a space behind the key",
}
"""What to do about a problem that libyaml or PyYAML names."""


def read(path: Path | str) -> Any:
    """Return the content of a YAML file; raise ConfigError where it is absent or not YAML."""
    try:
        with open(path, encoding="utf-8") as file:
            return read_yaml(file.read(YAML_CHARACTERS + 1))
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(f"{path}: no such file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not YAML: {_odd(error)}") from None


def _odd(error: Exception) -> str:
    """Return in a line what is wrong with a YAML file, where, and what to write."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or not problem:
        return " ".join(str(error).split())
    advice = next((text for words, text in ADVICE.items() if words in problem), "")
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}{advice and ': '}{advice}"


def folders(config: Mapping[str, Any]) -> dict[str, Path]:
    """Return the folder of each benchmark by its name: the package's, then those that ``benchmarks:`` names.

    Raises ConfigError where one of these holds no benchmark, or has the name of one of the package's.
    """
    own = {name: Path(folder).expanduser().absolute() for name, folder in config.get("benchmarks", {}).items()}
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
    """Return whether a benchmark's folder is one of the package's."""
    return folder in _packaged().values()


@cache
def declaration(folder: Path) -> Declaration:
    """Return what stands in a benchmark's ``tables.yaml``; raise ConfigError where its head is wrong.

    ``declaration.schema.yaml`` describes it. All callers share what is returned.
    """
    return _checked(folder / TABLES)


@cache
def options(folder: Path) -> Declaration:
    """Return what stands in a benchmark's ``options.yaml``, empty without one; raise ConfigError where it is wrong."""
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


def files_of(declared: Declaration) -> list[str]:
    """Return the files that tables and, apart from them, entries name as their ``target``, in the order of tables."""
    found = []
    for name, table in declared["tables"].items():
        entries = [entry for entry in declared["entries"].values() if entry.get("table") == name]
        found += [table.get("target", f"table{str(name).removeprefix('table')}")]
        found += [entry["target"] for entry in entries if "target" in entry]
    return list(dict.fromkeys(found))


def forms() -> dict[str, Any]:
    """Return the schemas of the files of a benchmark's folder, by their names."""
    return packaged_yaml(Path(str(files("stepline").joinpath("config/declaration.schema.yaml"))))  # type: ignore[no-any-return]


def _checked(path: Path) -> Declaration:
    if is_packaged(path.parent):  # the package's own are tested, and checking takes a while
        return packaged_yaml(path)  # type: ignore[no-any-return]
    content = read(path)
    if error := wrong(content, forms()[path.name]):
        raise ConfigError(f"{path}: {error}")
    return content  # type: ignore[no-any-return]
