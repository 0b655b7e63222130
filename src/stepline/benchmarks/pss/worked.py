"""The paper's worked examples, Fig. 3, Fig. 4 and relations in its tables, compared with computed numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np

from stepline.metrics.segments import iou
from stepline.metrics.soda import matched, soda_d
from stepline.report import svg_address, write_html

Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Check:
    """A number, or pairs, as printed and as computed. verdict: ``right``, or why they differ."""

    what: str
    printed: str
    computed: str
    verdict: str


@dataclass(frozen=True)
class Example:
    """An example. picture: the address of an image, or "". matrix: the lines of its IoU matrix."""

    title: str
    text: str
    picture: str
    matrix: Sequence[Sequence[str]]
    checks: Sequence[Check]


FIGURE_4 = {
    "Example 1": ([(1, 9), (1, 4), (4, 8)], ((".38", ".5", ".17"), (".25", "0", ".2")), "g1-p2, g2-p1", "27.99"),
    "Example 2": ([(1, 4), (1, 9), (4, 8)], ((".5", ".38", ".17"), ("0", ".25", ".2")), "g1-p1, g2-p2", "30.0"),
}
"""For each example of Fig. 4: the proposals, the printed IoU matrix, the Hungarian pairs and the F1."""
PAIRS_4 = {"Example 1": "g1-p2, g2-p3", "Example 2": "g1-p2, g2-p2"}
"""The printed SODA pairs."""
TRUTH_4 = [(2, 5), (7, 9)]


def write_worked_examples(path: Path) -> None:
    """Write the page."""
    write_html(path, "worked_examples.html.j2", examples=[*_figure_4(), _figure_3(), _tables()])


def _figure_4() -> Iterator[Example]:
    from scipy.optimize import linear_sum_assignment

    from stepline.report.figure_segments import segments

    for name, (proposals, printed, hungarian, f1) in FIGURE_4.items():
        overlaps = iou(TRUTH_4, proposals)
        cells = [
            _number(f"IoU of g{row + 1} and p{column + 1}", text, overlaps[row, column])
            for row, line in enumerate(printed)
            for column, text in enumerate(line)
        ]
        best = list(zip(*linear_sum_assignment(-overlaps), strict=True))
        by_start, by_both = (matched(TRUTH_4, proposals, order=order) for order in ("start", "start_end"))
        told = PAIRS_4[name]
        pairs = [
            _pairs("Hungarian pairs", hungarian, best, ""),
            _pairs("SODA pairs, sorted by start", told, by_start, "a misprint: p2 would be matched twice"),
            _number("SODA-D F1, sorted by start", f1, 100 * soda_d(TRUTH_4, proposals, order="start").f1),
            Check("SODA pairs, sorted by start and end", "", _text(by_both), ""),
            Check(
                "SODA-D F1, sorted by start and end",
                "",
                f"{100 * soda_d(TRUTH_4, proposals).f1:.2f}",
                "both examples have the same set of proposals, so in this order they have the same score",
            ),
        ]
        yield Example(
            title=f"Fig. 4, {name}",
            text="g1 and g2 are annotated segments, p1 to p3 are proposals. p1 and p2 have the same start, so sorting "
            "by start alone keeps their given order.",
            picture=svg_address(segments(10, {"annotated": TRUTH_4, "proposed": proposals})),
            matrix=[[f"{value:.4f}" for value in line] for line in overlaps],
            checks=[*cells, *pairs],
        )


def _figure_3() -> Example:
    free, ordered = (0.32, 0.49, 0.75), (0.26, 0.49, 0.75)
    total = sum(ordered)
    precision, recall = total / 4, total / 3
    checks = [
        _number("mIoU: (.32 + .49 + .75) / 3", ".52", float(np.mean(free))),
        _number("in order: (.26 + .49 + .75) / 3", ".5", recall),
        _number("precision at tIoU .3: 2 of 4 proposals", ".5", 2 / 4),
        _number("recall at tIoU .3: 3 of 3 segments", "1.0", 3 / 3),
        _number("one-to-one recall at tIoU .3: 2 of 3 segments", ".66", 2 / 3),
        Check(
            "proposals compared in order",
            "2 (p2, p4)",
            "3",
            "the text contradicts its own sum: the term .26 belongs to a third pair",
        ),
        Check("SODA-D precision: 1.5 / 4", "", f"{precision:.4f}", "not printed"),
        Check("SODA-D recall: 1.5 / 3", "", f"{recall:.4f}", "not printed"),
        Check("SODA-D F1", "", f"{2 * precision * recall / (precision + recall):.4f}", "not printed"),
    ]
    return Example(
        title="Fig. 3",
        text="Three annotated segments and four proposals, without times. Only the numbers of the IoU matrix that the "
        "text repeats can be checked.",
        picture="",
        matrix=(),
        checks=checks,
    )


def _tables() -> Example:
    checks = [
        Check(
            "Table 1, Uniform (Avg #Duration): on one grid, mIoU is at least Recall",
            "43.43 < 43.77",
            "45.81 ≥ 43.77",
            "printed mIoU and mJaccard use labels at 1 fps, which shorten each segment by one second, but Precision, "
            "Recall and SODA-D use seconds; computed: both use seconds, for parts of whole seconds",
        ),
        Check(
            "Tables 1 and 3, uniform rows of YouCook2",
            "29.01",
            "29.018",
            "all nine numbers are truncated to two decimals instead of rounded",
        ),
        Check(
            "Sec. 5.3: gain from SODA matching in Table 2",
            "~2.5 %",
            f"{36.32 - 33.10:.2f}",
            "the number in the abstract differs",
        ),
        Check(
            "Tables 1, 3 and 4: the PDVC line equals a line of Table 2",
            "",
            "ResNeXt-3D",
            "28.35 ± 0.27 and 4.11 ± 0.05 are the values of R3D; Precision 27.44 equals the SODA-D of TSN by chance",
        ),
    ]
    return Example(title="Tables", text="Relations between the printed numbers.", picture="", matrix=(), checks=checks)


def _number(what: str, printed: str, value: float) -> Check:
    exact = Decimal(repr(round(float(value), 8)))
    step = Decimal(1).scaleb(Decimal(printed).as_tuple().exponent)  # type: ignore[arg-type]
    if exact.quantize(step, ROUND_HALF_UP) == Decimal(printed):
        verdict = "right"
    elif exact.quantize(step, ROUND_DOWN) == Decimal(printed) or 0 < exact - Decimal(printed) <= step:
        verdict = "truncated instead of rounded"
    else:
        verdict = "wrong"
    return Check(what, printed, f"{value:.4f}", verdict)


def _pairs(what: str, printed: str, pairs: Pairs, why: str) -> Check:
    computed = _text(pairs)
    return Check(what, printed, computed, "right" if printed == computed else why)


def _text(pairs: Pairs) -> str:
    return ", ".join(f"g{row + 1}-p{column + 1}" for row, column in pairs)
