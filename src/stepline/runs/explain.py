"""The origin of numbers, read only from outputs: a table or a score, the predictions and their record."""

import csv
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stepline import paths
from stepline.benchmark.plan import read_score
from stepline.errors import ConfigError, MissingError, StoreError
from stepline.invocation import Invocation, current
from stepline.io import sha256_file
from stepline.needs import Need, in_order
from stepline.printable import printable
from stepline.runs.record import read_record

Cells = Mapping[str, str]
Place = tuple[str, str, str, str]
"""Study, release, entry and context of a job."""
FILES = 5
"""The longest list of files that is printed."""
ENDS = 3
"""The number of videos with the lowest values, and with the highest, that a summary names."""
DEFINED = 9
"""The largest number of metrics that are printed with their definitions and summaries of single values."""
UNITS = "values are in percent, unless a title or definition names another unit; counts are whole numbers"
"""The second line of the text."""
COLUMNS = (
    *("table", "entry", "method", "context_s", "metric", "value", "paper", "release", "split", "inputs", "ci_low"),
    *("ci_high", "spec", "status", "note", "command"),
)
"""The columns of a table that are read."""


def explain(
    path: Path, entry: str = "", context: str = "", release: str = "", *, metric: str = "", videos: bool = False
) -> str:
    """Return, as text, the origin of the numbers of one entry at one window length on one release.

    path: a table, ``results/<study>/<file>.csv``, whose line the other arguments name (context: as in paths, such as
    ``180s``, or ``all``); or, without them, a score, ``results/<study>/scores/<release>/<entry>/<context>.json``.
    metric: the only metric to explain; all by default. videos: whether to list the value of each video, or of each
    other unit. Raises ConfigError if there is no such file, line or metric, MissingError if the line was not computed,
    StoreError if the table, a record, the score or the predictions are damaged.
    """
    place, lines = _line(path, entry, context, release, metric) if entry else (_place(path), [])
    scores = paths.scores(*place)
    if not scores.is_file():
        raise MissingError(f"{scores} does not exist: run `{current().command(str(scores), {})}`")
    record, score = _record(path, place), read_score(scores)
    if not (rows := lines or [_cells(name, result, place[3]) for name, result in score["metrics"].items()]):
        raise MissingError(f"{path} has no number; its job needs {', '.join(score['needs']) or 'nothing'}")
    rows = _of_metric(rows, metric, path, place[2])
    measured = {row["metric"]: score["metrics"].get(row["metric"], {}) for row in rows}
    of_table = f": {lines[0]['method']}, Table {lines[0]['table']} of {place[0]}" if lines else f" of {place[0]}"
    text = [f"{place[2]} on {place[1]} at {context or place[3]}{of_table}", UNITS, ""]
    short = len(measured) > DEFINED
    for name, result in measured.items():
        text += dict.fromkeys(_number(row, result, context) for row in rows if row["metric"] == name)
        text += [] if short else _measure(result)
    text += ["", *_made_by(place, record, score, rows), ""]
    if short:
        text.append(f"definitions and single values: name one of these {len(measured)} metrics with --metric")
    if not short or videos:
        text += ["single values:", *_by_video(measured, listed=videos)]
    return "\n".join(map(printable, text))


def _place(score: Path) -> Place:
    """Return the job of a score."""
    results, study, scores, release, entry, context = [*[""] * 6, *score.with_suffix("").parts][-6:]
    if (results, scores, score.suffix) != ("results", "scores", ".json"):
        raise ConfigError(
            f"{score} is no score: name results/STUDY/scores/RELEASE/ENTRY/CONTEXT.json, or a table and its line, "
            "results/STUDY/TABLE.csv ENTRY CONTEXT RELEASE"
        )
    return study, release, entry, context


