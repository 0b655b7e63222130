"""Rows of a table: one row per number, with the paper's value, ours and a status."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from stepline.benchmark.words import Metric
from stepline.errors import StoreError
from stepline.tables.blind import Blind
from stepline.tables.number import Number
from stepline.tables.paper import PaperKey, Published, read_paper
from stepline.tables.status import Status, judge
from stepline.tables.text import value_text

COLUMNS = (
    *("table", "entry", "method", "modality", "setting", "context_s", "metric", "value", "paper", "rerun"),
    *("difference", "release", "split", "protocol", "inputs", "options", "value_sd", "ci_low", "ci_high", "n_videos"),
    *("n_listed", "n_in_part", "n_samples", "n_queries", "pool_used", "pool_listed", "seeds", "spec", "status", "note"),
    "command",
)
COUNTS = ("n_videos", "n_listed", "n_in_part", "n_samples", "n_queries", "pool_used", "pool_listed")
TRUNCATED = "…"
"""The mark after a number of a paper that truncates digits instead of rounding."""
UNDECLARED = "add its encoder or context to config.yaml, or an entry to tables.yaml"


@dataclass(frozen=True, kw_only=True)
class Row(Number):
    """A row of the table; ``COLUMNS`` are its columns in CSV. None and "" mean unknown.

    entry: "" for a number of the paper that no entry computes. rerun: the number in the paper's later edition, as
    printed. rerun_note: a description of that edition. n_in_part: the number of damaged videos. measure: the metric.
    column: its index among the benchmark's metrics. rank: the position of the setting in a laid-out table. printed: the
    paper's number as printed. truncated: whether the paper truncates its digits instead of rounding. selection: how the
    settings were chosen. per_video: the value of each video. Values are in percent; counts are whole numbers.
    """

    value: float | None
    paper: float | None
    rerun: str
    difference: float | None
    value_sd: float | None
    ci_low: float | None
    ci_high: float | None
    n_videos: int | None
    n_listed: int | None
    n_in_part: int | None
    n_samples: int | None
    n_queries: int | None
    pool_used: int | None
    pool_listed: int | None
    seeds: tuple[int, ...]
    status: Status
    measure: Metric
    column: int
    rank: int
    rerun_note: str
    printed: str
    truncated: bool
    selection: str
    per_video: Mapping[str, float]

    @property
    def options_text(self) -> str:
        """The options, sorted by name: ``key=value``, separated by semicolons."""
        return ";".join(f"{key}={value_text(option.value)}" for key, option in sorted(self.options.items()))

    @property
    def paper_text(self) -> str:
        """The paper's number as tables show it: with a mark if it is truncated, and the later edition's in brackets."""
        printed = f"{self.printed}{TRUNCATED}" if self.truncated else self.printed
        return " ".join(filter(None, [printed, f"[{self.rerun}]" if self.rerun else ""]))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The keywords of the method's inputs."""
        return tuple(each.word for each in self.sees)


def build(
    numbers: Sequence[Number],
    paper: Path | str | None,
    metrics: Mapping[str, Metric],
    *,
    settings: Sequence[str] = (),
    rerun: str = "",
) -> list[Row]:
    """Return the rows of a table for the requested ``numbers`` and the paper's numbers in the CSV file ``paper``.

    metrics: the benchmark's metrics by key, in the order of columns. settings: the settings that are first in a
    laid-out table, in this order. rerun: a description of the numbers in the file's column ``rerun``.

    If our number is for another split than the paper's, both are in the row but are not compared. Numbers of the paper
    that were not requested are added for each release with numbers of their table: a reference is copied, any other has
    the status ``needs``. Rows are sorted by table, release (in the order of ``numbers``), method (the paper's order,
    then ours), context and metric.

    Numbers that cannot have a value are omitted: a reference that is not in the paper, and a metric with a value in
    neither the score nor the paper (a method without class scores has no mAP). Raises StoreError if a score has no
    value for a number of the paper.
    """
    published = read_paper(paper, metrics) if paper else {}
    by_release = any(key.release for key in published)
    of_any_split = {key._replace(split=""): key for key in reversed(published)}

    def paper_key(number: Number) -> PaperKey:
        own = {field: getattr(number, field) for field in PaperKey._fields}
        key = PaperKey(**own | {"modality": _modality(number)} | ({} if by_release else {"release": ""}))
        return key if key in published else of_any_split.get(key._replace(split=""), key)

    numbers = [number for number in numbers if paper_key(number) in published or not _is_empty(number)]
    row = partial(_row, beside=_beside(numbers), metrics=metrics, settings=settings, rerun=rerun)
    rows = [row(number, published.get(paper_key(number))) for number in numbers]
    asked: dict[tuple[str, str], list[Number]] = {}
    for number in numbers:
        asked.setdefault((number.table, number.release), []).append(number)
    for (table, release), beside in asked.items():
        known = {paper_key(number) for number in beside}
        for key, printed in published.items():
            here = key.table == table and key.release in ("", release)
            if here and (printed.printed or printed.rerun) and key not in known:
                rows.append(row(_undeclared(key, beside), printed))
    releases = list(dict.fromkeys(number.release for number in numbers))
    methods = list(dict.fromkeys([*(key[:4] for key in published), *(paper_key(number)[:4] for number in numbers)]))

    def order(row: Row) -> tuple[Any, ...]:
        method = methods.index((row.table, row.method, row.modality, row.setting))
        context = float("inf") if row.context_s is None else row.context_s
        return row.table, releases.index(row.release), method, context, row.metric, row.options_text

    return sorted(rows, key=order)


