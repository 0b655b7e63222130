"""The pairs of predictions to compare: ``pairs:`` in ``tables.yaml``."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.benchmark.entries import Job, Line, Table
from stepline.spec import digest

if TYPE_CHECKING:
    from stepline.benchmark.plan import Benchmark


@dataclass(frozen=True, kw_only=True)
class Side:
    """A job of a pair, and the first line that shows it in the configured tables."""

    table: Table
    line: Line
    job: Job


def pairs(benchmark: "Benchmark[Any]") -> list[tuple[Side, Side]]:
    """Return the declared pairs, for each release for which the configured tables show both sides."""
    sides: dict[tuple[str, float | None, str], Side] = {}
    for table, line, release in benchmark.lines():
        for _, context_s in benchmark.contexts(table, line):
            job = Job(release=release, entry=benchmark.entries[line.entry], context_s=context_s)
            sides.setdefault((line.entry, context_s, release), Side(table=table, line=line, job=job))
    asked = [
        ((first, first_s, release), (second, second_s, release))
        for first, first_s, second, second_s in benchmark.declared.pairs
        for release in benchmark.options["releases"]
    ]
    return [(sides[first], sides[second]) for first, second in asked if {first, second} <= sides.keys()]


def inputs(benchmark: "Benchmark[Any]") -> list[Path]:
    """Return the score files of all pairs."""
    jobs = [side.job for pair in pairs(benchmark) for side in pair]
    return list(dict.fromkeys(benchmark.scores(job) for job in jobs if not benchmark.missing(job.entry, job.release)))


def params(benchmark: "Benchmark[Any]") -> str:
    """Return the cache key of the comparison, in addition to the scores."""
    listed = [
        [side.table.name, asdict(side.line), side.job.release, side.job.context, list(map(str, needs))]
        for pair in pairs(benchmark)
        for side in pair
        for needs in [benchmark.missing(side.job.entry, side.job.release)]
    ]
    return digest([listed, benchmark.options["metrics"]])
