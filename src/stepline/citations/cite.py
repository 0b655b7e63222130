"""The works that a table uses, from the records of its predictions or, before there are any, the configuration."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.benchmark import Benchmark
from stepline.citations.works import Work, backbones, metrics, references, work, works
from stepline.config import Config, load
from stepline.errors import ConfigError
from stepline.plans import BENCHMARKS, benchmark, has_tables, pipeline, plan
from stepline.runs.record import read_record

Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Citation:
    """The works that a target uses. said: a sentence that names their source. entries: BibTeX of their references."""

    said: str
    works: Sequence[Work]
    entries: Sequence[str]


def cite(target: str, configfile: Path | None = None) -> Citation:
    """Return the works that a table, a study or a data set uses.

    target: ``results/<study>/<table>.csv``, or the name of a study or data set, which means all its tables and pages.
    Raises ConfigError if it is neither, StoreError if a record is damaged.
    """
    name, table = _parts(target)
    rows = [row for path in _tables(name, table) for row in _rows(path)]
    computed = [row for row in rows if row["spec"] and row["value"]]
    if computed:
        said = f"from the records of {len(computed)} of its {len(rows)} numbers"
        used = list(_recorded(name, computed, configfile))
    else:
        said, config = "from the configuration, as nothing is computed yet", load(configfile)
        if has_tables(config, name):
            used = list(_configured(plan(config, name), table))
        else:
            said, used = "from the configuration", list(_dataset(config, name))
    used = list(dict.fromkeys([*used, *(work("tool", "tools", tool) for tool in ("snakemake", "numpy"))]))
    keys = dict.fromkeys(["stepline", *(key for each in used for key in each.cite)])
    return Citation(f"Works that {target} uses, {said}.", [work("tool", "tools", "stepline"), *used], _entries(keys))


def _parts(target: str) -> tuple[str, str]:
    """Return the name of a study or data set, and the name of a table, "" for all tables."""
    parts = Path(target).parts
    if len(parts) == 3 and parts[0] == "results":
        return parts[1], "" if Path(target).stem == "report" else Path(target).stem
    if len(parts) == 1:
        return target, ""
    raise ConfigError(f"{target!r} is not a table: name results/STUDY/TABLE.csv, a study, or a data set")


def _tables(study: str, table: str) -> list[Path]:
    folder = Path("results", study)
    found = [folder / f"{table}.csv"] if table else sorted(folder.glob("*.csv"))
    return [path for path in found if path.is_file()]


def _rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return rows if rows and {"entry", "release", "metric", "value", "spec"} <= rows[0].keys() else []


def _entries(keys: Iterable[str]) -> list[str]:
    return [references()[key] for key in keys]


# From records


def _recorded(study: str, rows: Rows, configfile: Path | None) -> Iterator[Work]:
    packaged = [each for each in BENCHMARKS if study in each.studies]
    made = packaged[0] if packaged else benchmark(load(configfile), study)
    yield _benchmark(made, study)
    specs = {row["spec"] for row in rows}
    for entry, release in dict.fromkeys((row["entry"], row["release"]) for row in rows):
        yield _data(made, study, release)
        for path in sorted(paths.predictions(study, release, entry, "all").parent.glob("*.json")):
            record = read_record(path)
            if record["spec"] in specs:
                yield from (_data(made, study, each) for each in record["releases"])
                yield from _method(made, record["record"]["kind"])
                yield from _named(record["record"], trained=any("/fits/" in name for name in record["inputs"]))
    for metric in dict.fromkeys(row["metric"] for row in rows):
        yield from metrics(metric)


def _named(record: Any, *, trained: bool) -> Iterator[Work]:
    """Yield the networks, recognisers, imported features and language models that a record names."""
    found = list(_walk(record))
    yield from found
    if trained or any(each.role == "backbone" and each.name != "histogram" for each in found):
        yield work("tool", "tools", "torch")


def _walk(record: Any) -> Iterator[Work]:
    if isinstance(record, str):
        yield from backbones(record)
        if record in works()["recognisers"]:
            yield work("recogniser", "recognisers", record)
    elif isinstance(record, Mapping):
        if "files_sha256" in record:
            yield Work("features", str(record["name"]), (), "imported: cite their source")
        if "url" in record and "model" in record:
            yield Work("language model", str(record["model"]), (), "terms of its service")
        for each in record.values():
            yield from _walk(each)
    elif isinstance(record, list | tuple):
        for each in record:
            yield from _walk(each)


# From the configuration


def _configured(made: Benchmark[Any], table: str) -> Iterator[Work]:
    if table:
        made.check_table(table)
    yield _benchmark(type(made), made.name)
    for shown, line, release in made.lines(table or None):
        if made.is_reference(line):
            continue
        entry = made.entries[line.entry]
        yield _data(type(made), made.name, release)
        if entry.kind.method:
            yield from _method(type(made), entry.kind_name)
            names = [*map(str, made.features(entry)), getattr(entry, "encoder", "")]
            yield from _named([entry.record, names], trained=entry.trained)
        yield from (each for metric in shown.metrics for each in metrics(metric))
    if made.options.get("transcripts") == "asr":
        yield work("recogniser", "recognisers", made.config["asr"]["engine"])


def _dataset(config: Config, name: str) -> Iterator[Work]:
    made = pipeline(config, name)
    yield work("data set", "datasets", name)
    yield from _named(list(made.features.configured), trained=False)
    if "speech" in made.demand.stages:
        yield work("recogniser", "recognisers", made.speech.engine)


# Shared


def _benchmark(made: type[Benchmark[Any]], study: str) -> Work:
    known = study if study in works()["benchmarks"] else made.studies[0] if made in BENCHMARKS else study
    found = work("benchmark", "benchmarks", known)
    return Work(found.role, study, found.cite, found.licence)


def _data(made: type[Benchmark[Any]], study: str, release: str) -> Work:
    name = release if release in made.datasets else next(iter(made.datasets), study)
    return work("data set", "datasets", name)


def _method(made: type[Benchmark[Any]], kind: str) -> Iterator[Work]:
    name = f"{made.studies[0]}/{kind}"
    if name in works()["methods"]:
        yield work("method", "methods", name)
