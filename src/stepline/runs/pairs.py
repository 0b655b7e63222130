"""Differences between two entries, with bootstrap intervals over their common videos."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepline.benchmark import Benchmark, Job
from stepline.benchmark.pairs import Side, pairs
from stepline.io import write_text
from stepline.metrics.bootstrap import Difference, paired_interval
from stepline.needs import Need, in_order
from stepline.tables import context_name, is_oracle, markdown_table, percent, write_lines

COLUMNS = (
    *("table", "release", "metric", "first", "first_context_s", "second", "second_context_s", "difference", "ci_low"),
    *("ci_high", "share_above", "ahead", "n_videos", "needs", "command"),
)
HEAD = ("First", "Second", "Metric", "Difference", "95 % interval", "Above 0", "Ahead in")
READ = (
    "Difference: the first value minus the second, in percentage points, averaged over the common videos. "
    "Interval: 95 %, by a paired bootstrap over videos; with several seeds, of the mean over seeds. "
    "Above 0: the fraction of resamples with a difference above 0. Ahead in: the videos with a higher first value. "
    "A star marks a method with input that no real system would have."
)
LEVEL = 0.05
"""Significance level."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two sides and one metric. ahead: the number of the ``n`` videos in which the first side is higher.

    difference: None if a side has no value; then ``needs`` lists the missing inputs, and ``command`` computes it.
    """

    first: Side
    second: Side
    metric: str
    difference: Difference | None = None
    ahead: int = 0
    n: int = 0
    needs: Sequence[Need] = ()
    command: str = ""

    @property
    def panel(self) -> tuple[str, str]:
        """The table and the release of the pair's heading."""
        return self.first.table.name, self.first.job.release

    @property
    def texts(self) -> tuple[str, ...]:
        """A line of the CSV file: percentage points with 4 decimals, unknown values empty."""
        jobs = [side.job for side in (self.first, self.second)]
        sides = [text for job in jobs for text in (job.entry.id, "" if job.context_s is None else f"{job.context_s:g}")]
        found: tuple[str, ...] = ("",) * 6
        if self.difference:
            numbers = ("" if number != number else f"{round(number, 4) + 0.0:.4f}" for number in self.difference)
            found = (*numbers, str(self.ahead), str(self.n))
        return (*self.panel, self.metric, *sides, *found, ";".join(map(str, self.needs)), self.command)


def compare(benchmark: Benchmark[Any]) -> Iterator[Pair]:
    """Yield the pairs for each metric of both sides, in the order of declaration."""
    drawn = benchmark.options["metrics"]
    for first, second in pairs(benchmark):
        scores = [_score(benchmark, side.job) for side in (first, second)]
        needs = [Need.parse(need) for score in scores for need in score["needs"]]
        for metric in first.table.metrics:
            if not all(side.job.entry.kind.scores(metric) for side in (first, second)):
                continue
            if wanted := in_order([*needs, *benchmark.missing_of(metric)]):
                command = benchmark.filled_by("pairs.csv", wanted)
                yield Pair(first=first, second=second, metric=metric, needs=wanted, command=command)
                continue
            one, other = (score["metrics"].get(metric, {}) for score in scores)
            videos = [video for video in one.get("per_video", {}) if video in other.get("per_video", {})]
            if videos:
                values = [[side["per_video"][video] for video in videos] for side in (one, other)]
                weights = [one["weights"][video] for video in videos]
                yield Pair(
                    first=first,
                    second=second,
                    metric=metric,
                    difference=paired_interval(
                        *values,
                        samples=drawn["bootstrap_samples"],
                        seed=drawn["bootstrap_seed"],
                        weights=None if len({*weights}) == 1 else weights,
                    ),
                    ahead=sum(a > b for a, b in zip(*values, strict=True)),
                    n=len(videos),
                )


def _score(benchmark: Benchmark[Any], job: Job) -> dict[str, Any]:
    if lacking := benchmark.lacking(job.entry, job.release):
        return {"needs": list(map(str, lacking))}
    return benchmark.read_score(job)


def write_pairs(benchmark: Benchmark[Any]) -> None:
    """Write ``results/<study>/pairs.csv`` and ``.md``."""
    found, folder = list(compare(benchmark)), Path("results", benchmark.name)
    write_lines(folder / "pairs.csv", COLUMNS, (pair.texts for pair in found))
    write_text(folder / "pairs.md", _markdown(benchmark, found))


def _markdown(benchmark: Benchmark[Any], found: Sequence[Pair]) -> str:
    parts = [f"# {benchmark.cited}: differences between methods", READ]
    known = [pair for pair in found if pair.difference]
    parts += [_few(max(pair.n for pair in known))] if known else ["No pair has values."]
    for panel in dict.fromkeys(pair.panel for pair in known):
        body = [_line(benchmark, pair) for pair in known if pair.panel == panel]
        parts += [f"## Table {panel[0]}, release {panel[1]}", markdown_table(HEAD, body)]
    if gaps := [pair for pair in found if pair.needs]:
        lines = dict.fromkeys(
            (
                f"{_name(benchmark, pair.first)}, minus {_name(benchmark, pair.second)}",
                ", ".join(map(str, pair.needs)),
                f"`{pair.command}`" if pair.command else "",
            )
            for pair in gaps
        )
        parts += ["## What is missing", markdown_table(("Pair", "Needs", "Command"), lines)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _few(n: int) -> str:
    """Return a warning about few videos; "" if two pairs over ``n`` videos could pass a corrected test."""
    if 2 * (least := 2 / 2**n) < LEVEL:
        return ""
    return (
        f"There are too few videos for significance tests. Even if all differences of {n} videos had the same sign, a "
        f"two-sided sign test would give p = 2/{2**n} = {least:.3f}, the smallest possible value. With two or more "
        f"pairs, none stays below {LEVEL:g} after correction for multiple tests (Holm). Bootstrap intervals over so "
        "few videos are too narrow."
    )


def _line(benchmark: Benchmark[Any], pair: Pair) -> tuple[str, ...]:
    assert pair.difference is not None
    mean, low, high, above = pair.difference
    known = low == low
    return (
        *(_name(benchmark, pair.first), _name(benchmark, pair.second), benchmark.metrics[pair.metric].title),
        f"{'+' if mean > 0 else ''}{percent(mean)}",
        f"{percent(low)} to {percent(high)}" if known else "",
        f"{percent(100 * above)} %" if known else "",
        f"{pair.ahead} of {pair.n}",
    )


def _name(benchmark: Benchmark[Any], side: Side) -> str:
    window = "" if side.job.context_s is None else context_name(side.job.context_s)
    name = ", ".join(filter(None, [side.line.method, side.line.setting, window]))
    return f"{name} *" if is_oracle(benchmark.seen(side.job.entry)) else name
