"""Write the reproduction ledger, reproduction.csv and reproduction.md, from the tables of a finished run.

    snakemake --cores 8 --config 'spacewalk={releases: [v0], text_encoders: [mpnet]}'
    python docs/reproduction.py FOLDER

FOLDER is where the first command ran: it holds ``results/`` with the tables of all five studies. The release v0 is that
of the paper's numbers. The totals in README.md are updated too.
"""

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from itertools import groupby
from pathlib import Path
from typing import get_args

from stepline.config import validate
from stepline.io import csv_text, write_text
from stepline.plans import BENCHMARKS
from stepline.tables.files import markdown_table
from stepline.tables.status import MARKS, MEANINGS, Status

ROOT = Path(__file__).parents[1]
LEDGER = ROOT / "docs/reproduction.csv"
MEASURED = ROOT / "docs/parity.csv"
"""The number of outputs of each network that are compared with the reference's, and an error that none exceeds."""
PAPER_FILES = ROOT / "src/stepline/benchmarks"
PAPERS = {
    "spacewalk": ("Spacewalk-18", ["table2", "table3", "tableA6", "tableA7", "tableA8"]),
    "hirest": ("HiREST", ["table1", "table2", "table3", "table4", "table5", "table6"]),
    "htstep": ("HT-Step", ["table1", "table2", "table2c", "table3", "table4", "table5", "table6"]),
    "oepp": ("OEPP", ["table1", "table2", "table3", "table4", "table5", "table6", "table7", "table8"]),
    "pss": ("PSS", ["table1", "table2", "table3", "table4"]),
}
"""Study -> its title, and its tables in the form of ``stepline.tables``."""
PLANS = {each.studies[0]: each.configured(validate({each.studies[0]: {}}), each.studies[0]) for each in BENCHMARKS}
NOT_LISTED = {
    "spacewalk": "Table 1, which compares data sets and is not legible in the text used here; Tables A2 to A4, which "
    "print the steps of three recordings; one number of Table A7 (InternVideo at 5 min), which is not legible either.",
    "hirest": "the rows of other data sets in Table 1; the ten differences in brackets in Table 6.",
    "htstep": "the rows of other data sets in Table 1.",
    "oepp": "the rows of other data sets in Table 1.",
    "pss": "the standard deviations after ± in Tables 2 to 4, from which tolerances follow.",
}
"""What a paper prints in tables that is not in the ledger."""
ORDER: tuple[Status, ...] = (
    "exact", "within", "inconclusive", "differs", "inconsistent", "not comparable", "reference", "needs",
)  # fmt: skip
"""Of one printed number on several releases, the first status counts. ``ours`` has no printed number."""
COMPUTED = {"exact", "within", "inconclusive", "differs", "inconsistent", "not comparable"}
ABOUT = ("statistics or labels", "blind baselines", "methods")
"""What computed numbers are of: the data set, methods that see no content, or other methods."""
KEY = ("table", "method", "modality", "setting", "context_s", "metric", "split")
"""The columns that identify a number, in the papers' files too."""


@dataclass(frozen=True)
class Listed:
    """A number of the ledger. ours: "" if there is no value. evidence: what the status rests on.

    source: ``printed`` in a table of the paper; ``repeated``, a further line for the same printed cell, which the
    paper's file marks in a column of that name; ``elsewhere``, only in another source. about: one of
    ``ABOUT`` if it is computed.
    """

    study: str
    table: str
    method: str
    modality: str
    setting: str
    context_s: str
    metric: str
    split: str
    release: str
    entry: str
    paper: str
    ours: str
    difference: str
    status: str
    evidence: str
    source: str = "printed"
    about: str = ""


def ledger(folder: Path) -> list[Listed]:
    """Return every number with its status in a finished run."""
    found: list[Listed] = []
    for study in PAPERS:
        results = folder / "results" / study
        found += [*_of_study(results, study), *(OTHERS[study](results) if study in OTHERS else ())]
    return [replace(number, about=about(number)) if number.ours else number for number in found]


def about(number: Listed) -> str:
    """Return what a computed number is about, as declared: a blind baseline has the kind of an entry named as blind."""
    plan = PLANS[number.study]
    entry = plan.entries.get(number.entry)
    if entry is None or entry.kind.method is None:
        return "statistics or labels"
    blind = plan.entries.get(plan.blind(entry, number.metric))
    return "blind baselines" if blind and entry.kind is blind.kind else "methods"


