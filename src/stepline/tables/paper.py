"""The numbers that a paper prints, as its CSV file holds them."""

import csv
from collections.abc import Container, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from stepline.errors import ConfigError
from stepline.tables.text import number_text


class PaperKey(NamedTuple):
    """What is unique in a paper's file. release: "" where the file has no such column."""

    table: str
    method: str
    modality: str
    setting: str
    context_s: float | None
    metric: str
    release: str
    split: str


@dataclass(frozen=True, kw_only=True)
class Published:
    """A number of the paper, and by how much a rerun may miss it, with the source of that.

    printed: as printed, empty where it is not known; ``<0.01`` is a bound. split: on which it was made. rerun: what
    the authors' later edition prints, made on a later release; empty where it has none. decimals: the digits after the
    point in its table, of which some tables leave out last zeros. truncated: the paper cut the digits off where others
    round. evidence: why it cannot be right. note: what else must be known of it.
    """

    printed: str
    split: str
    rerun: str
    decimals: int
    tolerance: float | None
    tolerance_source: str
    evidence: str
    note: str
    truncated: bool

    @property
    def value(self) -> float | None:
        """The number, in percent or a count; None of a bound."""
        return float(self.printed) if self.printed and self.bound is None else None

    @property
    def bound(self) -> float | None:
        """Below what the number lies, where the paper prints no more."""
        return float(self.printed[1:]) if self.printed.startswith("<") else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Between what a rerun may lie: below a bound, or in the tolerance; None where nothing justifies one."""
        if self.bound is not None:
            return -inf, self.bound
        if self.value is None or self.tolerance is None:
            return None
        return self.value - self.tolerance - 1e-9, self.value + self.tolerance + 1e-9


def read_paper(path: Path | str, metrics: Container[str]) -> dict[PaperKey, Published]:
    """Return the paper's numbers in the file's order; ``metrics`` are the keys that the benchmark has.

    Without a column ``release`` a number stands beside ours of any. Numbers of one line on several splits are told by
    the column ``split``. Raises ConfigError with the file and the line of an unknown metric, a missing cell, what is no
    number, and equal keys.
    """
    published: dict[PaperKey, Published] = {}
    lines: dict[PaperKey, int] = {}
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        columns = next(reader, [])
        for cells in filter(None, reader):
            where = f"{path}, line {reader.line_num}"
            try:
                key, number = _read(columns, cells)
            except KeyError as error:
                raise ConfigError(f"{where}: there is no column {error}: add it to the first line") from None
            except ValueError as error:
                raise ConfigError(f"{where}: {error}") from None
            if key.metric not in metrics:
                raise ConfigError(f"{where}: {key.metric!r} is no metric of this benchmark: correct or declare it")
            first = lines.setdefault(key, reader.line_num)
            if first != reader.line_num:
                named = ", ".join(filter(None, (*key[:4], number_text(key.context_s), *key[5:])))
                raise ConfigError(f"{path}, lines {first} and {reader.line_num}: equal keys ({named}): remove one")
            published[key] = number
    return published


def _read(columns: Sequence[str], cells: Sequence[str]) -> tuple[PaperKey, Published]:
    if len(cells) != len(columns):
        raise ValueError(f"it has {len(cells)} cells, the first line {len(columns)}")
    record = dict(zip(columns, cells, strict=True))
    values: dict[str, Any] = {"release": ""} | record
    values["context_s"] = float(record["context_s"]) if record["context_s"] else None
    key = PaperKey(**{name: values[name] for name in PaperKey._fields})
    number = Published(
        printed=record["paper"],
        split=record["split"],
        rerun=record["rerun"],
        decimals=int(record["decimals"] or 0),
        tolerance=float(record["tolerance"]) if record["tolerance"] else None,
        tolerance_source=record["tolerance_source"],
        evidence=record["evidence"],
        note=record["note"],
        truncated=record.get("truncated") == "true",
    )
    _ = number.value, number.bound
    return key, number
