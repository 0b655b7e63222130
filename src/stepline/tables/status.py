"""The status of a number: the first of these that holds.

==================  ====================================================================================================
``reference``       copied from the paper (humans, closed models); nothing is computed
``needs``           no value yet: the note names the weights, videos or key, the command fills them
``ours``            a value to which the paper has no number
``inconsistent``    the paper's number cannot be right; the evidence stands in its CSV file and in the note
``not comparable``  another release, protocol or option than the paper's, a subset, or videos that are missing: which
``exact``           the value rounds to the printed digits, or lies below a printed bound such as ``<0.01``
``within``          it lies in the tolerance; tolerance and source stand in the paper's CSV file and in the note
``differs``         it does not, or no tolerance is justified
==================  ====================================================================================================

Only the last three can be compared, and only they have a ``difference``, though none from a bound.
"""

from collections.abc import Mapping
from decimal import ROUND_DOWN, Decimal
from typing import Any, Literal

from stepline.tables.number import Number
from stepline.tables.paper import Published
from stepline.tables.text import round_half_up, value_text

Status = Literal["exact", "within", "differs", "not comparable", "needs", "reference", "inconsistent", "ours"]

MARKS: dict[Status, str] = {
    "exact": "=",
    "within": "≈",
    "differs": "≠",
    "not comparable": "†",
    "inconsistent": "‡",
    "reference": "ref",
    "needs": "needs",
    "ours": "",
}


def judge(
    number: Number, value: float | None, paper: Published | None, counts: Mapping[str, Any]
) -> tuple[Status, float | None, list[str]]:
    """Return a number's status, its difference from the paper's, and the remarks that explain them.

    counts: ``n_videos`` of ``n_listed`` and ``pool_used`` of ``pool_listed`` were evaluated, where they are known.
    """
    if number.reference:
        made = f", made on {number.paper_release}" if number.paper_release not in ("", number.release) else ""
        return "reference", None, [f"copied from the paper{made}"]
    if value is None:
        return "needs", None, [f"needs {';'.join(map(str, number.needs))}"] if number.needs else []
    partial = _partial(number, counts)
    if paper is None or not paper.printed:
        return "ours", None, partial
    if paper.evidence:
        return "inconsistent", None, [f"the paper's number cannot be right: {paper.evidence}", *partial]
    other = partial + _other_protocol(number)
    if other:
        return "not comparable", None, other
    if paper.value is None:
        return "exact" if paper.bound is not None and value < paper.bound else "differs", None, []
    difference = value - paper.value
    step = Decimal(1).scaleb(-paper.decimals)
    if paper.truncated and Decimal(repr(round(value, 8))).quantize(step, ROUND_DOWN) == Decimal(paper.printed):
        return "exact", difference, ["the paper cuts digits off where others round"]
    if round_half_up(value, step) == Decimal(paper.printed):
        return "exact", difference, []
    if paper.tolerance is None:
        return "differs", difference, []
    tolerance = f"tolerance ±{paper.tolerance:g}: {paper.tolerance_source}"
    return "within" if abs(difference) <= paper.tolerance + 1e-9 else "differs", difference, [tolerance]


def _partial(number: Number, counts: Mapping[str, Any]) -> list[str]:
    remarks = [f"subset: {number.subset}"] if number.subset else []
    for used, listed, what in (("n_videos", "n_listed", "videos"), ("pool_used", "pool_listed", "pool")):
        if counts.get(used) is not None and counts.get(listed) is not None and counts[used] < counts[listed]:
            remarks.append(f"{what}: {counts[used]} of {counts[listed]} evaluated")
    return remarks


def _other_protocol(number: Number) -> list[str]:
    remarks = []
    if number.paper_release not in ("", number.release):
        remarks.append(f"release {number.release}, the paper's numbers were made on {number.paper_release}")
    if number.protocol != "paper":
        remarks.append(f"protocol {number.protocol} the paper's")
    for key, option in sorted(number.options.items()):
        if option.differs:
            remarks.append(f"{key}={value_text(option.value)} (published: {value_text(option.published)})")
    return remarks
