"""The status of a number: the first of these that holds.

==================  ====================================================================================================
``reference``       copied from the paper (humans, closed models); nothing is computed
``needs``           no value yet: the note names the weights, videos or key, the command fills them
``ours``            a value to which the paper has no number
``inconsistent``    the paper's number cannot be right; the evidence stands in its CSV file and in the note
``not comparable``  another release, split, protocol or option than the paper's, a subset, or videos that are missing
                    or were read in part
``exact``           the value rounds to the printed digits
``within``          it lies in the tolerance, or below a printed bound such as ``<0.01``; tolerance and source stand in
                    the paper's CSV file and in the note
``inconclusive``    it does, but a method that sees nothing would too, more often than once in 20 draws
``differs``         it does not, or no tolerance is justified
==================  ====================================================================================================

Only the last four can be compared, and only they have a ``difference``, though none from a bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Decimal
from typing import Any, Literal

from stepline.tables.blind import Blind
from stepline.tables.number import Number
from stepline.tables.paper import Published
from stepline.tables.text import round_half_up, value_text

Status = Literal[
    "exact", "within", "inconclusive", "differs", "not comparable", "needs", "reference", "inconsistent", "ours"
]

MARKS: dict[Status, str] = {
    "exact": "=",
    "within": "≈",
    "inconclusive": "?",
    "differs": "≠",
    "not comparable": "†",
    "inconsistent": "‡",
    "reference": "ref",
    "needs": "needs",
    "ours": "",
}
MEANINGS: dict[Status, str] = {
    "exact": "our value rounds to the printed digits",
    "within": "our value lies in the tolerance, whose source the note names, or below a printed bound",
    "inconclusive": "our value lies in the tolerance, but a blind baseline would too, more often than once in 20 draws",
    "differs": "our value lies outside the tolerance, or no tolerance is justified",
    "not comparable": "another release, split or option than the paper's, a subset, or missing videos",
    "inconsistent": "the paper's number cannot be right; the note says why",
    "reference": "copied from the paper; nothing is computed",
    "needs": "no value yet: the note names what is missing, the command fills it",
    "ours": "the paper has no such number",
}
PARTIAL = (
    ("n_videos", "n_listed", "videos"),
    ("n_queries", "queries_listed", "queries"),
    ("pool_used", "pool_listed", "pool"),
)
"""The counts that tell whether all was evaluated: of what was, of what there is, and what it is."""
CHANCE = 0.05
"""How likely a method that sees nothing may lie in a tolerance that tells anything."""


@dataclass(frozen=True)
class Judged:
    """A number's status, its difference from the paper's, and what explains them.

    beside: what a method gets that sees nothing, where there is an interval to lie in.
    """

    status: Status
    difference: float | None = None
    remarks: list[str] = field(default_factory=list)
    beside: str = ""


def judge(
    number: Number, value: float | None, paper: Published | None, counts: Mapping[str, Any], blind: Blind | None = None
) -> Judged:
    """Return a number's status and what explains it.

    counts: such as ``n_videos`` of ``n_listed`` that were evaluated, see `PARTIAL`, where they are known.
    blind: what a method gets that sees nothing; None of that method itself, and where there is none.
    """
    if number.reference:
        made = f", made on {number.paper_release}" if number.paper_release not in ("", number.release) else ""
        return Judged("reference", None, [f"copied from the paper{made}"])
    if value is None:
        return Judged("needs", None, [f"needs {';'.join(map(str, number.needs))}"] if number.needs else [])
    partial = _partial(number, counts)
    if paper is None or not paper.printed:
        return Judged("ours", None, partial)
    if paper.evidence:
        return Judged("inconsistent", None, [f"the paper's number cannot be right: {paper.evidence}", *partial])
    other = partial + _other_protocol(number, paper)
    if other:
        return Judged("not comparable", None, other)
    difference, source = None, "the paper prints a bound alone"
    if paper.value is not None:
        difference, source = value - paper.value, f"tolerance ±{paper.tolerance or 0:g}: {paper.tolerance_source}"
        step = Decimal(1).scaleb(-paper.decimals)
        if paper.truncated and Decimal(repr(round(value, 8))).quantize(step, ROUND_DOWN) == Decimal(paper.printed):
            return Judged("exact", difference, ["the paper cuts digits off where others round"])
        if round_half_up(value, step) == Decimal(paper.printed):
            return Judged("exact", difference)
    if paper.interval is None:
        return Judged("differs", difference)
    return _near(value, paper.interval, difference, source, blind)


def _near(
    value: float, interval: tuple[float, float], difference: float | None, source: str, blind: Blind | None
) -> Judged:
    low, high = interval
    beside = blind.text(low, high) if blind else ""
    if not low <= value < high:
        return Judged("differs", difference, [source], beside)
    tells = blind is None or blind.chance(low, high) <= CHANCE
    return Judged("within" if tells else "inconclusive", difference, [source], beside)


def _partial(number: Number, counts: Mapping[str, Any]) -> list[str]:
    remarks = [f"subset: {number.subset}"] if number.subset else []
    for used, listed, what in PARTIAL:
        if counts.get(used) is not None and counts.get(listed) is not None and counts[used] < counts[listed]:
            remarks.append(f"{what}: {counts[used]} of {counts[listed]} evaluated")
    if counts.get("n_in_part"):
        remarks.append(f"videos: {counts['n_in_part']} read in part, {counts['absent_s']:.1f} s absent")
    return remarks


def _other_protocol(number: Number, paper: Published) -> list[str]:
    remarks = []
    if number.paper_release not in ("", number.release):
        remarks.append(f"release {number.release}, the paper's numbers were made on {number.paper_release}")
    if paper.split != number.split:
        remarks.append(f"split {number.split}, the paper's number is of {paper.split}")
    if number.protocol != "paper":
        remarks.append(f"protocol {number.protocol} the paper's")
    for key, option in sorted(number.options.items()):
        if option.differs:
            known = "published" if option.said else "default"
            remarks.append(f"{key}={value_text(option.value)} ({known}: {value_text(option.published)})")
    return remarks
