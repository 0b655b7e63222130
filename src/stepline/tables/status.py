"""The status of a number: the first in this list that applies.

==================  ====================================================================================================
``reference``       copied from the paper (humans, closed models, methods that nothing here computes)
``needs``           no value yet: the note names all that is missing, and the command computes the number; with "no
                    method here", your own predictions fill it
``ours``            a value without a number in the paper
``inconsistent``    the paper's number cannot be right; the evidence is in its CSV file and in the note
``not comparable``  another release, split, protocol or option than the paper's, a subset, or missing or partly read
                    videos
``exact``           the value rounds to the printed digits, or truncates to them where the paper does
``within``          the value is within the tolerance, or below a printed bound such as ``<0.01``; the tolerance and its
                    source are in the paper's CSV file and in the note
``inconclusive``    the value is within the tolerance, but a blind baseline would be too, in more than one of 20 draws
``differs``         the value is outside the tolerance, or no tolerance is justified
==================  ====================================================================================================

Only numbers with the last four statuses are compared with the paper and have a ``difference``, except from a bound.
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
    "exact": "our value rounds to the printed digits, or truncates to them where the paper does",
    "within": "our value is within the tolerance (the note gives its source) or below a printed bound",
    "inconclusive": "our value is within the tolerance, but so is a blind baseline in more than one of 20 draws",
    "differs": "our value is outside the tolerance, or no tolerance is justified",
    "not comparable": "another release, split or option than the paper's, a subset, or missing videos",
    "inconsistent": "the paper's number cannot be right; the note explains why",
    "reference": "copied from the paper: people, closed models, and methods that nothing here computes",
    "needs": 'no value yet: the note names all that is missing; with "no method here", your own predictions fill it',
    "ours": "the paper has no such number",
}
TRUNCATES = "the paper truncates digits instead of rounding"
PARTIAL = (
    ("n_videos", "n_listed", "videos"),
    ("n_queries", "queries_listed", "queries"),
    ("pool_used", "pool_listed", "pool"),
)
"""The counts that show whether everything was evaluated: the evaluated number, the total, and the unit."""
CHANCE = 0.05
"""The highest probability of a blind baseline within the tolerance at which ``within`` is conclusive."""


@dataclass(frozen=True)
class Judged:
    """A number's status, its difference from the paper's number, and remarks that explain them.

    If the paper's number has a tolerance or bound, one remark is the score of the blind baseline.
    """

    status: Status
    difference: float | None = None
    remarks: list[str] = field(default_factory=list)


def judge(
    number: Number, value: float | None, paper: Published | None, counts: Mapping[str, Any], blind: Blind | None = None
) -> Judged:
    """Return a number's status and its explanation.

    counts: the known counts, such as ``n_videos`` evaluated of ``n_listed``, see `PARTIAL`. blind: the score of the
    blind baseline; None for the baseline itself and if there is none.
    """
    if number.reference:
        made = f", computed on {number.paper_release}" if number.paper_release not in ("", number.release) else ""
        return Judged("reference", None, [f"copied from the paper{made}"] if paper and paper.printed else [])
    if value is None:
        without = ["no method here"] if any(need.kind == "predictions" for need in number.needs) else []
        named = [f"needs {', '.join(map(str, number.needs))}"] if number.needs else []
        return Judged("needs", None, [*without, *named])
    partial = _partial(number, counts)
    if paper is None or not paper.printed:
        return Judged("ours", None, partial)
    if paper.evidence:
        return Judged("inconsistent", None, [f"the paper's number cannot be right: {paper.evidence}", *partial])
    other = partial + _other_protocol(number, paper)
    if other:
        return Judged("not comparable", None, other)
    difference, source = None, "the paper prints only a bound"
    if paper.value is not None:
        difference, source = value - paper.value, f"tolerance ±{paper.tolerance or 0:g}: {paper.tolerance_source}"
        step = Decimal(1).scaleb(-paper.decimals)
        if paper.truncated and Decimal(repr(round(value, 8))).quantize(step, ROUND_DOWN) == Decimal(paper.printed):
            return Judged("exact", difference, [TRUNCATES])
        if round_half_up(value, step) == Decimal(paper.printed):
            return Judged("exact", difference)
    if paper.interval is None:
        return Judged("differs", difference)
    return _near(value, paper.interval, difference, source, blind)


def _near(
    value: float, interval: tuple[float, float], difference: float | None, source: str, blind: Blind | None
) -> Judged:
    low, high = interval
    remarks = [source, *([blind.text(low, high)] if blind else [])]
    if not low <= value < high:
        return Judged("differs", difference, remarks)
    tells = blind is None or blind.chance(low, high) <= CHANCE
    return Judged("within" if tells else "inconclusive", difference, remarks)


def _partial(number: Number, counts: Mapping[str, Any]) -> list[str]:
    remarks = [f"subset: {number.subset}"] if number.subset else []
    for used, listed, what in PARTIAL:
        if counts.get(used) is not None and counts.get(listed) is not None and counts[used] < counts[listed]:
            remarks.append(f"{what}: {counts[used]} of {counts[listed]} evaluated")
    if counts.get("n_in_part"):
        remarks.append(f"videos: {counts['n_in_part']} partly read, {counts['absent_s']:.1f} s missing")
    return remarks


def _other_protocol(number: Number, paper: Published) -> list[str]:
    remarks = []
    if number.paper_release not in ("", number.release):
        remarks.append(f"release {number.release}, the paper's numbers are for {number.paper_release}")
    if paper.split != number.split:
        remarks.append(f"split {number.split}, the paper's number is for {paper.split}")
    if number.protocol != "paper":
        remarks.append(f"protocol {number.protocol} the paper's")
    for key, option in sorted(number.options.items()):
        if option.differs:
            known = "published" if option.said else "default"
            remarks.append(f"{key}={value_text(option.value)} ({known}: {value_text(option.published)})")
    return remarks
