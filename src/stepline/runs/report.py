"""The page of a benchmark: its tables, pictures of them, and examples."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.report.study import HOW_TO_READ, first_metric, write_figure, write_study
from stepline.runs.table import table_rows
from stepline.tables import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stepline.benchmark import Benchmark


def write_report(benchmark: "Benchmark[Any]", path: Path) -> None:
    """Write the page to look at."""
    write_study(
        path,
        title=f"{benchmark.title}: {benchmark.about}",
        rows=[row for file in benchmark.tables for row in table_rows(benchmark, file)],
        figures=lambda rows: _figures(benchmark, rows),
        how_to_read=benchmark.how_to_read or HOW_TO_READ,
        examples=benchmark.examples(),
        how_to_read_examples=benchmark.how_to_read_examples,
        examples_title=benchmark.examples_title,
        **benchmark.page(),
    )


def write_picture(benchmark: "Benchmark[Any]", file: str) -> None:
    """Write ``results/<study>/<file>.svg``: the first table of the file on the last release that it has."""
    rows = table_rows(benchmark, file)
    first = [row for row in rows if row.table == rows[0].table]
    shown = [row for row in first if row.release == first[-1].release]
    write_figure(Path("results", benchmark.name, f"{file}.svg"), shown, lambda rows: _figures(benchmark, rows))


def _figures(benchmark: "Benchmark[Any]", rows: Sequence[Row]) -> "Mapping[str, Figure]":
    own = benchmark.figures(rows)
    return first_metric([row for row in rows if row.metric in benchmark.drawn] or rows) if own is None else own
