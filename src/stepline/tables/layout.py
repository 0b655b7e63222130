"""The layout of a table: panels as in the paper, the missing numbers, and the facts needed to read it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from stepline.benchmark.words import Metric, Sees
from stepline.tables.rows import Row
from stepline.tables.status import MARKS, Status
from stepline.tables.text import metric_text


@dataclass(frozen=True)
class Cell:
    """The text of a cell in a laid-out table, and the status of its first number."""

    text: str
    status: Status | None


@dataclass(frozen=True)
class PanelLine:
    """A method's line in a laid-out table.

    sees: the input that the method may use. oracle: whether this includes input that no real system would have.
    """

    setting: str
    method: str
    modality: str
    sees: str
    oracle: bool
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Panel:
    """A table on one release, laid out as in the paper: methods by setting, columns by context and metric."""

    title: str
    columns: tuple[str, ...]
    lines: tuple[PanelLine, ...]


def context_name(context_s: float | None) -> str:
    """Return a window length as in the paper: ``10 s``, ``3 min``, or ``unlimited``."""
    if context_s is None:
        return "unlimited"
    if context_s >= 60 and context_s % 60 == 0:
        return f"{context_s / 60:g} min"
    return f"{context_s:g} s"


def is_oracle(seen: Iterable[Sees]) -> bool:
    """Return whether a method uses input that no real system would have."""
    return any(each.oracle for each in seen)


def sees_text(seen: Iterable[Sees]) -> str:
    """Return the inputs of a method as text; oracle inputs are in capitals."""
    return ", ".join(each.text.upper() if each.oracle else each.text for each in seen) or "nothing"


def measures(rows: Iterable[Row]) -> dict[str, Metric]:
    """Return the metrics of the rows by key, in the order of columns."""
    return {row.metric: row.measure for row in sorted(rows, key=lambda row: row.column)}


def panels(rows: Sequence[Row]) -> list[Panel]:
    """Return the laid-out tables: for each table and release the paper's methods, then additional methods."""
    result = []
    for (table, release), part in groups(rows).items():
        name = f"Table {table}: {part[0].title}, release {release}"
        known = {(row.method, row.modality, row.setting) for row in part if row.printed or row.rerun}
        ours = [row for row in part if (row.method, row.modality, row.setting) not in known]
        theirs = [row for row in part if (row.method, row.modality, row.setting) in known]
        if theirs:
            result.append(_panel(f"{name}: the paper's methods", theirs))
        if ours:
            result.append(_panel(f"{name}: additional methods" if theirs else name, ours))
    return result


