"""What a benchmark's truth and a prediction say of a video over time, and which of it is an error."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

HIT, FALSE_POSITIVE, WRONG_LABEL, MISS = "hit", "false positive", "wrong label", "miss"
"""The verdicts on a span; "" where none is given."""
ERRORS = (FALSE_POSITIVE, WRONG_LABEL, MISS)
LEAST_IOU = 0.5
"""The intersection over union at which a predicted segment finds a true one, unless a benchmark says otherwise."""


@dataclass(frozen=True)
class Timed:
    """[start_s, end_s) of a video: what is true or predicted there, and the verdict on it."""

    start_s: float
    end_s: float
    label: str = ""
    verdict: str = ""


@dataclass(frozen=True, kw_only=True)
class InTime:
    """The truth of a video and one prediction, each in time's order. rule: when a predicted span is an error.

    predicted: with verdicts; among them, as ``MISS``, the true spans that the prediction does not find.
    """

    truth: tuple[Timed, ...]
    predicted: tuple[Timed, ...] = ()
    rule: str = ""


def judge(
    truth: Sequence[Timed], predicted: Sequence[Timed], *, labelled: bool, least_iou: float = LEAST_IOU
) -> InTime:
    """Return predicted segments with verdicts: each true segment is found by at most one of them.

    Pairs are formed by descending intersection over union, ``least_iou`` and above, or any overlap where that is 0.
    First come those whose labels agree: ``HIT``. labelled: whether labels count; then what overlaps a true segment that
    is left is ``WRONG_LABEL``, and that segment is no ``MISS``.
    """
    pairs = sorted(
        (-iou, p, t)
        for p, said in enumerate(predicted)
        for t, true in enumerate(truth)
        if (iou := _iou(said, true)) > 0 and iou >= least_iou
    )
    verdicts: dict[int, str] = {}
    found: set[int] = set()
    for verdict in (HIT, WRONG_LABEL) if labelled else (HIT,):
        for _, p, t in pairs:
            agree = not labelled or verdict == WRONG_LABEL or predicted[p].label == truth[t].label
            if agree and p not in verdicts and t not in found:
                verdicts[p] = verdict
                found.add(t)
    judged = [replace(said, verdict=verdicts.get(p, FALSE_POSITIVE)) for p, said in enumerate(predicted)]
    judged += [replace(true, verdict=MISS) for t, true in enumerate(truth) if t not in found]
    at_least = f"an IoU of at least {least_iou:g} with" if least_iou else "an overlap with"
    label = " of the same label; wrong label: of another" if labelled else ""
    rule = f"hit: {at_least} a true segment, one to one{label}; false positive: none; miss: a true segment not found"
    return InTime(truth=in_order(truth), predicted=in_order(judged), rule=rule)


def in_order(spans: Sequence[Timed]) -> tuple[Timed, ...]:
    """Return spans in the order of their starts."""
    return tuple(sorted(spans, key=lambda span: (span.start_s, span.end_s)))


def _iou(one: Timed, other: Timed) -> float:
    shared = min(one.end_s, other.end_s) - max(one.start_s, other.start_s)
    return max(shared, 0) / (max(one.end_s, other.end_s) - min(one.start_s, other.start_s)) if shared > 0 else 0.0