def _of_metric(rows: Sequence[Cells], metric: str, path: Path, entry: str) -> Sequence[Cells]:
    """Return the rows of a metric, all if it is ""; raise ConfigError if there are none."""
    known = dict.fromkeys(row["metric"] for row in rows)
    if metric not in ("", *known):
        raise ConfigError(f"{path} has no metric {metric!r} of {entry}; its metrics are {', '.join(known)}")
    return [row for row in rows if metric in ("", row["metric"])]


def _cells(metric: str, result: Mapping[str, Any], context: str) -> Cells:
    """Return a number of a score in the form of a table's row."""
    low, high = (f"{bound:.4f}" for bound in result["ci"]) if result["ci"] else ("", "")
    value = {"value": f"{result['value']:.4f}", "ci_low": low, "ci_high": high}
    about = {"metric": metric, "split": result.get("split", ""), "context": context}
    return {**about, **value, "paper": "", "status": "", "note": ""}


def _line(table: Path, entry: str, context: str, release: str, metric: str) -> tuple[Place, Sequence[Cells]]:
    """Return the job of a line and the line's rows, of one metric if it is named."""
    study, rows = table.parent.name, _rows(table)
    lines: Sequence[Cells] = [row for row in rows if (row["entry"], row["release"]) == (entry, release)]
    if not lines:
        releases = sorted({row["release"] for row in rows if row["entry"] == entry})
        known = releases or sorted({row["entry"] for row in rows if row["entry"]})
        what = "releases are" if releases else "entries are"
        raise ConfigError(f"{table} has no line for {entry!r} on {release!r}; its {what} {', '.join(known)}")
    lines = _of_metric(lines, metric, table, entry)
    counted = any(row["value"] or row["status"] != "needs" for row in lines)
    if counted and not any(row["spec"] for row in lines):
        raise ConfigError(
            f"{entry} on {release} has no predictions: its numbers are the paper's, or counts of the release"
        )
    asked = [row for row in lines if row["context"] == context]
    predictions = paths.predictions(study, release, entry, context)
    for path in sorted(predictions.parent.glob("*.json")):
        spec = read_record(path)["spec"]  # a line may show at its window length the numbers of another job
        if path.stem == context or spec in {row["spec"] for row in asked}:
            shown = [row for row in lines if row["spec"] == spec]
            if shown := [row for row in shown if row in asked] or shown:
                return (study, release, entry, path.stem), shown
            break
    if predictions.exists():
        return (study, release, entry, context), lines
    if not asked:
        known = list(dict.fromkeys(row["context"] for row in lines))
        raise MissingError(
            f"{entry} on {release} at {context} has no line; choose a window length from {', '.join(known)}"
        )
    if not any(row["spec"] for row in asked):
        raise MissingError(f"{entry} on {release} at {context} was not computed: {_lacks(asked)}")
    raise MissingError(
        f"{predictions} does not exist: name the table in its own folder, results/STUDY, or run "
        f"`{current().command(str(table), {})}`"
    )


def _lacks(rows: Sequence[Cells]) -> str:
    """Return the needs of rows, each once, and one command that fills them all."""
    notes = (part for row in rows for part in row["note"].split("; ") if part.startswith("needs "))
    needs = in_order(Need.parse(need) for note in notes for need in note.removeprefix("needs ").split(", "))
    commands = sorted({row["command"] for row in rows} - {""}, key=lambda each: (-len(each), each))
    parts = [each.split(" && ") for each in commands]
    together = dict.fromkeys([step for steps in parts for step in steps[:-1]] + [steps[-1] for steps in parts])
    run = f"; run `{' && '.join(together)}`" if together else ""
    return f"it needs {', '.join(map(str, needs))}{run}"


