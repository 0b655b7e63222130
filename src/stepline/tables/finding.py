"""The summary of a table: a few sentences generated from its numbers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from stepline.tables.layout import context_name, is_oracle, missing
from stepline.tables.rows import UNDECLARED, Row
from stepline.tables.text import shown_value

NAMED = 3
"""Maximum number of methods named if several share the best value."""


@dataclass(frozen=True)
class Finding:
    """The sentences, and the command that computes the most missing numbers; "" if there is none."""

    sentences: tuple[str, ...]
    command: str = ""


def finding(rows: Sequence[Row], best_of: Sequence[Row], metric: str) -> Finding:
    """Return the number of values that agree with the paper, the best method, and the number of missing values.

    rows: the rows of all tables. best_of: the rows of one table and release, in which ``metric`` determines the best
    method.
    """
    gaps = [gap for gap in missing(rows) if gap.command not in ("", UNDECLARED)]
    largest = max(gaps, key=lambda gap: gap.count, default=None)
    sentences = [
        _agreement(rows),
        _best([row for row in best_of if row.metric == metric]),
        _missing(rows, largest.count if largest else 0),
    ]
    said = tuple(filter(None, sentences)) or (
        f"{_numbers(len(rows))} {_are(len(rows))} computed; there is no paper for comparison.",
    )
    return Finding(said, largest.command if largest else "")


def blind_methods(rows: Sequence[Row]) -> list[str]:
    """Return the names of the methods that serve as blind baselines of other methods."""
    blind = {row.blind for row in rows} - {""}
    return list(dict.fromkeys(row.method for row in rows if row.entry in blind))


def _agreement(rows: Sequence[Row]) -> str:
    counts = Counter(row.status for row in rows if row.printed and row.status not in ("reference", "needs"))
    exact, within = counts["exact"], counts["within"]
    compared = exact + within + counts["inconclusive"] + counts["differs"]
    if not counts:
        return ""
    said = []
    if compared:
        agree = f"{exact + within or 'none'} agree{'s' if exact + within <= 1 else ''}"
        if exact and within:
            agree += f" ({exact} to the printed digits, {within} within tolerance)"
        else:
            agree += " to the printed digits" if exact else " within tolerance"
        said.append(agree)
        if n := counts["inconclusive"]:
            said.append(f"{n} {_are(n)} inconclusive (a blind baseline scores as well)")
        if n := counts["differs"]:
            said.append(f"{n} differ{'s' if n == 1 else ''}")
        start = f"Of {_numbers(compared)} that can be compared with the paper's, {_listed(said)}"
    else:
        start = "No number can be compared with the paper's"
    beside = []
    if n := counts["not comparable"]:
        beside.append(f"{n} {_are(n)} for another release, split or option than the paper's, or a subset of the videos")
    if n := counts["inconsistent"]:
        beside.append(f"{n} of the paper's numbers cannot be right")
    return f"{'; '.join([start, *beside])}."


def _best(rows: Sequence[Row]) -> str:
    computed = [(row.value, row) for row in rows if row.value is not None and row.status != "reference"]
    fair = [(value, row) for value, row in computed if not is_oracle(row.sees)]
    if not fair:
        return ""
    measure, first = fair[0][1].measure, fair[0][1]
    value = (min if measure.lower_is_better else max)(value for value, _ in fair)
    text = shown_value(measure, value)
    best = [row for each, row in fair if shown_value(measure, each) == text]
    names = list(dict.fromkeys(map(_name, best)))
    more = [f"{len(names) - NAMED} others"] if len(names) > NAMED else []
    among = " among methods without oracle input" if len(fair) < len(computed) else ""
    verb = "has" if len(names) == 1 else "have"
    extreme = "lowest" if measure.lower_is_better else "highest"
    said = f"{_listed([*names[:NAMED], *more])} {verb} the {extreme} {measure.title}{among}: {text}"
    if len(best) == 1 and best[0].printed:
        said += f" (paper: {best[0].printed})"
    return f"In Table {first.table} on {first.release}, {said}{_blind(best, rows)}."


def _blind(best: Sequence[Row], rows: Sequence[Row]) -> str:
    """Return a clause with the score of the best blind baseline beside the best method."""
    blind = {row.blind for row in rows} - {""}
    if own := [row.method for row in best if row.entry in blind]:
        return f"; {own[0]} is a blind baseline"
    first = best[0]
    beside = (
        row for row in rows if row.entry in blind and (row.context_s, row.split) == (first.context_s, first.split)
    )
    others = [(row.value, row.method) for row in beside if row.value is not None]
    if not others:
        return ""
    lower = first.measure.lower_is_better
    value, method = (min if lower else max)(others, key=itemgetter(0))
    bound = first.ci_high if lower else first.ci_low
    inside = bound is not None and (value <= bound if lower else value >= bound)
    said = f"; the blind baseline {method} scores {shown_value(first.measure, value)}"
    return f"{said}, within the 95 % interval of the best method" if inside else said


def _missing(rows: Sequence[Row], filled: int) -> str:
    asked = [row for row in rows if row.status != "reference"]
    lacking = sum(row.status == "needs" for row in asked)
    if not lacking:
        return ""
    count = f"{lacking} of {_numbers(len(asked))} {_are(lacking)} missing"
    if not filled:
        return f"{count}."
    return f"{count}; this command computes {'them' if filled == lacking else filled}:"


def _name(row: Row) -> str:
    context = "" if row.context_s is None else context_name(row.context_s)
    facts = ", ".join(filter(None, [row.modality, row.setting, context]))
    return f"{row.method} ({facts})" if facts else row.method


def _numbers(count: int) -> str:
    return f"{count} number{'' if count == 1 else 's'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
