"""Figures 3, 4 and A9: tables as curves."""

from pathlib import Path

from stepline.benchmarks.spacewalk import presentation
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.io import write_bytes
from stepline.runs.table import table_rows
from stepline.tables import Row

PANELS = {
    "figure3": (
        ("A6", "accuracy", "Step recognition"),
        ("A6", "map", "Step recognition"),
        ("A7", "accuracy", "Retrieval"),
    ),
    "figure4": (("A8", "accuracy", "Step recognition"), ("A8", "map", "Step recognition")),
}
AMOUNTS = {"A9a": "samples_per_video", "A9b": "videos"}
"""By table, the setting that limits an entry's training data; an entry without it uses all data."""


def write_figures(benchmark: Spacewalk) -> None:
    """Write ``results/<study>/figure3.svg``, ``figure4.svg`` and ``figureA9.svg`` from the existing scores."""
    from stepline.benchmarks.spacewalk.report.figure_sizes import sizes
    from stepline.benchmarks.spacewalk.report.figure_windows import windows
    from stepline.report.figures import render

    folder = Path("results", benchmark.name)
    rows = [row for file in presentation.figure_tables(benchmark) for row in table_rows(benchmark, file)]
    for name, panels in PANELS.items():
        write_bytes(folder / f"{name}.svg", render(windows(rows, panels)))

    trained = [row for row in rows if row.table in AMOUNTS and row.release == benchmark.releases[-1]]
    whole = {
        "A9a": benchmark.released.samples_per_video,
        "A9b": sum(video.split == "train" for video in benchmark.released.videos()),
    }
    amounts = {
        (row.table, row.entry): benchmark.entries[row.entry].settings.get(AMOUNTS[row.table], whole[row.table])
        for row in trained
        if row.entry
    }
    write_bytes(folder / "figureA9.svg", render(sizes(trained, amounts, _before(trained, rows))))


def _before(trained: list[Row], rows: list[Row]) -> list[Row]:
    """Return the zero-shot rows of Table 2a for the trained method, at its window length.

    Lines of a table must differ in their method, so the names in the ablations end with the amount of training data.
    """
    return [
        row
        for row in rows
        if (row.table, row.setting) == ("2a", "zero-shot")
        and any(
            each.method.startswith(row.method)
            and (each.modality, each.context_s, each.release) == (row.modality, row.context_s, row.release)
            for each in trained
        )
    ]
