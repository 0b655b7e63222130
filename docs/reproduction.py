"""Write the reproduction ledger, reproduction.csv and reproduction.md, from the tables of a finished run.

    python docs/reproduction.py FOLDER

FOLDER holds ``results/`` with the tables of all five studies. The totals in README.md are updated too.
"""

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import get_args

from stepline.io import csv_text, write_text
from stepline.plans import BENCHMARKS
from stepline.tables.files import markdown_table
from stepline.tables.status import MARKS, Status

ROOT = Path(__file__).parents[1]
LEDGER = ROOT / "docs/reproduction.csv"
PAPER_FILES = ROOT / "src/stepline/benchmarks"
PAPERS = {
    "spacewalk": ("Spacewalk-18", ["table2", "table3", "tableA6", "tableA7", "tableA8"]),
    "hirest": ("HiREST", ["table2", "table3", "table4", "table5", "table6"]),
    "htstep": ("HT-Step", ["table1", "table2", "table2c", "table3", "table4", "table5", "table6"]),
    "oepp": ("OEPP", ["table2", "table3", "table4", "table5", "table6", "table7", "table8"]),
    "pss": ("PSS", ["table1", "table2", "table3", "table4"]),
}
"""Study -> its title, and its tables in the form of ``stepline.tables``."""
NOT_COMPUTED = {
    "spacewalk": "Table 1 compares data sets; Tables A2 to A4 print the steps of three recordings.",
    "hirest": "Table 1 compares data sets.",
    "htstep": "The rows of other data sets in Table 1.",
    "oepp": "Table 1 compares data sets.",
    "pss": "",
}
"""Tables of a paper that are not in the ledger."""
ORDER: tuple[Status, ...] = (
    "exact", "within", "inconclusive", "differs", "inconsistent", "not comparable", "reference", "needs",
)  # fmt: skip
"""Of one printed number on several releases, the first status counts. ``ours`` has no printed number."""
COMPUTED = {"exact", "within", "inconclusive", "differs", "inconsistent", "not comparable"}


@dataclass(frozen=True)
class Printed:
    """A number that a paper prints. ours: "" if there is no value. evidence: what the status rests on."""

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


def ledger(folder: Path) -> list[Printed]:
    """Return every printed number with its status in a finished run."""
    found: list[Printed] = []
    for study in PAPERS:
        results = folder / "results" / study
        found += [*_of_study(results, study), *(OTHERS[study](results) if study in OTHERS else ())]
    return found


def _of_study(folder: Path, study: str) -> Iterator[Printed]:
    for file in PAPERS[study][1]:
        columns = (PAPER_FILES / study / "paper" / f"{file}.csv").read_text(encoding="utf-8").partition("\n")[0]
        length = 9 if "release" in columns.split(",") else 8  # the fields of `Printed` that identify a printed number
        found: dict[tuple[str, ...], Printed] = {}
        for row in _rows(folder / f"{file}.csv"):
            if paper := row["paper"] or row["rerun"]:
                number = _number(study, row, paper)
                key = astuple(number)[:length]
                if key not in found or _rank(number) < _rank(found[key]):
                    found[key] = number
        yield from found.values()


def _spacewalk(folder: Path) -> Iterator[Printed]:
    for row in _rows(folder / "tableA1.csv"):
        given = [row["recording"], "", "", "", "duration", row["split"], "", ""]
        values = [row["paper"], row["duration"], row["difference_s"], row["status"], ""]
        yield Printed("spacewalk", "A1", *given, *values)
    listed: set[tuple[str, str]] = set()
    for row in _rows(folder / "tableA5.csv"):  # the release on which the paper's numbers were computed comes first
        if row["paper_s"] and (row["dataset"], row["measure"]) not in listed:
            listed.add((row["dataset"], row["measure"]))
            given = [row["dataset"], "", "", "", row["measure"], "", row["release"], ""]
            values = [row["paper_s"], row["value_s"], row["difference_s"], row["status"], row["note"]]
            yield Printed("spacewalk", "A5", *given, *values)


def _htstep(folder: Path) -> Iterator[Printed]:
    for row in _rows(folder / "table7.csv"):
        if row["reading"] == "official" and row["paper"]:
            given = [row["entry"], "", row["activity"], "", "ap", row["split"], "", row["entry"]]
            values = [row["paper"], row["value"], "", "not comparable" if row["value"] else "needs"]
            yield Printed("htstep", "7", *given, *values, row["note"])


def _oepp(folder: Path) -> Iterator[Printed]:
    for row in _rows(folder / "table9.csv"):
        given = [row["event"], "", "", "", "cluster", row["part"], "", ""]
        ours = row["cluster"] if row["status"] == "exact" else ""
        yield Printed("oepp", "9", *given, row["cluster"], ours, "", row["status"], "")
    for row in _rows(folder / "table10.csv"):
        given = [f"{row['event']}: {row['action_label']}", "", "", "", "new label", "", "", ""]
        ours = row["new_action_label"] if row["status"] == "exact" else ""
        yield Printed("oepp", "10", *given, row["new_action_label"], ours, "", row["status"], "")


