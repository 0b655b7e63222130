"""The committed reproduction ledger, for tests that compute some of its numbers."""

import csv
from collections.abc import Iterable
from functools import cache

from stepline.tables import Row
from tests.conftest import ROOT


@cache
def _listed() -> dict[tuple[str, ...], tuple[str, str]]:
    with open(ROOT / "docs/reproduction.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("table", "method", "modality", "setting", "metric", "split", "release", "paper")
    return {tuple(row[name] for name in names): (row["ours"], row["status"]) for row in rows}


def assert_in_ledger(rows: Iterable[Row]) -> None:
    """Fail where the ledger has another value or status for a computed number that the paper prints, or lacks it."""
    compared = [row for row in rows if row.value is not None and row.printed and row.context_s is None]
    assert compared
    for row in compared:
        key = (row.table, row.method, row.modality, row.setting, row.metric, row.split, row.release, row.printed)
        ours = f"{row.value:.0f}" if row.measure.unit == "count" else f"{row.value:.4f}"
        assert _listed()[key] == (ours, row.status)
