"""The numbers of the papers' tables, as the benchmarks state them, in the text of the papers."""

import csv
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

import stepline

PAPERS = {
    "hirest": "hirest", "htstep": "htstep", "oepp": "oepp", "pss": "temporal_ordering_pss", "spacewalk": "spacewalk18",
}  # fmt: skip
NUMBER = re.compile(r"<?\d*\.?\d+")
CUT = ("A7", "InternVideo", "V", "last-layer", "")
"""A line of which the text of the paper has only the first number; the others are those of Table 2."""

Line = list[tuple[tuple[str, ...], str]]
"""What each number of a method's line measures, and the number."""


def lines(file: Path) -> dict[tuple[str, ...], Line]:
    """Return the printed numbers of each method in a table, in the order of its columns."""
    found: dict[tuple[str, ...], Line] = defaultdict(list)
    with open(file, newline="", encoding="utf-8") as opened:
        for row in csv.DictReader(opened):
            if "table" in row and row["paper"]:
                method = (row["table"], row["method"], row["modality"], row["setting"], row.get("release", ""))
                found[method].append(((row["context_s"], row["metric"], row["split"]), row["paper"]))
    return found


def plain(text: str) -> str:
    """Return the text with numbers as in the tables: 3,400 and 3.4K are 3400."""
    text = re.sub(r"(?<=\d),(?=\d{3})|(?<=\t\d) (?=\d\.\d)", "", text)
    return re.sub(r"(\d+(?:\.\d+)?)[Kk]\b", lambda number: f"{float(number[1]) * 1000:g}", text)


def stand(text: str, numbers: list[str]) -> bool:
    """Return whether the numbers stand somewhere in this order, with a few others between them."""
    wanted = [number.lstrip("0") for number in numbers]
    there = [number.lstrip("0") for number in NUMBER.findall(text)]
    parts = (iter(there[start : start + 3 * len(wanted) + 12]) for start in range(len(there)))
    return any(all(number in part for number in wanted) for part in parts)


@pytest.mark.parametrize("study", PAPERS)
def test_the_numbers_of_a_line_stand_in_the_paper_in_this_order(study: str, papers: Path) -> None:
    text = plain((papers / f"{PAPERS[study]}.txt").read_text(encoding="utf-8"))
    files = sorted(Path(stepline.__file__).parent.glob(f"benchmarks/{study}/paper/*.csv"))
    checked = 0
    for file in files:
        order: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
        for method, line in lines(file).items():
            assert method == CUT or stand(text, [number for _, number in line]), method
            for (before, _), (after, _) in pairwise(line):
                order[before].add(after)
                assert before not in order[after], (method, before, after)
            checked += len(line)
    assert checked > 30