def groups(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the rows grouped by (table, release), in the original order."""
    grouped: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row.table, row.release), []).append(row)
    return grouped


def _panel(title: str, rows: Sequence[Row]) -> Panel:
    contexts = sorted({row.context_s for row in rows}, key=lambda c: float("inf") if c is None else c)
    metrics = measures(rows)
    columns = [(c, m) for c in contexts for m in metrics if any((row.context_s, row.metric) == (c, m) for row in rows)]
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.setting, row.method, row.modality), []).append(row)
    lines = []
    for (setting, method, modality), group in sorted(groups.items(), key=lambda item: item[1][0].rank):
        entries = list(dict.fromkeys(row.entry for row in group if row.entry)) or [""]
        for index, entry in enumerate(entries):
            mine = [row for row in group if row.entry == entry or (index == 0 and not row.entry)]
            seen = next((row.sees for row in mine if row.sees), ())
            lines.append(
                PanelLine(
                    setting=setting,
                    method=f"{method} ({entry})" if len(entries) > 1 else method,
                    modality=modality,
                    sees=sees_text(seen),
                    oracle=is_oracle(seen),
                    cells=tuple(
                        _cell([row for row in mine if (row.context_s, row.metric) == column]) for column in columns
                    ),
                )
            )
    if contexts == [None]:
        names = tuple(metrics[m].title for _, m in columns)
    else:
        names = tuple(f"{_window(c)} {metrics[m].title}" if len(metrics) > 1 else _window(c) for c, m in columns)
    return Panel(title=title, columns=names, lines=tuple(lines))


def _window(context_s: float | None) -> str:
    return "unlimited" if context_s is None else f"w={context_name(context_s)}"


def _cell(rows: Sequence[Row]) -> Cell:
    return Cell(" / ".join(map(_cell_text, rows)), rows[0].status if rows else None)


def _cell_text(row: Row) -> str:
    mark, printed = MARKS[row.status], row.paper_text
    if row.status == "reference":
        return f"{printed} {mark}".strip()
    paper = f"({printed})" if printed else ""
    value = "" if row.value is None else metric_text(row.measure, row.value)
    return " ".join(filter(None, [mark, paper] if row.status == "needs" else [value, paper, mark]))


@dataclass(frozen=True)
class Missing:
    """Numbers with the same missing inputs: what they need, the command that computes them, their methods by table."""

    needs: str
    command: str
    methods: tuple[str, ...]
    count: int


def missing(rows: Sequence[Row]) -> list[Missing]:
    """Return the rows with status ``needs``, grouped by missing inputs and command."""
    lacking: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.status == "needs":
            lacking.setdefault((", ".join(map(str, row.needs)) or row.note, row.command), []).append(row)
    return [
        Missing(
            needs=needs,
            command=command,
            methods=tuple(
                dict.fromkeys(f"Table {table}: {_methods(part)}" for (table, _), part in groups(group).items())
            ),
            count=len(group),
        )
        for (needs, command), group in lacking.items()
    ]


def facts(rows: Sequence[Row]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return the facts needed to read each table and release: (table, release, [(term, text)])."""
    return [(table, release, _facts(part)) for (table, release), part in groups(rows).items()]


def _facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    done = [row for row in rows if row.value is not None and row.status != "reference"]
    terms = [
        ("Release", rows[0].release),
        ("Split", _by_part(rows, lambda row: row.split)),
        ("Protocol", _by_method(done, lambda row: row.protocol)),
        ("Input of a method", _by_method(done, lambda row: sees_text(row.sees))),
        ("Oracles", _methods([row for row in done if is_oracle(row.sees)]) or "none"),
        ("Videos evaluated / listed", _by_part(done, lambda row: _share(row.n_videos, row.n_listed, row.n_in_part))),
        ("Samples", _by_part(done, lambda row: _count(row.n_samples))),
        ("Queries", _by_method(done, lambda row: _count(row.n_queries))),
        ("Pool used / listed", _by_method(done, lambda row: _share(row.pool_used, row.pool_listed, row.n_in_part))),
        ("Seeds", _by_method(done, lambda row: ";".join(map(str, row.seeds)))),
        ("± after a value", "standard deviation over the seeds" if any(r.value_sd is not None for r in done) else ""),
        ("Intervals", "95 %, by bootstrap" if any(row.ci_low is not None for row in done) else ""),
        ("[Re-run]", next((row.rerun_note for row in rows if row.rerun), "")),
        ("Selection", _by_method(done, lambda row: row.selection)),
        ("Options", _by_part(done, lambda row: row.options_text.replace(";", ", "))),
        ("Subset", _by_method(rows, lambda row: row.subset) or "none: the full split"),
    ]
    return [(term, text) for term, text in terms if text]


def _methods(rows: Iterable[Row]) -> str:
    named = (f"{row.method} ({row.setting})" if row.setting else row.method for row in rows)
    return ", ".join(dict.fromkeys(named))


def _by_method(rows: Sequence[Row], fact: Callable[[Row], str], named: Callable[[list[Row]], str] = _methods) -> str:
    """Return a fact once if all rows share it; otherwise each value with the methods it applies to.

    named: returns the text for a group of rows instead of their methods.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(fact(row), []).append(row)
    if len(groups) == 1:
        return next(iter(groups))
    return "; ".join(f"{text}: {named(group)}" for text, group in groups.items() if text)


def _by_part(rows: Sequence[Row], fact: Callable[[Row], str]) -> str:
    """Return a fact like ``_by_method``, with its metrics if it does not apply to all metrics of a score.

    If it applies to the same metrics of every score, the methods are omitted.
    """

    def of(row: Row) -> tuple[str, str, float | None]:
        return row.method, row.entry, row.context_s

    def named(group: list[Row]) -> str:
        scores, metrics = {of(row) for row in group}, {row.metric for row in group}
        if not metrics < {row.metric for row in rows if of(row) in scores}:
            return _methods(group)
        names = ", ".join(measure.title for measure in measures(group).values())
        return names if scores == {of(row) for row in rows} else f"{_methods(group)} ({names})"

    return _by_method(rows, fact, named)


def _count(number: int | None) -> str:
    return "" if number is None else str(number)


def _share(used: int | None, listed: int | None, in_part: int | None) -> str:
    part = f", {in_part} in part" if in_part else ""
    return "" if used is None or listed is None else f"{used} / {listed}{part}"
