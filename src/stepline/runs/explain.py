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
"""The largest number of metrics that are printed with their definitions and summaries by video."""


def explain(
    path: Path, entry: str = "", context: str = "", release: str = "", *, metric: str = "", videos: bool = False
) -> str:
    """Return, as text, the origin of the numbers of one entry at one window length on one release.

    path: a table, ``results/<study>/<file>.csv``, whose line the other arguments name (context: as in paths, such as
    ``180s``, or ``all``); or, without them, a score, ``results/<study>/scores/<release>/<entry>/<context>.json``.
    metric: the only metric to explain; all by default. videos: whether to list the value of each video. Raises
    ConfigError if there is no such file, line or metric, MissingError if the line was not computed, StoreError if a
    record, the score or the predictions are damaged.
    """
    place, lines = _line(path, entry, context, release) if entry else (_place(path), [])
    record, score = _record(path, place), read_score(paths.scores(*place))
    if not (rows := lines or [_cells(name, result) for name, result in score["metrics"].items()]):
        raise MissingError(f"{path} has no number; its job needs {', '.join(score['needs']) or 'nothing'}")
    if metric and not any(row["metric"] == metric for row in rows):
        known = ", ".join(dict.fromkeys(row["metric"] for row in rows)) or "none"
        raise ConfigError(f"{path} has no metric {metric!r} of {place[2]}; its metrics are {known}")
    rows = [row for row in rows if metric in ("", row["metric"])]
    measured = {row["metric"]: score["metrics"].get(row["metric"], {}) for row in rows}
    of_table = f": {lines[0]['method']}, Table {lines[0]['table']} of {place[0]}" if lines else f" of {place[0]}"
    text = [f"{place[2]} on {place[1]} at {context or place[3]}{of_table}", ""]
    short = len(rows) > DEFINED
    for row in rows:
        text += [_number(row), *([] if short else _measure(measured[row["metric"]]))]
    text += ["", *_made_by(place, record, score, lines), ""]
    if short:
        text.append(f"definitions, and values by video: name one of these {len(rows)} metrics with --metric")
    if not short or videos:
        text += ["by video:", *_by_video(measured, listed=videos)]
    return "\n".join(map(printable, text))


def _place(score: Path) -> Place:
    """Return the job of a score."""
    results, study, scores, release, entry, context = [*[""] * 6, *score.with_suffix("").parts][-6:]
    if (results, scores, score.suffix) != ("results", "scores", ".json"):
        raise ConfigError(
            f"{score} is no score: name results/STUDY/scores/RELEASE/ENTRY/CONTEXT.json, or a table and its line, "
            "results/STUDY/TABLE.csv ENTRY CONTEXT RELEASE"
        )
    if not score.is_file():
        raise MissingError(f"{score} does not exist: run `{current().command(str(score), {})}`")
    return study, release, entry, context


def _cells(metric: str, result: Mapping[str, Any]) -> Cells:
    """Return a number of a score in the form of a table's row."""
    low, high = (f"{bound:.4f}" for bound in result["ci"]) if result["ci"] else ("", "")
    value = {"value": f"{result['value']:.4f}", "ci_low": low, "ci_high": high}
    return {"metric": metric, "split": result.get("split", ""), **value, "paper": "", "status": "", "note": ""}


def _line(table: Path, entry: str, context: str, release: str) -> tuple[Place, Sequence[Cells]]:
    """Return the job of a line and the line's rows."""
    study, rows = table.parent.name, _rows(table)
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
    specs = {row["spec"] for row in lines if _context(row) == context}
    for path in sorted(paths.predictions(study, release, entry, context).parent.glob("*.json")):
        spec = read_record(path)["spec"]  # a line may show at its window length the numbers of another job
        if path.stem == context or spec in specs:
            shown = [row for row in lines if row["spec"] == spec]
            if shown := [row for row in shown if _context(row) == context] or shown:
                return (study, release, entry, path.stem), shown
            break
    if said := dict.fromkeys(f"{row['note']}: {row['command']}" for row in lines if row["status"] == "needs"):
        raise MissingError(f"{entry} on {release} at {context} was not computed: {'; '.join(said)}")
    if not paths.predictions(study, release, entry, context).exists():
        known = list(dict.fromkeys(map(_context, lines)))
        raise MissingError(
            f"{entry} on {release} at {context} has no line; choose a window length from {', '.join(known)}"
        )
    return (study, release, entry, context), lines


