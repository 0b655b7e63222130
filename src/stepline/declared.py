"""What a benchmark declares in its ``tables.yaml``: entries, which are computed, and tables, which show them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from stepline.config import Config
from stepline.io import read_yaml


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How predictions are made.

    module: of the benchmark's ``methods``. revision: of the kind's code: raise it with a change that gives other
    numbers. options: the block of the configuration that decides its training, with ``seeds``; "" where it is not
    fitted. trains: whether it reads the training videos. environment: the conda environment of its jobs; scored_in:
    that of its scores. decoded: whether its jobs read the videos themselves.
    """

    module: str
    revision: int = 1
    options: str = ""
    trains: bool = False
    environment: str = "core"
    scored_in: str = "core"
    decoded: bool = False

    @property
    def gpu(self) -> bool:
        """Whether its jobs use a GPU where there is one."""
        return bool(self.options)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is computed. See the head of ``tables.yaml`` for the fields; seeds: one fit of each."""

    id: str
    kind: str
    features: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)

    @property
    def made(self) -> Kind:
        """How its predictions are made."""
        raise NotImplementedError

    @property
    def trained(self) -> bool:
        """Whether it is fitted on the training videos."""
        return bool(self.made.options)


@dataclass(frozen=True, kw_only=True)
class TableLine:
    """How a table names an entry."""

    entry: str
    method: str
    modality: str = ""
    setting: str = ""
    note: str = ""
    releases: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: what it is about, the metrics that are its columns, and its lines."""

    title: str
    metrics: tuple[str, ...]
    lines: tuple[TableLine, ...]


AnyEntry = TypeVar("AnyEntry", bound=Entry)


def load_entries(package: str, make: type[AnyEntry], config: Config) -> dict[str, AnyEntry]:
    """Return all entries of a benchmark by id, with the configured seeds."""
    found = {}
    for name, content in _declared(package)["entries"].items():
        fields: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in content.items()}
        entry = make(id=name, **fields)
        found[name] = replace(entry, seeds=tuple(config[entry.made.options]["seeds"])) if entry.trained else entry
    return found


def tables(package: str) -> list[str]:
    """Return the names of a benchmark's tables."""
    return list(_declared(package)["tables"])


@cache
def load_table(package: str, target: str) -> Table:
    """Return what a benchmark declares of a table."""
    declared = _declared(package)["tables"][target]
    lines = tuple(
        TableLine(**line | {"releases": tuple(line.get("releases", declared["releases"]))})
        for line in declared["lines"]
    )
    return Table(title=declared["title"], metrics=tuple(declared["metrics"]), lines=lines)


@cache
def _declared(package: str) -> dict[str, Any]:
    content: dict[str, Any] = read_yaml(files(package).joinpath("tables.yaml").read_text(encoding="utf-8"))
    return content