def _rows(table: Path) -> list[dict[str, str]]:
    """Return the rows of a table, each with its window length as in paths under ``context``."""
    if not table.is_file():
        raise MissingError(
            f"{table} does not exist: run `{current().command(str(table), {})}`, or name the score of one line, "
            f"{table.parent}/scores/RELEASE/ENTRY/CONTEXT.json"
        )
    try:
        with open(table, newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file, strict=True)
            if lacking := [each for each in COLUMNS if each not in (rows.fieldnames or ())]:
                raise ConfigError(
                    f"{table} has no column {lacking[0]}, so its lines name no predictions: name a table such as "
                    "results/pss/table1.csv, or a score"
                )
            return [_row(row) for row in rows]
    except (ValueError, csv.Error) as error:
        raise StoreError(f"{table} is damaged ({error}): remove it and run the same again") from None


def _row(row: dict[str, str]) -> dict[str, str]:
    if None in (*row, *row.values()):
        raise ValueError("a line has more or fewer cells than the head")
    return row | {"context": paths.context_label(float(row["context_s"]) if row["context_s"] else None)}


def _record(result: Path, place: Place) -> dict[str, Any]:
    predictions = paths.predictions(*place)
    if not predictions.with_suffix(".json").exists():
        again = current().command(str(result), {}, "--forcerun", str(predictions))
        of_job = "{2} on {1} at {3}".format(*place)
        raise MissingError(f"{of_job} has predictions without a record: compute them again with `{again}`")
    return read_record(predictions.with_suffix(".json"))


def _number(row: Cells, result: Mapping[str, Any], context: str) -> str:
    """Return a number, beside the paper's. context: the named one; a paper's number for another one says which."""
    cells = [row["value"], row["ci_low"], row["ci_high"]]
    if result and cells[0] == f"{result['value']:.4f}":
        cells = [_digits(each) for each in (result["value"], *(result["ci"] or ()))]
    value, *interval = [each for each in cells if each] or ["no value"]
    if interval:
        over = f" over {result['units']}" if "units" in result else ""
        value += f", 95 % interval {' to '.join(interval)}{over}"
    paper = f"the paper prints {row['paper']}" if row["paper"] else ""
    status = row["status"] if row["status"] != "needs" else ""
    said = "; ".join(filter(None, [value, ": ".join(filter(None, [paper, status])), row["note"]]))
    at = f" at {row['context']}" if paper and row["context"] != context else ""
    return f"{row['metric']} on {row['split']}{at}: {said}"


def _digits(value: float) -> str:
    """Return a value with four decimals, or with four digits if it is small."""
    return f"{value:.4f}" if abs(value) >= 0.1 or not value else f"{value:.4g}"