def _rows(table: Path) -> list[dict[str, str]]:
    if not table.is_file():
        raise MissingError(
            f"{table} does not exist: run `{current().command(str(table), {})}`, or name the score of one line, "
            f"{table.parent}/scores/RELEASE/ENTRY/CONTEXT.json"
        )
    with open(table, newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        if not {"entry", "release"} <= {*(rows.fieldnames or ())}:
            raise ConfigError(f"{table} has no entries: name a table of a study, such as results/pss/table1.csv")
        return list(rows)


def _context(row: Cells) -> str:
    return paths.context_label(float(row["context_s"]) if row["context_s"] else None)


def _record(result: Path, place: Place) -> dict[str, Any]:
    predictions = paths.predictions(*place)
    if not predictions.with_suffix(".json").exists():
        again = current().command(str(result), {}, "--forcerun", str(predictions))
        of_job = "{2} on {1} at {3}".format(*place)
        raise MissingError(f"{of_job} has predictions without a record: compute them again with `{again}`")
    return read_record(predictions.with_suffix(".json"))


def _number(row: Cells) -> str:
    """Return a number, beside the paper's."""
    value = row["value"] or "no value"
    value += f", 95 % interval {row['ci_low']} to {row['ci_high']}" if row["ci_low"] else ""
    paper = f"the paper prints {row['paper']}" if row["paper"] else ""
    status = row["status"] if row["status"] != "needs" else ""
    said = "; ".join(filter(None, [value, ": ".join(filter(None, [paper, status])), row["note"]]))
    return f"{row['metric']} on {row['split']}: {said}"


def _measure(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was measured; nothing if there is no value."""
    if result:
        about = [f"{key}={json.dumps(value)}" for key, value in result.get("options", {}).items()]
        about += [f"{n} {key.removeprefix('n_').replace('_', ' ')}" for key, n in result.items() if isinstance(n, int)]
        if len(seeds := result["seeds"]) > 1:
            about.append("seeds " + ", ".join(f"{s}: {v:.4f}" for s, v in zip(seeds, result["per_seed"], strict=True)))
        yield f"  {result.get('title', '')}: {result.get('definition') or 'no definition'} ({'; '.join(about)})"


def _made_by(
    place: Place, record: Mapping[str, Any], score: Mapping[str, Any], lines: Sequence[Cells]
) -> Iterator[str]:
    predictions, scores = paths.predictions(*place), paths.scores(*place)
    yield f"spec {record['spec']}: {json.dumps(record['record'], sort_keys=True, ensure_ascii=False)}"
    yield f"options: {json.dumps(record['options'], sort_keys=True, ensure_ascii=False)}"
    yield from (f"sees: {row['inputs'] or 'nothing'}" for row in lines[:1])
    yield f"predictions: {predictions}, {_columns(predictions)}"
    drawn = score.get("bootstrap")
    intervals = f"intervals by bootstrap over videos, {drawn['samples']} samples, seed {drawn['seed']}" if drawn else ""
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
        units = "videos" if result["n_videos"] == len(values) else "units"
        least, most = (100 * bound(weights.values()) / total for bound in (min, max))
        count = f"each counts {least:.2f}{f' to {most:.2f}' if most > least else ''} %"
        said = "the value" if math.isclose(mean, result["value"], abs_tol=1e-6) else f"{mean:.4f}, not the value,"
        ranked = sorted(values, key=values.__getitem__)
        ends = {"lowest": ranked[:ENDS], "highest": ranked[: -ENDS - 1 : -1]}
        named = (f"{end} {', '.join(f'{each} {values[each]:.4f}' for each in ends[end])}" for end in ends)
        yield f"  {metric}: {said} is the mean of {len(values)} {units}, {count}; {'; '.join(named)}"
        if listed:
            yield from (
                f"    {each}  {values[each]:.4f}  counts {100 * weights[each] / total:.2f} %" for each in values
            )