def _of_study(folder: Path, study: str) -> Iterator[Listed]:
    for file in PAPERS[study][1]:
        paper = _rows(PAPER_FILES / study / "paper" / f"{file}.csv")
        repeated = {tuple(line[name] for name in KEY) for line in paper if line.get("repeated") == "true"}
        length = 9 if "release" in paper[0] else 8  # the fields of `Listed` that identify a number
        found: dict[tuple[str, ...], Listed] = {}
        for row in _rows(folder / f"{file}.csv"):
            if row["paper"] or row["rerun"]:
                number = _number(study, row, tuple(row[name] for name in KEY) in repeated)
                key = astuple(number)[:length]
                if key not in found or _rank(number) < _rank(found[key]):
                    found[key] = number
        yield from found.values()


def _spacewalk(folder: Path) -> Iterator[Listed]:
    for row in _rows(folder / "tableA1.csv"):
        given = [row["recording"], "", "", "", "duration", row["split"], "", ""]
        values = [row["paper"], row["duration"], row["difference_s"], row["status"], ""]
        yield Listed("spacewalk", "A1", *given, *values)
    listed: set[tuple[str, str]] = set()
    for row in _rows(folder / "tableA5.csv"):  # the release on which the paper's numbers were computed comes first
        if row["paper_s"] and (row["dataset"], row["measure"]) not in listed:
            listed.add((row["dataset"], row["measure"]))
            given = [row["dataset"], "", "", "", row["measure"], "", row["release"], ""]
            values = [row["paper_s"], row["value_s"], row["difference_s"], row["status"], row["note"]]
            yield Listed("spacewalk", "A5", *given, *values)


def _htstep(folder: Path) -> Iterator[Listed]:
    for row in _rows(folder / "table7.csv"):
        if row["reading"] == "official" and row["paper"]:
            given = [row["entry"], "", row["activity"], "", "ap", row["split"], "", row["entry"]]
            values = [row["paper"], row["value"], "", "not comparable" if row["value"] else "needs"]
            yield Listed("htstep", "7", *given, *values, row["note"])


def _oepp(folder: Path) -> Iterator[Listed]:
    for row in _rows(folder / "table9.csv"):
        given = [row["event"], "", "", "", "cluster", row["part"], "", ""]
        ours = row["cluster"] if row["status"] == "exact" else ""
        yield Listed("oepp", "9", *given, row["cluster"], ours, "", row["status"], "")
    for row in _rows(folder / "table10.csv"):
        given = [f"{row['event']}: {row['action_label']}", "", "", "", "new label", "", "", ""]
        ours = row["new_action_label"] if row["status"] == "exact" else ""
        yield Listed("oepp", "10", *given, row["new_action_label"], ours, "", row["status"], "")


OTHERS = {"spacewalk": _spacewalk, "htstep": _htstep, "oepp": _oepp}
"""Study -> its tables in forms of their own."""


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        sys.exit(
            f"error: {path} is missing: run `snakemake --cores 8 {'/'.join(path.parts[-3:])}` in that folder first"
        )
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _number(study: str, row: dict[str, str], repeated: bool) -> Listed:
    source = "elsewhere" if not row["paper"] else "repeated" if repeated else "printed"
    counted = [f"{row[name]} {word}" for name, word in (("n_videos", "videos"), ("n_samples", "samples")) if row[name]]
    spec = [f"spec {row['spec']}"] if row["value"] and row["spec"] else []
    shared = {field.name: row[field.name] for field in fields(Listed) if field.name in row}
    evidence = "; ".join([*(counted if row["value"] else []), *spec, *filter(None, [row["note"]])])
    ours = row["value"] if row["status"] in COMPUTED else ""
    given = {"study": study, "paper": row["paper"] or row["rerun"], "ours": ours, "evidence": evidence}
    return Listed(**shared | given | {"source": source})


def _rank(number: Listed) -> int:
    return ORDER.index(number.status)


def read() -> list[Listed]:
    """Return the committed ledger."""
    return [Listed(**row) for row in _rows(LEDGER)]


def totals(numbers: Sequence[Listed]) -> list[list[str]]:
    """Return a row per paper, of printed numbers: all, the computed ones by what they are about, and by status."""
    rows = []
    for study, (title, _) in PAPERS.items():
        printed = [number for number in numbers if number.study == study and number.source == "printed"]
        of, statuses = (Counter(getattr(number, name) for number in printed) for name in ("about", "status"))
        counts = [
            len(printed),
            len(printed) - of[""],
            *(of[each] for each in ABOUT),
            *(statuses[each] for each in ORDER),
        ]
        rows.append([title, *map(str, counts)])
    sums = [str(sum(int(row[column]) for row in rows)) for column in range(1, len(rows[0]))]
    return [*rows, ["All five", *sums]]


