"""Rows of a table: the paper's number beside ours, one line per number, with a status.

The status of a line is the first of these that holds:

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

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, Literal

from stepline.errors import ConfigError, StoreError

Status = Literal["exact", "within", "differs", "not comparable", "needs", "reference", "inconsistent", "ours"]

COLUMNS = (
    *("table", "method", "modality", "setting", "context_s", "metric", "value", "paper", "rerun", "difference"),
    *("release", "split", "protocol", "inputs", "options", "value_sd", "ci_low", "ci_high", "n_videos", "n_listed"),
    *("n_samples", "n_queries", "pool_used", "pool_listed", "seeds", "spec", "status", "note", "command"),
)
METRICS = {
    "accuracy": "Acc",
    "map": "mAP",
    "miou_1fps": "mIoU (1 fps)",
    "mjaccard_1fps": "mJaccard (1 fps)",
    "miou": "mIoU",
    "mjaccard": "mJaccard",
    "precision": "Precision",
    "recall": "Recall",
    "soda_d": "SODA-D",
    "bleu4": "B4",
    "meteor": "METEOR",
    "cider": "CIDEr",
    "soda_c": "SODA-C",
    "rouge_l": "ROUGE-L",
    "meteor_stem": "METEOR-stem",
    "soda_c_stem": "SODA-C (METEOR-stem)",
    "val_sr": "Val SR",
    "val_acc": "Val Acc",
    "val_miou": "Val mIoU",
    "base_sr": "Base SR",
    "base_acc": "Base Acc",
    "base_miou": "Base mIoU",
    "novel_sr": "Novel SR",
    "novel_acc": "Novel Acc",
    "novel_miou": "Novel mIoU",
    "events": "Events",
    "actions": "Actions",
    "videos": "Videos",
    "segments": "Segments",
}
"""Columns of laid-out tables, in their order."""
COUNTS = ("events", "actions", "videos", "segments")
"""The metrics that are whole numbers; all others are percentages."""
SETTINGS = ("baseline", "reference", "zero-shot", "tuned", "last-layer", "all-layer")
SEES = {
    "window": "its window",
    "recording": "the whole recording",
    "train": "the training recordings",
    "val": "the validation recordings",
    "train_annotation": "the training annotation",
    "video": "the video",
    "duration": "the video's duration",
    "preview_end": "where the preview ends",
    "observations": "the start and end observations",
    "action_pool": "the action pool",
    "segment_count": "THE NUMBER OF SEGMENTS",
    "segments": "THE SEGMENTS",
    "sample_list": "THE SAMPLE LIST",
    "annotated_span": "THE ANNOTATED SPAN",
}
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
UNDECLARED = "add its encoder or context to config.yaml, or an entry to tables.yaml"


@dataclass(frozen=True, kw_only=True)
class Line:
    """A number that is asked for: one entry on one release at one context by one metric.

    modality: such as ``L`` or ``V+L``, or empty or ``-`` where it has none. context_s: None where it is unlimited.
    inputs: what the method may see, words of ``SEES``. paper_options: the paper's value of options, where it is known.
    paper_release: the release on which the paper's numbers were made, empty where there is none.
    score: the content of the score file, None where there is none; then ``needs`` says what it wants
    (``weights:<backbone>``, ``videos:<study>``, ``key:<variable>``) and ``command`` what fills it. A metric's own
    ``n_videos``, ``n_listed`` and ``n_samples`` win over those of the whole score.
    reference: the number is copied from the paper. subset: what part of the split is evaluated, empty where all of it.
    title: what the table is about.
    """

    table: str
    title: str
    entry: str
    method: str
    modality: str
    setting: str
    context_s: float | None
    metric: str
    release: str
    split: str
    protocol: str = "paper"
    inputs: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    paper_options: Mapping[str, Any] = field(default_factory=dict)
    paper_release: str = "v0"
    spec: str = ""
    note: str = ""
    command: str = ""
    score: Mapping[str, Any] | None = None
    needs: tuple[str, ...] = ()
    reference: bool = False
    subset: str = ""


@dataclass(frozen=True, kw_only=True)
class Published:
    """A number of the paper, and by how much a rerun may miss it, with the source of that.

    printed: as printed, empty where it is not known; ``<0.01`` is a bound. rerun: what the authors' later edition
    prints, made on a later release; empty where it has none. decimals: the digits after the point in its table, of
    which some tables leave out last zeros. truncated: the paper cut the digits off where others round. evidence: why it
    cannot be right. note: what else must be known of it.
    """

    printed: str
    rerun: str
    decimals: int
    tolerance: float | None
    tolerance_source: str
    evidence: str
    note: str
    truncated: bool

    @property
    def value(self) -> float | None:
        """The number, in percent or a count; None of a bound."""
        return float(self.printed) if self.printed and self.bound is None else None

    @property
    def bound(self) -> float | None:
        """Below what the number lies, where the paper prints no more."""
        return float(self.printed[1:]) if self.printed.startswith("<") else None


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table. The fields of ``COLUMNS`` are its CSV form; None and "" are unknown.

    ``rerun`` is the number of the paper's later edition, as printed. Beside the columns: ``printed``, the paper's
    number as printed; ``entry``; ``title``, of the table; ``needs``; ``subset``; ``selection``, how the settings were
    chosen; ``per_video``, the value of each video. Values in percent, those of ``COUNTS`` whole numbers.
    """

    table: str
    method: str
    modality: str
    setting: str
    context_s: float | None
    metric: str
    value: float | None
    paper: float | None
    rerun: str
    difference: float | None
    release: str
    split: str
    protocol: str
    inputs: tuple[str, ...]
    options: str
    value_sd: float | None
    ci_low: float | None
    ci_high: float | None
    n_videos: int | None
    n_listed: int | None
    n_samples: int | None
    n_queries: int | None
    pool_used: int | None
    pool_listed: int | None
    seeds: tuple[int, ...]
    spec: str
    status: Status
    note: str
    command: str
    entry: str
    title: str
    printed: str
    needs: tuple[str, ...]
    subset: str
    selection: str
    per_video: Mapping[str, float]

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique in a table: table, method, modality, setting, context_s, metric, release, options."""
        context = number_text(self.context_s)
        group = (self.table, self.method, self.modality, self.setting)
        return (*group, context, self.metric, self.release, self.options)


_PaperKey = tuple[str, str, str, str, float | None, str, str]


def read_paper(path: Path | str) -> dict[_PaperKey, Published]:
    """Return the paper's numbers, in the file's order, by table, method, modality, setting, context_s, metric, release.

    release: "" where the file has no such column, for a paper of one release: its numbers stand beside all of ours.
    """
    published: dict[_PaperKey, Published] = {}
    with open(path, newline="", encoding="utf-8") as file:
        for record in csv.DictReader(file):
            context = float(record["context_s"]) if record["context_s"] else None
            group = (record["table"], record["method"], record["modality"], record["setting"])
            published[*group, context, record["metric"], record.get("release", "")] = Published(
                printed=record["paper"],
                rerun=record["rerun"],
                decimals=int(record["decimals"] or 0),
                tolerance=float(record["tolerance"]) if record["tolerance"] else None,
                tolerance_source=record["tolerance_source"],
                evidence=record["evidence"],
                note=record["note"],
                truncated=record.get("truncated") == "true",
            )
    return published


def build(lines: Sequence[Line], paper: Path | str | None) -> list[Row]:
    """Return the rows of a table from the ``lines`` asked for and the paper's numbers in the CSV file ``paper``.

    A number of the paper that no line asks for is added for each release that has lines of its table: as a copy where
    it is a reference, as ``needs`` elsewhere. Rows are sorted by table, release (in the order of ``lines``), method
    (the paper's order, then ours), context and metric.

    A line that can have no number is left out: a reference that the paper does not have, and a metric of which neither
    the score nor the paper has a value (a method without class scores has no mAP). Raises ConfigError where two lines
    have the same key, StoreError where a score lacks a number that the paper has.
    """
    published = read_paper(paper) if paper else {}
    by_release = any(key[-1] for key in published)

    def paper_key(line: Line) -> _PaperKey:
        modality = "" if line.modality == "-" else line.modality
        release = line.release if by_release else ""
        return line.table, line.method, modality, line.setting, line.context_s, line.metric, release

    lines = [line for line in lines if paper_key(line) in published or not _is_empty(line)]
    rows = [_row(line, published.get(paper_key(line))) for line in lines]
    asked = {(paper_key(line), line.release) for line in lines}
    for table, title, release, split in dict.fromkeys((li.table, li.title, li.release, li.split) for li in lines):
        for key, number in published.items():
            here = key[0] == table and key[-1] in ("", release)
            if here and (number.printed or number.rerun) and (key, release) not in asked:
                rows.append(_row(_undeclared(key, title, release, split), number))
    _check_unique(rows)
    releases = list(dict.fromkeys(line.release for line in lines))
    methods = list(dict.fromkeys(key[:4] for key in published))
    methods += list(dict.fromkeys(paper_key(line)[:4] for line in lines))

    def order(row: Row) -> tuple[Any, ...]:
        method = methods.index((row.table, row.method, row.modality, row.setting))
        context = float("inf") if row.context_s is None else row.context_s
        return row.table, releases.index(row.release), method, context, row.metric, row.options

    return sorted(rows, key=order)


def _is_empty(line: Line) -> bool:
    """Return whether a line to which the paper has no number can have none of ours either."""
    if line.reference:
        return True
    return line.score is not None and line.score.get("status") != "needs" and line.metric not in line.score["metrics"]


def _undeclared(key: _PaperKey, title: str, release: str, split: str) -> Line:
    table, method, modality, setting, context_s, metric, _ = key
    reference = setting == "reference"
    return Line(
        table=table,
        title=title,
        entry="",
        method=method,
        modality=modality,
        setting=setting,
        context_s=context_s,
        metric=metric,
        release=release,
        split=split,
        reference=reference,
        note="" if reference else "nothing that is configured computes it",
        command="" if reference else UNDECLARED,
    )


def _check_unique(rows: Iterable[Row]) -> None:
    seen: dict[tuple[str, ...], Row] = {}
    for row in rows:
        other = seen.setdefault(row.key, row)
        if other is not row:
            raise ConfigError(
                f"entries {other.entry!r} and {row.entry!r} give the same line ({', '.join(filter(None, row.key))}): "
                "give one of them another method, setting or option"
            )


def _row(line: Line, paper: Published | None) -> Row:
    score = line.score or {}
    measured = _measured(line)
    value = measured.get("value")
    counts = {**score, **measured}
    status, difference, remarks = _judge(line, value, paper, _partial(line, counts))
    if paper is not None:
        remarks += [paper.note]
        value = paper.value if line.reference else value
    selection = score.get("selection") or ""
    if measured and selection:
        remarks.append(f"selection: {selection}")
    low, high = measured.get("ci") or (None, None)
    return Row(
        table=line.table,
        method=line.method,
        modality="" if line.modality == "-" else line.modality,
        setting=line.setting,
        context_s=line.context_s,
        metric=line.metric,
        value=value,
        paper=paper.value if paper else None,
        rerun=paper.rerun if paper else "",
        difference=difference,
        release=line.release,
        split=line.split,
        protocol=line.protocol,
        inputs=line.inputs,
        options=";".join(f"{key}={value_text(line.options[key])}" for key in sorted(line.options)),
        value_sd=measured.get("sd"),
        ci_low=low,
        ci_high=high,
        n_videos=counts.get("n_videos"),
        n_listed=counts.get("n_listed"),
        n_samples=counts.get("n_samples"),
        n_queries=counts.get("n_queries"),
        pool_used=counts.get("pool_used"),
        pool_listed=counts.get("pool_listed"),
        seeds=tuple(measured.get("seeds", ())),
        spec=line.spec,
        status=status,
        note="; ".join(filter(None, [*remarks, line.note])),
        command=line.command if status == "needs" else "",
        entry=line.entry,
        title=line.title,
        printed=paper.printed if paper else "",
        needs=line.needs,
        subset=line.subset,
        selection=selection if measured else "",
        per_video=measured.get("per_video") or {},
    )


def _measured(line: Line) -> Mapping[str, Any]:
    if line.reference or line.score is None or line.score.get("status") == "needs":
        return {}
    measured: Mapping[str, Any] = line.score["metrics"].get(line.metric) or {}
    if measured.get("value") is None:
        raise StoreError(
            f"the scores of entry {line.entry!r} on {line.release} hold no {line.metric!r}: "
            f"score it again, or leave {line.metric!r} out of its metrics in tables.yaml"
        )
    return measured


def _judge(
    line: Line, value: float | None, paper: Published | None, partial: list[str]
) -> tuple[Status, float | None, list[str]]:
    """Return a line's status, its difference from the paper, and the remarks that explain them.

    partial: what of the split is not evaluated.
    """
    if line.reference:
        made = f", made on {line.paper_release}" if line.paper_release not in ("", line.release) else ""
        return "reference", None, [f"copied from the paper{made}"]
    if value is None:
        return "needs", None, [f"needs {';'.join(line.needs)}"] if line.needs else []
    if paper is None or not paper.printed:
        return "ours", None, partial
    if paper.evidence:
        return "inconsistent", None, [f"the paper's number cannot be right: {paper.evidence}", *partial]
    other = partial + _other_protocol(line)
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


def _partial(line: Line, counts: Mapping[str, Any]) -> list[str]:
    remarks = [f"subset: {line.subset}"] if line.subset else []
    for used, listed, what in (("n_videos", "n_listed", "videos"), ("pool_used", "pool_listed", "pool")):
        if counts.get(used) is not None and counts.get(listed) is not None and counts[used] < counts[listed]:
            remarks.append(f"{what}: {counts[used]} of {counts[listed]} evaluated")
    return remarks


def _other_protocol(line: Line) -> list[str]:
    remarks = []
    if line.release != line.paper_release:
        remarks.append(f"release {line.release}, the paper's numbers were made on {line.paper_release or 'no release'}")
    if line.protocol != "paper":
        remarks.append(f"protocol {line.protocol} the paper's")
    for key, theirs in sorted(line.paper_options.items()):
        if key in line.options and line.options[key] != theirs:
            remarks.append(f"{key}={value_text(line.options[key])} (published: {value_text(theirs)})")
    return remarks


def round_half_up(value: float, step: Decimal) -> Decimal:
    """Return ``value`` with the digits of ``step``; halves go up, also those just below which a float lies."""
    return Decimal(repr(round(value, 8))).quantize(step, ROUND_HALF_UP)


def percent(value: float) -> str:
    """Return a percentage with the 2 decimals of the papers."""
    return str(round_half_up(value, Decimal("0.01")))


def metric_text(metric: str, value: float) -> str:
    """Return a metric's value as it is shown: a whole number of a count, else a percentage."""
    return str(round_half_up(value, Decimal(1))) if metric in COUNTS else percent(value)


def value_text(value: Any) -> str:
    """Return an option's or a cell's value as text; lists are joined by a comma."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        return ",".join(map(value_text, value))
    return str(value)


def number_text(value: float | None) -> str:
    """Return a number without needless zeros, empty where it is unknown."""
    return "" if value is None else f"{float(value)!r}".removesuffix(".0")
