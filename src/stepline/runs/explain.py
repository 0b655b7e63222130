"""The provenance of one line of a table, read only from outputs: the table, the score and the record."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.benchmark.plan import read_score
from stepline.errors import ConfigError, MissingError
from stepline.invocation import Invocation, current
from stepline.io import sha256_file
from stepline.printable import printable
from stepline.runs.record import read_record

Cells = Mapping[str, str]


def explain(table: Path, entry: str, context: str, release: str) -> str:
    """Return, as text, the provenance of the numbers of one entry at one window length on one release.

    table: ``results/<study>/<file>.csv``. context: as in paths, such as ``180s``, or ``all``. Raises ConfigError if the
    table has no such line, MissingError if the line was not computed, StoreError if a record or the score is damaged.
    """
    study = table.parent.name
    rows = _rows(table)
    lines = [row for row in rows if (row["entry"], row["release"]) == (entry, release)]
    if not lines:
        releases = sorted({row["release"] for row in rows if row["entry"] == entry})
        known = releases or sorted({row["entry"] for row in rows if row["entry"]})
        what = "releases are" if releases else "entries are"
        raise ConfigError(f"{table} has no line for {entry!r} on {release!r}; its {what} {', '.join(known)}")
    if not any(row["spec"] or row["status"] == "needs" for row in lines):
        raise ConfigError(
            f"{entry} on {release} has no predictions: its numbers are the paper's, or counts of the release"
        )
    record = _record(study, release, entry, context, lines)
    shown = [row for row in lines if row["spec"] == record["spec"]] if record else []
    shown = [row for row in shown if _context(row) == context] or shown
    if record is None or not shown:
        raise MissingError(f"{entry} on {release} at {context} {_why(study, table, release, entry, context, lines)}")
    score = paths.scores(study, release, entry, record["context"])
    text = [f"{entry} on {release} at {context}: {shown[0]['method']}, Table {shown[0]['table']} of {study}", ""]
    metrics = read_score(score)["metrics"]
    for row in shown:
        text += [*_number(row), *_videos(metrics.get(row["metric"], {})), ""]
    return "\n".join(map(printable, [*text, *_made_by(study, table, release, entry, record)]))


def _rows(table: Path) -> list[dict[str, str]]:
    if not table.is_file():
        raise MissingError(f"{table} does not exist: run `snakemake --cores 8 {table}`")
    with open(table, newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        if not {"entry", "release"} <= {*(rows.fieldnames or ())}:
            raise ConfigError(f"{table} has no entries: name a table of a study, such as results/pss/table1.csv")
        return list(rows)


def _context(row: Cells) -> str:
    return paths.context_label(float(row["context_s"]) if row["context_s"] else None)


def _record(study: str, release: str, entry: str, context: str, lines: Sequence[Cells]) -> dict[str, Any] | None:
    """Return the record of the job with this window length, or of the job whose numbers a line shows at this length."""
    specs = {row["spec"] for row in lines if _context(row) == context}
    for path in sorted(paths.predictions(study, release, entry, context).parent.glob("*.json")):
        found = read_record(path)
        if path.stem == context or found["spec"] in specs:
            return {**found, "context": path.stem}
    return None


def _why(study: str, table: Path, release: str, entry: str, context: str, lines: Sequence[Cells]) -> str:
    if said := dict.fromkeys(f"{row['note']}: {row['command']}" for row in lines if row["status"] == "needs"):
        return f"was not computed: {'; '.join(said)}"
    predictions = paths.predictions(study, release, entry, context)
    if not predictions.exists():
        return f"has no line; choose a window length from {', '.join(dict.fromkeys(map(_context, lines)))}"
    again = "--forcerun", str(predictions)
    return f"has predictions without a record: compute them again with `{current().command(str(table), {}, *again)}`"


def _number(row: Cells) -> Iterator[str]:
    interval = f", 95 % interval {row['ci_low']} to {row['ci_high']}" if row["ci_low"] else ""
    yield f"{row['metric']} on {row['split']}: {row['value'] or 'no value'}{interval}"
    paper = f"the paper prints {row['paper']}: " if row["paper"] else ""
    note = row["note"] if row["status"] == "needs" else ": ".join(filter(None, (row["status"], row["note"])))
    yield f"  {paper}{note}"
    keys = ("n_videos", "n_listed", "n_in_part", "n_samples", "n_queries")
    counts = ", ".join(f"{row[key]} {key.removeprefix('n_').replace('_', ' ')}" for key in keys if row.get(key))
    sees = f"options: {row['options'] or 'none'}; sees: {row['inputs'] or 'nothing'}"
    yield f"  {'; '.join(filter(None, (sees, counts)))}"


def _videos(metric: Mapping[str, Any]) -> Iterator[str]:
    weights = metric.get("weights", {})
    total = sum(weights.values()) or 1
    for video, value in metric.get("per_video", {}).items():
        yield f"  {video}  {value:.4f}  counts {100 * weights[video] / total:.2f} %"


def _made_by(study: str, table: Path, release: str, entry: str, record: Mapping[str, Any]) -> Iterator[str]:
    place = study, release, entry, record["context"]
    yield f"spec {record['spec']}: {json.dumps(record['record'], sort_keys=True, ensure_ascii=False)}"
    yield f"options: {json.dumps(record['options'], sort_keys=True, ensure_ascii=False)}"
    accepted = f", the same as {record['method']['accepted']}" if "accepted" in record["method"] else ""
    yield f"method: {record['method']['module']}, source {record['method']['source']}{accepted}"
    yield f"Stepline {record['stepline']['version']} at commit {record['stepline']['commit'] or 'unknown'}"
    yield "versions: " + ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    for name, release_files in record["releases"].items():
        yield f"release {name}: {release_files['origin'] or 'no public URL'}"
        yield from (f"  {sha256}  {path}" for path, sha256 in release_files["files"].items())
    yield f"samples: each row of {paths.predictions(*place)}, scored in {paths.scores(*place)}"
    yield "inputs, with their sha256 at that time and their state now:"
    for name, sha256 in record["inputs"].items():
        now = sha256_file(name) if Path(name).is_file() else ""
        yield f"  {sha256}  {name}{'' if now == sha256 else '  (changed since)' if now else '  (deleted)'}"
    started = Invocation(**record["invocation"])
    yield "to compute the number again:"
    yield f"  {started.command(str(table), {}, '--forcerun', str(paths.predictions(*place)))}"
