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


def read(path: Path | str) -> Any:
    """Return the content of a YAML file; raise ConfigError where it is absent or not YAML."""
    try:
        with open(path, encoding="utf-8") as file:
            return read_yaml(file.read(YAML_CHARACTERS + 1))
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(f"{path}: no such file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(error).split())}") from None


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
            raise ConfigError(f"{path}: {error.json_path.removeprefix('$.properties.')}: {error.message}") from None
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
