"""The report of a benchmark, and figures of tables."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline import paths
from stepline.benchmark import Benchmark
from stepline.report.study import write_figure, write_study
from stepline.runs.table import table_rows
from stepline.tables import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_report(benchmark: Benchmark[Any], path: Path) -> None:
    """Write the report of a benchmark: tables, figures and examples."""
    of_files = {file: table_rows(benchmark, file) for file in benchmark.report_tables}
    rows = [row for part in of_files.values() for row in part]
    files = {(row.table, row.entry): file for file, part in of_files.items() for row in part}
    shown: dict[str, Any] = {
        "title": f"{benchmark.title}: {benchmark.about}",
        "rows": rows,
        "figures": lambda part: figures(benchmark, part),
        "explain": lambda row: explanation(Path("results", benchmark.name, f"{files[row.table, row.entry]}.csv"), row),
        "how_to_read": benchmark.how_to_read,
        "examples": benchmark.examples(),
        "how_to_read_examples": benchmark.how_to_read_examples,
        "examples_title": benchmark.examples_title,
    }
    write_study(path, **shown | dict(benchmark.page(rows)))


def explanation(table: Path, row: Row) -> str:
    """Return the command that explains a row of a table, "" if it has no predictions."""
    if not row.spec or row.status == "needs":
        return ""
    return shlex.join(["stepline", "explain", str(table), row.entry, paths.context_label(row.context_s), row.release])


def write_picture(benchmark: Benchmark[Any], file: str) -> None:
    """Write ``results/<study>/<file>.svg``: a figure of the first table of the file on its last release."""
    rows = table_rows(benchmark, file)
    first = [row for row in rows if row.table == rows[0].table]
    shown = [row for row in first if row.release == first[-1].release]
    write_figure(Path("results", benchmark.name, f"{file}.svg"), shown, lambda part: figures(benchmark, part))


def figures(benchmark: Benchmark[Any], rows: Sequence[Row]) -> "Mapping[str, Figure]":
    """Return the figures of a table on one release, by metric: the benchmark's own, otherwise one line per method.

    Only percentages are drawn.
    """
    from stepline.report.figure_scores import scores

    measured = [row.metric for row in rows if row.measure.unit == "%"]
    metric = next((metric for metric in [*benchmark.drawn, *measured] if metric in measured), "")
    return benchmark.figures(rows) or ({metric: scores(rows, metric)} if metric else {})