def _beside(numbers: Sequence[Number]) -> Callable[[Number], Blind | None]:
    """Return a function from a number to the score of its blind entry; None for the blind entry itself or without one.

    The score's value is unknown if its options differ from the number's, or if it is a single random draw with an
    unknown standard deviation.
    """
    found = {_place(number, number.entry): number for number in numbers}

    def beside(number: Number) -> Blind | None:
        if number.blind in ("", number.entry):
            return None
        blind = found.get(_place(number, number.blind))
        measured = _measured(blind) if blind else {}
        spreads = [each for each in (measured.get("sd"), measured.get("draw_sd")) if each is not None]
        other = blind is not None and any(
            option.differs and number.options.get(key) != option for key, option in blind.options.items()
        )
        known = not other and (spreads != [] or not measured.get("seeds"))
        return Blind(
            blind.method if blind else number.blind, measured.get("value") if known else None, max(spreads, default=0.0)
        )

    return beside


def _place(number: Number, entry: str) -> tuple[Any, ...]:
    return number.table, number.release, number.split, number.context_s, number.metric, entry


def _modality(number: Number) -> str:
    return "" if number.modality == "-" else number.modality


def _is_empty(number: Number) -> bool:
    """Return whether a number that is not in the paper cannot have a value of ours either."""
    if number.reference:
        return True
    score = number.score
    return score is not None and score.get("status") != "needs" and number.metric not in score["metrics"]


def _undeclared(key: PaperKey, beside: Sequence[Number]) -> Number:
    """Return a number that is only in the paper. beside: the requested numbers of the same table and release."""
    reference = key.setting == "reference"
    splits = (number.split for number in beside if number.metric == key.metric)
    here = {"release": beside[0].release, "split": key.split or next(splits, beside[0].split)}
    return Number(
        **key._asdict() | here,
        title=beside[0].title,
        entry="",
        paper_release=beside[0].paper_release,
        reference=reference,
        note="" if reference else "no configured entry computes it",
        command="" if reference else UNDECLARED,
    )


def _row(
    number: Number,
    paper: Published | None,
    *,
    beside: Callable[[Number], Blind | None],
    metrics: Mapping[str, Metric],
    settings: Sequence[str],
    rerun: str,
) -> Row:
    score = number.score or {}
    measured = _measured(number)
    value = measured.get("value")
    counts = {**score, **measured}
    judged = judge(number, value, paper, counts, beside(number))
    remarks = [*judged.remarks]
    if paper is not None:
        remarks.append(paper.note)
        value = paper.value if number.reference else value
    selection = score.get("selection") or ""
    if measured and selection:
        remarks.append(f"selection: {selection}")
    low, high = measured.get("ci") or (None, None)
    return Row(
        **vars(number)
        | {
            "modality": _modality(number),
            "note": "; ".join(filter(None, [*remarks, number.note])),
            "command": number.command if judged.status == "needs" else "",
            **{count: counts.get(count) for count in COUNTS},
        },
        value=value,
        paper=paper.value if paper else None,
        rerun=paper.rerun if paper else "",
        difference=judged.difference,
        value_sd=measured.get("sd"),
        ci_low=low,
        ci_high=high,
        seeds=tuple(measured.get("seeds", ())),
        status=judged.status,
        measure=metrics[number.metric],
        column=list(metrics).index(number.metric),
        rank=settings.index(number.setting) if number.setting in settings else len(settings),
        rerun_note=rerun,
        printed=paper.printed if paper else "",
        truncated=paper is not None and paper.truncated,
        selection=selection if measured else "",
        per_video=measured.get("per_video") or {},
    )


def _measured(number: Number) -> Mapping[str, Any]:
    if number.reference or number.score is None or number.score.get("status") == "needs":
        return {}
    measured: Mapping[str, Any] = number.score["metrics"].get(number.metric) or {}
    if measured.get("value") is None:
        raise StoreError(
            f"the scores of entry {number.entry!r} on {number.release} have no {number.metric!r}: "
            f"score it again, or remove {number.metric!r} from its metrics in tables.yaml"
        )
    return measured
