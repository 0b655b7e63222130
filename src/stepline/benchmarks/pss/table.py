"""Tables 1 to 4: declared lines, scores and the paper's numbers -> CSV, Markdown and report."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.benchmarks.pss.entries import Entry
from stepline.benchmarks.pss.plan import METEOR_WANTED, Job, Plan
from stepline.benchmarks.pss.score import METEOR
from stepline.declared import TableLine
from stepline.errors import StoreError
from stepline.footage import is_backbone
from stepline.io import read_json
from stepline.pipeline import how_to_fill
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
        path = paths.scores("pss", release, entry.id, job.context)
        score, spec = _score(path, release), plan.spec(job)
        lacking = tuple(score["needs"])
        notes += [
            f"imported files: {plan.footage[release].features_folders(source)[0].parent.parent}"
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
            command=filled_by(f"{target}.csv", needs),
            score=None if needs else score,
            needs=needs,
            subset=_subset(plan),
        )


def _score(path: Path, release: str) -> dict[str, Any]:
    """Return a score; one that is absent waits for the release: it was fetched after the run had listed its jobs."""
    score = read_json(path) if path.exists() else {"needs": [f"release:pss/{release}"], "metrics": {}}
    if not isinstance(score, dict) or not {"needs", "metrics"} <= score.keys():
        raise StoreError(f"{path} is no score: remove it and run the same again")
    return score


def _words(plan: Plan, entry: Entry, metric: str) -> str:
    seen = entry.trained and metric not in SEGMENTS and plan.study_config["vocabulary"] == "released"
    return "the released vocabulary was counted on validation and test videos too" if seen else ""


def _subset(plan: Plan) -> str:
    chosen = plan.study_config["subset"]
    return f"{chosen['fraction']:g} of each split, seed {chosen['seed']}" if chosen else ""


def filled_by(file: str, lacking: tuple[str, ...]) -> str:
    """Return the commands that bring what is lacking and make a file of ``results/pss`` again; "" of nothing."""
    if not lacking:
        return ""
    steps = dict.fromkeys(filter(None, map(_how_to_fill, lacking)))
    run = f"snakemake --cores 8 results/pss/{file}"
    if METEOR_WANTED in lacking:
        run += " --config 'pss={metrics: {meteor: true}}'"
    return " && ".join([*steps, run])


def _how_to_fill(item: str) -> str:
    kind, _, what = item.partition(":")
    if kind == "features":
        name, _, dataset = what.partition("/")
        return f"stepline bank import FOLDER --name {name} --dataset {dataset} --hop-s 1"
    commands = {
        "release": f"stepline fetch {what}",
        "java": "apt install default-jre-headless",
        "videos": "cp VIDEOS/*.mp4 $STEPLINE_MIRROR/tasty/videos/" if what == "tasty" else "",
    }
    return commands.get(kind, "") or how_to_fill(item)


def write_table(plan: Plan, target: str) -> None:
    """Write ``results/pss/<target>.csv`` and ``.md``."""
    rows = table_rows(plan, target)
    folder = Path("results", "pss")
    write_markdown(rows, folder / f"{target}.md", title=f"PSS: Table {target.removeprefix('table')}")
    write_csv(rows, folder / f"{target}.csv")