OTHERS = {"spacewalk": _spacewalk, "htstep": _htstep, "oepp": _oepp}
"""Study -> its tables in forms of their own."""


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        sys.exit(
            f"error: {path} is missing: run `snakemake --cores 8 {'/'.join(path.parts[-3:])}` in that folder first"
        )
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _number(study: str, row: dict[str, str], paper: str) -> Printed:
    counted = [f"{row[name]} {word}" for name, word in (("n_videos", "videos"), ("n_samples", "samples")) if row[name]]
    spec = [f"spec {row['spec']}"] if row["value"] and row["spec"] else []
    shared = {field.name: row[field.name] for field in fields(Printed) if field.name in row}
    evidence = "; ".join([*(counted if row["value"] else []), *spec, *filter(None, [row["note"]])])
    ours = row["value"] if row["status"] in COMPUTED else ""
    return Printed(**shared | {"study": study, "paper": paper, "ours": ours, "evidence": evidence})


def _rank(number: Printed) -> int:
    return ORDER.index(number.status)


def read() -> list[Printed]:
    """Return the committed ledger."""
    return [Printed(**row) for row in _rows(LEDGER)]


def totals(numbers: Sequence[Printed]) -> list[list[str]]:
    """Return a row per paper: its title, the printed numbers, the computed ones, and the count of each status."""
    rows = []
    for study, (title, _) in PAPERS.items():
        counts = Counter(number.status for number in numbers if number.study == study)
        computed = sum(counts[status] for status in COMPUTED)
        rows.append([title, str(counts.total()), str(computed), *(str(counts[status]) for status in ORDER)])
    sums = [str(sum(int(row[column]) for row in rows)) for column in range(1, len(rows[0]))]
    return [*rows, ["All five", *sums]]


def page(numbers: Sequence[Printed]) -> str:
    """Return the ledger as Markdown: totals, then a section per paper and table, with a line per method."""
    parts = ["# Reproduction ledger", INTRODUCTION]
    parts += ["\n".join(f"- **{status}** {MARKS[status]}: {text}" for status, text in LEGEND.items())]
    parts += [markdown_table(["Paper", "Printed", "Computed", *ORDER], totals(numbers)), PARITY]
    parts += ["Source: `docs/reproduction.py`, `src/stepline/tables/status.py`"]
    for (study, table), group in groupby(numbers, key=lambda number: (number.study, number.table)):
        if f"## {PAPERS[study][0]}" not in parts:
            parts.append(f"## {PAPERS[study][0]}")
            parts += [f"Not in the ledger: {NOT_COMPUTED[study]}"] if NOT_COMPUTED[study] else []
        parts += [f"### {PAPERS[study][0]}, Table {table}", _table(list(group))]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = (
    "Every number that the five papers print in a table of results, with the status of ours. "
    "`docs/reproduction.py` generates this page and [reproduction.csv](reproduction.csv), one line per number, "
    "from a run of all five studies without videos, and without weights except those in Python packages. "
    "A number that needs more says so."
)
PARITY = (
    "Missing weights do not leave a network untested: the tests compare "
    "[backbones](backbones.md#checked-against-the-reference-implementations), "
    "the [heads of article grounding](article-grounding.md), [PDVC](pss.md#choices-where-the-paper-is-silent) and "
    "[HiREST's joint model](hirest.md#methods) with the released code. Filled with the same values, both give the same "
    "outputs, up to a relative error of 1e-4."
)
LEGEND: dict[Status, str] = {
    "exact": "our value rounds to the printed digits.",
    "within": "our value is within a tolerance that has a source, or below a printed bound.",
    "inconclusive": "it is within the tolerance, but so is a method that sees no content.",
    "differs": "it is outside the tolerance, or no tolerance is justified.",
    "inconsistent": "the printed number cannot be correct; the evidence is given.",
    "not comparable": "our value was computed on another release, split or option than the printed one.",
    "reference": "the paper's own value of people or closed models, which nothing can compute.",
    "needs": "no value yet: videos, weights, labels or a key are missing.",
}


def _table(numbers: Sequence[Printed]) -> str:
    lines: dict[tuple[str, ...], list[Printed]] = {}
    for number in numbers:
        named = number.method, number.modality, number.setting, number.context_s, number.release, number.evidence
        lines.setdefault(named, []).append(number)
    body = []
    for (*named, context_s, release, evidence), group in lines.items():
        method = ", ".join(filter(None, [*named, f"{context_s} s" if context_s else "", release]))
        values = "; ".join(f"{each.metric} {each.paper}{_ours(each)}" for each in group)
        statuses = ", ".join(dict.fromkeys(each.status for each in group))
        body.append([method, values, statuses, evidence])
    return markdown_table(["Method", "Printed → ours", "Status", "Evidence"], body)


def _ours(number: Printed) -> str:
    return f" → {number.ours} {MARKS[number.status]}" if number.ours else ""  # type: ignore[index]


def update_readme(numbers: Sequence[Printed], path: Path = ROOT / "README.md") -> None:
    """Replace the totals in the README, each between ``<!-- study -->`` and ``<!-- /study -->``."""
    text = path.read_text(encoding="utf-8")
    for study, (_, printed, computed, *_) in zip([*PAPERS, "all"], totals(numbers), strict=True):
        text = re.sub(rf"(<!-- {study} -->).*?(<!-- /{study} -->)", rf"\g<1>{computed} of {printed}\g<2>", text)
    write_text(path, text)


if __name__ == "__main__":
    assert {*PAPERS} == {study for each in BENCHMARKS for study in each.studies} - {"demo"}
    assert {*ORDER, "ours"} == {*get_args(Status)}
    made = ledger(Path(sys.argv[1]))
    names = [field.name for field in fields(Printed)]
    write_text(LEDGER, csv_text(names, map(astuple, made)))
    write_text(LEDGER.with_suffix(".md"), page(made))
    update_readme(made)
