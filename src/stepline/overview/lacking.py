"""The missing inputs of table lines and of data set stages, each listed once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stepline.needs import Need
from stepline.overview.graph import Graph
from stepline.pipeline import Pipeline, how_to_fill


@dataclass
class Lack:
    """A missing input, and the command that provides it or runs with it; "" if there is none.

    lines: the number of table lines that need it, for at least one metric. entries: the entries of these lines.
    others: what else needs it.
    """

    need: Need
    command: str
    lines: int = 0
    entries: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Lines:
    """The number of lines of a table file, and of lines whose numbers can be computed or copied."""

    table: str
    total: int
    numbered: int


def tables(graph: Graph) -> list[Lines]:
    """Return the number of lines with numbers for each of the targets' tables."""
    found = []
    for study, file in _tables(graph):
        plan = _plan(graph, study)
        listed = [not plan.missing_line(line, release) for _, line, release in _lines(plan, file)]
        found.append(Lines(f"results/{study}/{file}.csv", len(listed), sum(listed)))
    return found


def lacking(graph: Graph) -> list[Lack]:
    """Return the missing inputs of the targets' tables and data sets, sorted by number of lines, descending."""
    found: dict[Need, Lack] = {}
    for study, file in _tables(graph):
        plan = _plan(graph, study)
        for table, line, release in _lines(plan, file):
            for need in plan.wanted_by(table, line, release):
                lack = found.setdefault(need, Lack(need, plan.command_for(need, f"{file}.csv")))
                lack.lines += 1
                lack.entries += [line.entry] if line.entry not in lack.entries else []
    for name, pipeline in _pipelines(graph).items():
        for need, of in _of_pipeline(pipeline):
            others = found.setdefault(need, Lack(need, how_to_fill(need))).others
            others += [f"{of} of {name}"] if f"{of} of {name}" not in others else []
    return sorted(found.values(), key=lambda each: (-each.lines, each.need))


def _of_pipeline(pipeline: Pipeline) -> Iterator[tuple[Need, str]]:
    """Yield the missing inputs of a user's data set, each with its stage or backbone."""
    if "speech" in pipeline.demand.stages:
        yield from ((need, "speech") for need in pipeline.speech.missing)
    for backbone in pipeline.features.configured:
        yield from ((need, f"{backbone} features") for need in pipeline.features.missing(backbone))


def _tables(graph: Graph) -> Iterable[tuple[str, str]]:
    return [(job.by.study, job.by.table) for job in graph.jobs if job.rule == "table"]


def _pipelines(graph: Graph) -> Mapping[str, Pipeline]:
    """Return the pipelines of the user's data sets in the targets, without studies."""
    names = {job.data for job in graph.jobs if job.rule in ("page", "summary")}
    own = graph.helpers.pipelines.items()
    return {name: each for name, each in own if name in names and name not in graph.helpers.plans}


def _lines(plan: Any, file: str) -> Iterator[tuple[Any, Any, str]]:
    """Yield the lines of a table file, with their table and release, once for each window length."""
    for table, line, release in plan.lines(file):
        for _ in plan.contexts(table, line):
            yield table, line, release


def _plan(graph: Graph, study: str) -> Any:
    return graph.helpers.plans[study]