def _measure(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was measured; nothing if there is no value."""
    if result:
        about = [f"{key}={json.dumps(value)}" for key, value in result.get("options", {}).items()]
        about += [f"{n} {key.removeprefix('n_').replace('_', ' ')}" for key, n in result.items() if isinstance(n, int)]
        if len(seeds := result["seeds"]) > 1:
            about.append(
                "seeds " + ", ".join(f"{s}: {_digits(v)}" for s, v in zip(seeds, result["per_seed"], strict=True))
            )
        yield f"  {result.get('title', '')}: {result.get('definition') or 'no definition'} ({'; '.join(about)})"


def _made_by(place: Place, record: Mapping[str, Any], score: Mapping[str, Any], rows: Sequence[Cells]) -> Iterator[str]:
    predictions, scores = paths.predictions(*place), paths.scores(*place)
    yield f"spec {record['spec']}: {json.dumps(record['record'], sort_keys=True, ensure_ascii=False)}"
    yield f"options: {json.dumps(record['options'], sort_keys=True, ensure_ascii=False)}"
    yield from (f"sees: {row['inputs'] or 'nothing'}" for row in rows[:1] if "inputs" in row)
    yield f"predictions: {predictions}, {_columns(predictions)}"
    drawn = score.get("bootstrap") if any(row["ci_low"] for row in rows) else None
    intervals = f"intervals by bootstrap, {drawn['samples']} samples, seed {drawn['seed']}" if drawn else ""
    yield "; ".join(filter(None, [f"scores: {scores}{_source(score)}", intervals, score.get("selection")]))
    yield f"method: {record['method']['module']}{_source(record['method'])}"
    version, commit = record["stepline"]["version"], record["stepline"]["commit"]
    yield f"predicted by Stepline {version}{f' at commit {commit}' if commit else ', no commit on record'}"
    yield "versions: " + ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    for name, release in record["releases"].items():
        yield f"release {name}: {release['origin'] or 'no public URL'}"
    folder = Path("datasets", place[0])
    of_releases = {
        str(folder / name / file): sha256
        for name, release in record["releases"].items()
        for file, sha256 in release["files"].items()
    }
    yield f"files of releases in {folder}, with their sha256:"
    yield from _files(of_releases, {}, predictions)
    yield "inputs, with their sha256 at that time and their state now:"
    now = {name: sha256_file(name) if Path(name).is_file() else "" for name in record["inputs"]}
    changed = {name: "changed since" if now[name] else "deleted" for name in now if now[name] != record["inputs"][name]}
    yield from _files(record["inputs"], changed, predictions)
    started = Invocation(**record["invocation"])
    yield f"to compute it again: {started.command(str(scores), {}, '--forcerun', str(predictions))}"
    if dataset := score.get("shown_in"):
        words = "--entry", place[2], "--release", place[1], "--context", place[3]
        yield f"to see one video over time: {started.verb('show', dataset, 'VIDEO', *words)}"


def _source(made: Mapping[str, Any]) -> str:
    accepted = f", the same as {made['accepted']}" if "accepted" in made else ""
    return f", source {made['source']}{accepted}" if "source" in made else ""


def _columns(predictions: Path) -> str:
    if not predictions.is_file():
        return "deleted"
    try:
        metadata = pq.read_metadata(predictions)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{predictions} is damaged ({error}): remove it and run the same again") from None
    return f"{metadata.num_rows} rows of {', '.join(metadata.schema.to_arrow_schema().names)}"


def _files(sha256: Mapping[str, str], changed: Mapping[str, str], predictions: Path) -> Iterator[str]:
    """Yield a line for each file; of many files, one line for all, and one for each of the first that have changed."""
    lines = {name: f"{digest}  {name}" for name, digest in sha256.items()}
    named = [*lines]
    if len(lines) > FILES:
        together = hashlib.sha256("".join(f"{line}\n" for line in lines.values()).encode()).hexdigest()
        state = f", of which {len(changed)} were changed or deleted since" if changed else ""
        yield f"  {together}  the list of {len(lines)} files{state}: {predictions.with_suffix('.json')}"
        named = [*changed][:FILES]
    yield from (f"  {lines[name]}{f'  ({changed[name]})' if name in changed else ''}" for name in named)


def _by_video(measured: Mapping[str, Mapping[str, Any]], *, listed: bool) -> Iterator[str]:
    for metric, result in measured.items():
        if not (values := result.get("per_video")):
            continue
        weights = result["weights"]
        total = math.fsum(weights.values()) or 1
        mean = math.fsum(value * weights[video] for video, value in values.items()) / total
        least, most = (100 * bound(weights.values()) / total for bound in (min, max))
        count = f"each counts {least:.2f}{f' to {most:.2f}' if most > least else ''} %"
        said = "the value" if math.isclose(mean, result["value"], abs_tol=1e-6) else f"{_digits(mean)}, not the value,"
        ranked = sorted(values, key=values.__getitem__)
        ends = {"lowest": ranked[:ENDS], "highest": ranked[: -ENDS - 1 : -1]}
        named = (f"{end} {', '.join(f'{each} {_digits(values[each])}' for each in ends[end])}" for end in ends)
        number = f"{len(values)} {result.get('units', 'units')}"
        yield f"  {metric}: {said} is the mean of {number}, {count}; {'; '.join(named)}"
        if listed:
            yield from (
                f"    {each}  {_digits(values[each])}  counts {100 * weights[each] / total:.2f} %" for each in values
            )