def shares(numbers: Sequence[Listed]) -> dict[str, str]:
    """Return how many of the printed numbers are computed, and of what, by study and for ``all``."""
    found = {}
    for study, (_, printed, computed, *counts) in zip([*PAPERS, "all"], totals(numbers), strict=True):
        of = [f"{n} {each}" for n, each in zip(counts[: len(ABOUT)], ABOUT, strict=True) if n != "0"]
        found[study] = f"{computed} of {printed} ({', '.join(of)})"
    return found


def page(numbers: Sequence[Listed]) -> str:
    """Return the ledger as Markdown: totals, then a section per paper and table, with a line per method."""
    parts = ["# Reproduction ledger", INTRODUCTION]
    parts += ["\n".join(f"- **{status}** {MARKS[status]}: {MEANINGS[status]}." for status in ORDER)]
    head = ["Paper", "Printed", "Computed", *map(str.capitalize, ABOUT), *ORDER]
    errors = [list(row.values()) for row in _rows(MEASURED)]
    parts += [markdown_table(head, totals(numbers)), PARITY]
    parts += [markdown_table(["Network", "Outputs", "Largest error"], errors)]
    parts += ["Source: `docs/reproduction.py`, `docs/parity.csv`, `src/stepline/tables/status.py`"]
    for (study, table), group in groupby(numbers, key=lambda number: (number.study, number.table)):
        if f"## {PAPERS[study][0]}" not in parts:
            parts += [f"## {PAPERS[study][0]}", f"Not in the ledger: {NOT_LISTED[study]}"]
        parts += [f"### {PAPERS[study][0]}, Table {table}", _table(list(group))]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = (
    "Every number that the five papers print in a table of results, with the status of ours. "
    "`docs/reproduction.py` generates this page and [reproduction.csv](reproduction.csv), one line per number, "
    "from a run of all five studies without videos, and without weights except those in Python packages. "
    "A number that needs more says so.\n\n"
    "The totals count printed numbers; a number in two tables of a paper counts in each. Two kinds of numbers are "
    "listed but not counted: *repeated*, a second line of ours for one printed cell, such as a network with released "
    "weights beside the one trained here; and *elsewhere*, printed only in another source, which the evidence names. "
    "Differences in brackets and standard deviations describe other cells and are not listed.\n\n"
    "A computed number is a statistic or label of a data set, or the result of a blind baseline, which sees no "
    "content, or of another method."
)
PARITY = (
    "Missing weights do not leave a network untested: the tests compare "
    "[backbones](backbones.md#checked-against-the-reference-implementations), "
    "the [heads of article grounding](article-grounding.md), [PDVC](pss.md#choices-where-the-paper-is-silent) and "
    "[HiREST's joint model](hirest.md#methods) with the released code, filled with the same values. No output has a "
    "larger error than the table says: the relative L2 error in float32, or seconds for the times of ActionFormer's "
    "segments. Whole numbers are equal."
)


def _table(numbers: Sequence[Listed]) -> str:
    lines: dict[tuple[str, ...], list[Listed]] = {}
    for number in numbers:
        named = number.method, number.modality, number.setting, number.context_s, number.release
        lines.setdefault((*named, number.source, number.evidence), []).append(number)
    body = []
    for (*named, context_s, release, source, evidence), group in lines.items():
        method = ", ".join(filter(None, [*named, f"{context_s} s" if context_s else "", release]))
        method += "" if source == "printed" else f" ({source})"
        values = "; ".join(f"{each.metric} {each.paper}{_ours(each)}" for each in group)
        statuses = ", ".join(dict.fromkeys(each.status for each in group))
        body.append([method, values, statuses, evidence])
    return markdown_table(["Method", "Printed → ours", "Status", "Evidence"], body)


def _ours(number: Listed) -> str:
    return f" → {number.ours} {MARKS[number.status]}" if number.ours else ""  # type: ignore[index]


def update_readme(numbers: Sequence[Listed], path: Path = ROOT / "README.md") -> None:
    """Replace the totals in the README, each between ``<!-- study -->`` and ``<!-- /study -->``."""
    text = path.read_text(encoding="utf-8")
    for study, total in shares(numbers).items():
        text = re.sub(rf"(<!-- {study} -->).*?(<!-- /{study} -->)", rf"\g<1>{total}\g<2>", text)
    write_text(path, text)


if __name__ == "__main__":
    assert {*PAPERS} == {study for each in BENCHMARKS for study in each.studies} - {"demo", "segments"}
    assert {*ORDER, "ours"} == {*get_args(Status)}
    made = ledger(Path(sys.argv[1]))
    names = [field.name for field in fields(Listed)]
    write_text(LEDGER, csv_text(names, map(astuple, made)))
    write_text(LEDGER.with_suffix(".md"), page(made))
    update_readme(made)
