"""The verb `plan`: estimates the jobs, hours and disk space of a run and lists missing inputs before it starts."""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from stepline.cli.lines import columns, duration, size
from stepline.config import load
from stepline.invocation import current
from stepline.progress import rules_of, stage_of

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers
    from stepline.overview.forecast import Estimate, Forecast
    from stepline.overview.graph import Graph, Job
    from stepline.overview.lacking import Lack, Lines

BASES = {
    "measured": "from earlier jobs in this folder",
    "typical": "for 1280x720 at 30 frames per second on one core (perf/README.md)",
    "at most": "the time that is requested from a scheduler; speech recognition uses four cores",
}
"""The possible bases of an estimate, with their explanations."""


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("plan", help="estimate a run: jobs, hours, disk, and what is missing")
    verb.add_argument(
        "targets", nargs="*", metavar="TARGET", help="a file, a study or a data set; default: the whole configuration"
    )
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(run=_plan)


def _plan(parsed: argparse.Namespace) -> None:
    from stepline.overview.forecast import Forecast
    from stepline.overview.graph import Graph
    from stepline.overview.lacking import lacking, tables
    from stepline.overview.records import to_do

    graph = Graph(load(parsed.configfile), parsed.targets)
    left = to_do(graph)
    forecast = Forecast(graph, left)
    lacks, lines = lacking(graph), tables(graph)
    if parsed.json:
        on_cpu, on_gpu = forecast.total
        made = {
            "targets": graph.targets,
            "stages": [dict(zip(("stage", "jobs", "done", "to_do"), row, strict=True)) for row in _stages(graph, left)],
            "videos": [asdict(each) for each in forecast.videos],
            "work": [asdict(each) for each in forecast.work],
            "hours": {"without_gpu": asdict(on_cpu), "of_gpus": asdict(on_gpu), "gpu_here": graph.gpu},
            "disk": [asdict(each) for each in forecast.disk],
            "peak_bytes": forecast.peak_bytes,
            "free_bytes": forecast.free_bytes,
            "tables": [asdict(each) for each in lines],
            "missing": [asdict(each) | {"need": str(each.need)} for each in lacks],
        }
        print(json.dumps(made, indent=2))
        return
    print("\n\n".join(filter(None, _text(graph, left, forecast, lacks, lines))))


def _stages(graph: "Graph", left: Iterable["Job"]) -> list[tuple[str, int, int, int]]:
    """Return each stage with its numbers of jobs: total, done, and not done."""
    from stepline.overview.rules import RULES

    total, not_done = (Counter(stage_of(job.rule) for job in jobs) for jobs in (graph.jobs, left))
    stages = [stage for stage in rules_of(RULES) if total[stage]]
    return [(stage, total[stage], total[stage] - not_done[stage], not_done[stage]) for stage in stages]


def _text(
    graph: "Graph", left: Iterable["Job"], forecast: "Forecast", lacks: Sequence["Lack"], lines: Sequence["Lines"]
) -> Iterable[str]:
    """Yield the parts of the printed text; "" for an empty part."""
    yield columns([("stage", "jobs", "done", "to do"), *_stages(graph, left)], right=(1, 2, 3))
    first, *others = graph.targets if graph.asked else ["all"]
    exact = current().command(first, {}, *others, "-n")
    yield f"`{exact}` lists exactly which jobs run: it also compares file times and the parameters of earlier jobs."
    if not left:
        yield "There is nothing left to do."
    yield _videos(forecast)
    yield _work(forecast)
    yield _disk(forecast)
    numbered = [(each.table, each.total, each.numbered) for each in lines]
    yield columns([("table", "lines", "with numbers"), *numbered], right=(1, 2)) if lines else ""
    yield _missing(lacks)


def _videos(forecast: "Forecast") -> str:
    rows = [
        (each.name, each.listed, duration(each.hours), f"{each.guessed} lengths are guessed" if each.guessed else "")
        for each in forecast.videos
    ]
    return columns([("data set", "videos", "length", ""), *rows], right=(1, 2)) if rows else ""


def _work(forecast: "Forecast") -> str:
    if not forecast.work:
        return ""
    on_cpu, on_gpu = forecast.total
    rows = [
        (work.what, duration(work.video_hours), _hours(work.cpu), _hours(work.gpu) if work.gpu else "")
        for work in forecast.work
    ]
    total = "total", "", _hours(on_cpu), _hours(on_gpu) if on_gpu.hours else ""
    table = columns([("work", "of video", "on a CPU", "on a GPU"), *rows, total], right=(1, 2, 3))
    used = {each.basis for each in (*(work.cpu for work in forecast.work), *(w.gpu for w in forecast.work if w.gpu))}
    notes = "; ".join(f'"{word}": {text}' for word, text in BASES.items() if word in used)
    return f"{table}\nOne job at a time. {notes}. Training, predictions, scores and text embeddings are not estimated."


def _hours(estimate: "Estimate") -> str:
    return f"{duration(estimate.hours)}  {estimate.basis}"


def _disk(forecast: "Forecast") -> str:
    if not forecast.disk:
        return ""
    rows = [(each.folder, "unknown" if each.bytes is None else size(each.bytes)) for each in forecast.disk]
    peak, free = forecast.peak_bytes, forecast.free_bytes
    table = columns([("folder", "to write"), *rows, ("peak", size(peak))], right=(1,))
    enough = "" if peak < free else "\nwarning: the disk does not have enough space: free some, or set features.store"
    return f"{table}\nFree on this disk: {size(free)}.{enough}"


def _missing(lacks: Sequence["Lack"]) -> str:
    if not lacks:
        return "Nothing is missing."
    rows = [(lack.need, lack.lines or "", ", ".join(lack.others), lack.command or "no command") for lack in lacks]
    table = columns([("missing", "lines", "also for", "command"), *rows], right=(1,))
    hidden = any(lack.need.kind == "release" for lack in lacks)
    return table + "\nRun `stepline plan` again after fetching a release: its list of videos adds jobs." * hidden
