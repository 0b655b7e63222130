"""Tables as CSV and Markdown, from declared lines, scores and the paper's numbers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stepline.benchmark import Benchmark, Job, Line, Option, Table, UnavailableError
from stepline.needs import Need, in_order
from stepline.tables import Number, Row, build, write_csv, write_markdown


def table_rows(benchmark: Benchmark[Any], file: str) -> list[Row]:
    """Return the rows of a table file from the existing scores."""
    numbers = [
        number
        for table, line, release in benchmark.lines(file)
        for named in benchmark.named(line)
        for context_s, job_s in benchmark.contexts(table, line)
        for number in _numbers(benchmark, table, named, release, context_s, job_s)
    ]
    paper = benchmark.paper_file(file)
    return build(numbers, paper, benchmark.metrics, settings=benchmark.settings, rerun=benchmark.rerun)


def _numbers(
    benchmark: Benchmark[Any], table: Table, line: Line, release: str, context_s: float | None, job_s: float | None
) -> Iterator[Number]:
    entry = benchmark.entries[line.entry]
    job = Job(release=release, entry=entry, context_s=job_s)
    needs = benchmark.missing_line(line, release)
    score: Mapping[str, Any] | None = None
    imported: list[str] = []
    if not needs and not benchmark.is_reference(line):
        imported = benchmark.imported(entry, release)
        found = benchmark.read_score(job) if entry.kind.method else _counted(benchmark, entry, release)
        score, needs = found, tuple(map(Need.parse, found["needs"]))
    spec = "" if score is None or not entry.kind.method else benchmark.spec(job)
    options = dict(benchmark.line_options(line, release))
    scoring, standard = benchmark.options["metrics"], benchmark.defaults["metrics"]
    for metric in table.metrics:
        if not entry.kind.scores(metric):
            continue
        scored_by = {
            key: Option(scoring[key], (standard | benchmark.published)[key], said=key in benchmark.published)
            for key in benchmark.options_of(entry, metric)
        }
        unscored = score is not None and metric not in score["metrics"]
        explained = benchmark.unscored(entry, release, metric) if unscored else ()
        wanted = in_order([*needs, *benchmark.missing_of(metric), *explained])
        yield Number(
            table=table.name,
            title=table.title,
            entry=entry.id,
            method=line.method,
            modality=line.modality,
            setting=line.setting,
            context_s=context_s,
            metric=metric,
            release=release,
            split=benchmark.split(entry, metric),
            protocol=line.protocol,
            sees=benchmark.seen(entry),
            options=options | scored_by,
            blind=benchmark.blind(entry, metric),
            paper_release=benchmark.paper_release or release,
            spec=spec,
            note="; ".join(filter(None, [line.note, *imported, benchmark.note(table, line, release, metric)])),
            command=benchmark.filled_by(f"{table.file}.csv", wanted),
            score=None if wanted else score,
            needs=wanted,
            reference=benchmark.is_reference(line),
            subset=benchmark.subset if entry.kind.method else "",
        )


def _counted(benchmark: Benchmark[Any], entry: Any, release: str) -> Mapping[str, Any]:
    """Return the counts of a release in the form of a score."""
    try:
        counts = benchmark.counted(entry, release)
    except UnavailableError as error:
        return {"needs": list(map(str, error.needs)), "metrics": {}}
    return {"needs": [], "status": "present", "metrics": {metric: {"value": n} for metric, n in counts.items()}}


def write_table(benchmark: Benchmark[Any], file: str) -> None:
    """Write ``results/<study>/<file>.csv`` and ``.md``."""
    rows, folder = table_rows(benchmark, file), Path("results", benchmark.name)
    write_markdown(rows, folder / f"{file}.md", title=f"{benchmark.cited}: Table {file.removeprefix('table')}")
    write_csv(rows, folder / f"{file}.csv")
