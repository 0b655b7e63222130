"""Entries and tables of PSS, as declared in ``tables.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from stepline.config import Config
from stepline.datasets.schema import Split
from stepline.io import read_yaml

TARGETS = ("table1", "table2", "table3", "table4")
PARTS = {"youcook2": 8, "tasty": 10}
"""The average number of segments of a video (Sec. 5.2, baseline i)."""
SEGMENT_S = {"youcook2": 19.6, "tasty": 6.0}
"""The average duration of a segment, in seconds (Sec. 5.2, baseline ii)."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How predictions are made.

    module: of ``methods``. revision: of the kind's code: raise it with a change that gives other numbers. options: the
    block of the configuration that decides its training, with ``seeds``; "" where it is not fitted. trains: whether it
    reads the training videos. captions: whether it writes sentences. environment: the conda environment of its jobs;
    scored_in: that of its scores. decoded: whether its jobs read the videos themselves.
    """

    module: str
    revision: int = 1
    options: str = ""
    trains: bool = False
    captions: bool = False
    environment: str = "core"
    scored_in: str = "core"
    decoded: bool = False

    @property
    def gpu(self) -> bool:
        """Whether its jobs use a GPU where there is one."""
        return bool(self.options)


KINDS = {
    "uniform": Kind(module="uniform"),
    "frequent": Kind(module="frequent", trains=True, captions=True, scored_in="meteor"),
    "pdvc": Kind(module="pdvc", options="pdvc", trains=True, captions=True, environment="text", scored_in="meteor"),
    "procnet": Kind(module="procnet", options="procnet", trains=True, environment="text"),
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is computed. See the head of ``tables.yaml`` for the fields; seeds: one fit of each."""

    id: str
    kind: str
    features: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    splits: tuple[Split, ...] = ("test",)
    seeds: tuple[int, ...] = (0,)

    @property
    def made(self) -> Kind:
        """How its predictions are made."""
        return KINDS[self.kind]

    @property
    def trained(self) -> bool:
        """Whether it is fitted on the training videos."""
        return bool(self.made.options)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it may see, words of `stepline.tables.SEES`."""
        seen = ["video"] if self.features else []
        seen += ["train"] if self.made.trains else []
        if self.settings.get("proposals") == "ground_truth":
            seen.append("segments")
        elif not self.features:
            seen += ["duration", "segment_count"] if self.settings.get("by") == "count" else ["duration"]
        return tuple(seen)


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


@cache
def _declared() -> dict[str, Any]:
    content = files("stepline.benchmarks.pss").joinpath("tables.yaml").read_text(encoding="utf-8")
    declared: dict[str, Any] = read_yaml(content)
    return declared


def load_entries(config: Config) -> dict[str, Entry]:
    """Return all entries by id, with the configured seeds."""
    found = {}
    for name, content in _declared()["entries"].items():
        entry = Entry(**{"id": name} | content | {"splits": tuple(content.get("splits", ("test",)))})
        seeds = tuple(config[entry.made.options]["seeds"]) if entry.trained else (0,)
        found[name] = replace(entry, seeds=seeds)
    return found


@cache
def load_table(target: str) -> Table:
    """Return what is declared of a table, one of ``TARGETS``."""
    declared = _declared()["tables"][target]
    lines = tuple(
        TableLine(**line | {"releases": tuple(line.get("releases", declared["releases"]))})
        for line in declared["lines"]
    )
    return Table(title=declared["title"], metrics=tuple(declared["metrics"]), lines=lines)
