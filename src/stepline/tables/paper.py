"""The published numbers of a paper, read from its CSV file."""

import csv
from collections.abc import Container, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from stepline.errors import ConfigError
from stepline.tables.text import number_text


class PaperKey(NamedTuple):
    """The unique key of a number in a paper's file. release: "" if the file has no such column."""

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
    """A published number, with the tolerance for a rerun and the source of the tolerance.

    printed: as printed, empty if unknown; ``<0.01`` is a bound. split: the split it was computed on. rerun: the number
    in the authors' later edition, computed on a later release; empty if there is none. decimals: the number of decimals
    in its table; some tables omit trailing zeros. truncated: the paper truncates digits instead of rounding. evidence:
    why the number cannot be right. note: further information.
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
        """The number, in percent or as a count; None for a bound."""
        return float(self.printed) if self.printed and self.bound is None else None

    @property
    def bound(self) -> float | None:
        """The upper bound, if the paper prints only a bound."""
        return float(self.printed[1:]) if self.printed.startswith("<") else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The accepted range of a rerun: below the bound, or within the tolerance; None if there is no tolerance."""
        if self.bound is not None:
            return -inf, self.bound
        if self.value is None or self.tolerance is None:
            return None
        return self.value - self.tolerance - 1e-9, self.value + self.tolerance + 1e-9


def read_paper(path: Path | str, metrics: Container[str]) -> dict[PaperKey, Published]:
    """Return the paper's numbers in file order. metrics: the metric keys of the benchmark.

    Without a column ``release``, a number is compared with ours on any release. The column ``split`` distinguishes
    numbers of one line on several splits. Raises ConfigError, with file and line, for an unknown metric, a missing
    cell, an invalid number or a duplicate key.
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
                raise ConfigError(f"{where}: column {error} is missing: add it to the first line") from None
            except ValueError as error:
                raise ConfigError(f"{where}: {error}") from None
            if key.metric not in metrics:
                raise ConfigError(f"{where}: {key.metric!r} is not a metric of this benchmark: correct or declare it")
            first = lines.setdefault(key, reader.line_num)
            if first != reader.line_num:
                named = ", ".join(filter(None, (*key[:4], number_text(key.context_s), *key[5:])))
                raise ConfigError(
                    f"{path}, lines {first} and {reader.line_num}: duplicate key ({named}): remove one line"
                )
            published[key] = number
    return published


def _read(columns: Sequence[str], cells: Sequence[str]) -> tuple[PaperKey, Published]:
    if len(cells) != len(columns):
        raise ValueError(f"it has {len(cells)} cells, but the first line has {len(columns)}: correct it")
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
