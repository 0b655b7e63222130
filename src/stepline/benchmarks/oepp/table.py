"""Tables 2 to 8: declared lines, scores and the paper's numbers -> CSV, Markdown and report; 9 and 10 as lists."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepline.benchmarks.oepp.entries import Entry
from stepline.benchmarks.oepp.plan import PAPER_MODEL, Job, Plan
from stepline.datasets import oepp
from stepline.datasets.release import REBUILT
from stepline.declared import TableLine
from stepline.footage import is_backbone
from stepline.tables import Line, Row, build, write_csv, write_markdown

PARTS = {"val": "val", "base": "test base", "novel": "test novel"}
"""Of the split, as tables call them."""


def table_rows(plan: Plan, target: str) -> list[Row]:
    """Return the rows of a table from the scores at hand."""
    lines = [
        each
        for line in plan.table(target).lines
        for release in line.releases
        if release in plan.study_config["releases"]
        for named in _named(plan, line)
        for each in _lines(plan, target, named, release)
    ]
    return build(lines, plan.paper_file(target))


def _named(plan: Plan, line: TableLine) -> Iterator[TableLine]:
    """Yield a line; of another vision-language model than the paper's two, by its own name too."""
    if plan.entries[line.entry].made.decoded and plan.other_model:
        yield replace(line, method=plan.other_model)
    yield line


def _lines(plan: Plan, target: str, line: TableLine, release: str) -> Iterator[Line]:
    table, entry = plan.table(target), plan.entries[line.entry]
    lacking, spec = plan.lacking(entry, release), ""
    if entry.made.decoded and plan.other_model not in ("", line.method):
        lacking = (f"config:oepp.llm.model={PAPER_MODEL}",)
    notes = [line.note, oepp.without() if release == REBUILT else ""]
    score, job = None, Job(release=release, entry=entry)
    if not lacking:
        score = plan.read_score(job) if entry.made.module else _statistics(entry, release)
        lacking = tuple(score["needs"])
        spec = plan.spec(job) if entry.made.module else ""
        notes += [
            f"imported files: {plan.videos.folders(name)[0].parent.parent}"
            for name in plan.features(entry)
            if not is_backbone(name, plan.config)
        ]
    published = plan.published(entry)
    for metric in table.metrics:
        part, _, name = metric.partition("_")
        scored = {"miou": plan.study_config["metrics"]["miou"]} if name == "miou" else {}
        yield Line(
            table=target.removeprefix("table"),
            title=table.title,
            entry=entry.id,
            method=line.method,
            modality=line.modality,
            setting=line.setting,
            context_s=None,
            metric=metric,
            release=release,
            split=PARTS.get(part, "all"),
            inputs=entry.inputs,
            options=(plan.options(entry, release) if entry.made.module else {}) | scored,
            paper_options=published,
            paper_release="split1",
            spec=spec,
            note="; ".join(filter(None, notes)),
            command=plan.filled_by(f"{target}.csv", lacking),
            score=None if lacking else score,
            needs=lacking,
            subset=plan.subset if entry.made.module else "",
        )


def _statistics(entry: Entry, release: str) -> dict[str, Any]:
    if not oepp.is_here(release):
        return {"needs": [f"release:oepp/{release}"], "metrics": {}}
    (found,) = (each for each in oepp.statistics(release) if each.part == entry.settings["part"])
    counts = {name: getattr(found, name) for name in ("events", "actions", "videos", "segments")}
    return {"needs": [], "status": "present", "metrics": {name: {"value": count} for name, count in counts.items()}}


def write_table(plan: Plan, target: str) -> None:
    """Write ``results/oepp/<target>.csv`` and ``.md``."""
    rows, folder = table_rows(plan, target), Path("results", "oepp")
    write_markdown(rows, folder / f"{target}.md", title=f"OEPP: Table {target.removeprefix('table')}")
    write_csv(rows, folder / f"{target}.csv")
