"""What is missing before the lines of tables, and the stages of data sets, can be computed: each thing once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stepline.needs import Need
from stepline.overview.graph import Graph
from stepline.pipeline import Pipeline, how_to_fill


@dataclass
class Lack:
    """A need, and the command that fills it; "" where none does.

    lines: how many lines of tables wait for it. entries: theirs. others: what else waits, in words.
    """

    need: Need
    command: str
    lines: int = 0
    entries: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Lines:
    """The lines of a file of tables: how many there are, and of how many the numbers are computed or copied."""

    table: str
    total: int
    numbered: int


def tables(graph: Graph) -> list[Lines]:
    """Return how many lines of the target's tables will have numbers."""
    found = []
    for study, file in _tables(graph):
        plan = _plan(graph, study)
        listed = [not plan.missing_line(line, release) for line, release, _ in _lines(plan, file)]
        found.append(Lines(f"results/{study}/{file}.csv", len(listed), sum(listed)))
    return found


def lacking(graph: Graph) -> list[Lack]:
    """Return what the target's tables and data sets are missing, the needs of most lines first."""
    found: dict[Need, Lack] = {}
    for study, file in _tables(graph):
        plan = _plan(graph, study)
        for line, release, _ in _lines(plan, file):
            for need in plan.missing_line(line, release):
                lack = found.setdefault(need, Lack(need, plan.how_to_fill(need)))
                lack.lines += 1
                lack.entries += [line.entry] if line.entry not in lack.entries else []
        for metric in plan.measured:
            for need in plan.missing_of(metric):
                _add(found, need, plan.how_to_fill(need), f"metrics of {study}")
    for name, pipeline in _pipelines(graph).items():
        for need, of in _of_pipeline(pipeline):
            _add(found, need, how_to_fill(need), f"{of} of {name}")
    return sorted(found.values(), key=lambda each: (-each.lines, each.need))


def _add(found: dict[Need, Lack], need: Need, command: str, of: str) -> None:
    others = found.setdefault(need, Lack(need, command)).others
    others += [of] if of not in others else []


def _of_pipeline(pipeline: Pipeline) -> Iterator[tuple[Need, str]]:
    """Yield what the stages of a data set of the user's own are missing, with the stage or the backbone."""
    if "speech" in pipeline.demand.stages:
        yield from ((need, "speech") for need in pipeline.speech.missing)
    for backbone in pipeline.features.configured:
        yield from ((need, f"{backbone} features") for need in pipeline.features.missing(backbone))


def _tables(graph: Graph) -> Iterable[tuple[str, str]]:
    return [(job.by.study, job.by.table) for job in graph.jobs if job.rule == "table"]


def _pipelines(graph: Graph) -> Mapping[str, Pipeline]:
    """Return the pipelines of the user's own data sets that the target has, studies aside."""
    names = {job.data for job in graph.jobs if job.rule in ("page", "summary")}
    own = graph.helpers.pipelines.items()
    return {name: each for name, each in own if name in names and name not in graph.helpers.plans}


def _lines(plan: Any, file: str) -> Iterator[tuple[Any, str, float | None]]:
    """Yield the lines of a file of tables, each at each window length."""
    for table, line, release in plan.lines(file):
        for context_s, _ in plan.contexts(table, line):
            yield line, release, context_s


def _plan(graph: Graph, study: str) -> Any:
    return graph.helpers.plans[study]
