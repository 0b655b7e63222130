"""Tables 1 to 4: declared lines, scores and the paper's numbers -> CSV, Markdown and report."""

from collections.abc import Iterator
from pathlib import Path

from stepline.benchmarks.pss.entries import Entry
from stepline.benchmarks.pss.plan import Job, Plan
from stepline.benchmarks.pss.score import METEOR
from stepline.declared import TableLine
from stepline.footage import is_backbone
from stepline.tables import Line, Row, build, write_csv, write_markdown

PAPER_FEATURES = {"s3d": "s3d-pss", "tsn": "tsn-resnet+tsn-bn", "r3d": "r3d", "i3d": "i3d", "resnet34": "resnet34"}
MATCHED = ("precision", "recall", "soda_d", "soda_c", "soda_c_stem")
"""The metrics that match segments in order."""
SEGMENTS = ("miou_1fps", "mjaccard_1fps", "miou", "mjaccard", "precision", "recall", "soda_d")
"""The metrics that read no sentences."""


def table_rows(plan: Plan, target: str) -> list[Row]:
    """Return the rows of a table from the scores at hand."""
    lines = [
        each
        for line in plan.table(target).lines
        for release in line.releases
        if release in plan.datasets
        for each in _lines(plan, target, line, release)
    ]
    return build(lines, plan.paper_file(target))


def _lines(plan: Plan, target: str, line: TableLine, release: str) -> Iterator[Line]:
    table, entry = plan.table(target), plan.entries[line.entry]
    lacking, score, spec, notes = plan.lacking(entry, release), None, "", [line.note]
    if not lacking:
        job = Job(release=release, entry=entry)
        score, spec = plan.read_score(job), plan.spec(job)
        lacking = tuple(score["needs"])
        notes += [
            f"imported files: {plan.footage[release].folders(source)[0].parent.parent}"
            for source in plan.features(entry)
            if not is_backbone(source, plan.config)
        ]
    options, paper_options = plan.options(entry, release), {"duration": "ceil_seconds"}
    if entry.features:
        changed = {key: published for key, (_, published) in plan.changed(entry, release).items()}
        paper_options = changed | {"features": PAPER_FEATURES[entry.features], "vocabulary": "released"}
    metrics = [metric for metric in table.metrics if entry.made.captions or metric in SEGMENTS]
    for metric in metrics:
        needs = lacking or (plan.meteor_lacks if metric in METEOR else ())
        scored = {key: plan.study_config["metrics"][key] for key in ("missing", "order")[: 1 + (metric in MATCHED)]}
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
            split="+".join(entry.splits),
            inputs=entry.inputs,
            options=options | scored,
            paper_options=paper_options,
            paper_release=release,
            spec=spec,
            note="; ".join(filter(None, [*notes, _words(plan, entry, metric)])),
            command=plan.filled_by(f"{target}.csv", needs),
            score=None if needs else score,
            needs=needs,
            subset=plan.subset,
        )


def _words(plan: Plan, entry: Entry, metric: str) -> str:
    seen = entry.trained and metric not in SEGMENTS and plan.study_config["vocabulary"] == "released"
    return "the released vocabulary was counted on validation and test videos too" if seen else ""


def write_table(plan: Plan, target: str) -> None:
    """Write ``results/pss/<target>.csv`` and ``.md``."""
    rows = table_rows(plan, target)
    folder = Path("results", "pss")
    write_markdown(rows, folder / f"{target}.md", title=f"PSS: Table {target.removeprefix('table')}")
    write_csv(rows, folder / f"{target}.csv")
