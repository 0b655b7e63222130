"""Differences between two entries, by bootstrap over the recordings that both have predictions of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.benchmarks.spacewalk import presentation
from stepline.benchmarks.spacewalk.plan import Job, Plan
from stepline.benchmarks.spacewalk.table import filled_by
from stepline.io import read_json, write_text
from stepline.metrics.bootstrap import Difference, paired_interval
from stepline.tables import METRICS, context_name, is_oracle, markdown_table, percent, write_lines

COLUMNS = (
    *("table", "release", "metric", "first", "first_context_s", "second", "second_context_s", "difference", "ci_low"),
    *("ci_high", "share_above", "ahead", "n_videos", "needs", "command"),
)
READ = (
    "Difference: the first's value less the second's, in points of percent, the mean over the recordings of both. "
    "Interval: 95 % of the bootstrap over recordings, drawn for both at once; of more seeds, of the mean over seeds. "
    "Above 0: the share of resamples with a difference above 0. Ahead in: the recordings in which the first is higher. "
    "A star marks a method that sees more than any system would have."
)
FEW = (
    "Recordings are few: these are descriptions, not tests. Were all differences of six recordings of one sign, a "
    "two-sided sign test would give 2/64 = 0.031, and nothing smaller is possible; so of two or more pairs none stays "
    "below 0.05 once corrected for their number (Holm). The bootstrap of so few recordings is too narrow."
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two entries by one metric on one release. ahead: in how many of ``n`` recordings the first is higher.

    difference: None where a side has no value; then ``needs`` says what it wants and ``command`` what fills it.
    """

    first: Job
    second: Job
    metric: str
    difference: Difference | None = None
    ahead: int = 0
    n: int = 0
    needs: tuple[str, ...] = ()
    command: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """A line of the CSV file: points with 4 decimals, what is not known empty."""
        sides = [text for job in (self.first, self.second) for text in (job.entry.id, _number(job.context_s))]
        found: tuple[str, ...] = ("",) * 6
        if self.difference:
            numbers = ("" if number != number else f"{round(number, 4) + 0.0:.4f}" for number in self.difference)
            found = (*numbers, str(self.ahead), str(self.n))
        head = (self.first.entry.table, self.first.release, self.metric)
        return (*head, *sides, *found, ";".join(self.needs), self.command)


def compare(plan: Plan) -> Iterator[Pair]:
    """Yield the pairs of the plan by every metric that both sides have, in the order of declaration."""
    drawn = plan.study_config["metrics"]
    for first, second in presentation.pairs(plan):
        sides = [_scores(plan, job) for job in (first, second)]
        needs = tuple(dict.fromkeys(item for side in sides for item in side["needs"]))
        for metric in first.entry.metrics:
            if needs:
                command = filled_by(plan, "pairs.csv", needs)
                yield Pair(first=first, second=second, metric=metric, needs=needs, command=command)
                continue
            values = [side["metrics"].get(metric, {}).get("per_video", {}) for side in sides]
            videos = [video for video in values[0] if video in values[1]]
            if videos:
                one, other = ([side[video] for video in videos] for side in values)
                yield Pair(
                    first=first,
                    second=second,
                    metric=metric,
                    difference=paired_interval(
                        one, other, samples=drawn["bootstrap_samples"], seed=drawn["bootstrap_seed"]
                    ),
                    ahead=sum(a > b for a, b in zip(one, other, strict=True)),
                    n=len(videos),
                )


def _scores(plan: Plan, job: Job) -> dict[str, Any]:
    if lacking := plan.lacking_on(job.entry, job.release):
        return {"needs": lacking}
    score: dict[str, Any] = read_json(paths.scores(plan.study.name, job.release, job.entry.id, job.context))
    return score


def write_pairs(plan: Plan) -> None:
    """Write ``results/<study>/pairs.csv`` and ``.md``."""
    pairs = list(compare(plan))
    folder = Path("results", plan.study.name)
    write_lines(folder / "pairs.csv", COLUMNS, (pair.texts for pair in pairs))
    write_text(folder / "pairs.md", _markdown(plan.study.title, pairs))


def _markdown(title: str, pairs: Sequence[Pair]) -> str:
    parts = [f"# {title}: differences between methods", READ, FEW]
    known = [pair for pair in pairs if pair.difference]
    if not known:
        parts += ["No pair has values."]
    for table, release in dict.fromkeys((pair.first.entry.table, pair.first.release) for pair in known):
        part = [pair for pair in known if (pair.first.entry.table, pair.first.release) == (table, release)]
        parts += [f"## Table {table}, release {release}", markdown_table(HEAD, map(_line, part))]
    if gaps := [pair for pair in pairs if pair.needs]:
        lines = dict.fromkeys(
            (f"{_name(pair.first)}, less {_name(pair.second)}", "; ".join(pair.needs), f"`{pair.command}`")
            for pair in gaps
        )
        parts += ["## What is missing", markdown_table(("Pair", "Needs", "Filled by"), lines)]
    return "\n\n".join(parts) + "\n"


HEAD = ("First", "Second", "Metric", "Difference", "95 % interval", "Above 0", "Ahead in")


def _line(pair: Pair) -> tuple[str, ...]:
    assert pair.difference is not None
    mean, low, high, above = pair.difference
    known = low == low
    return (
        *(_name(pair.first), _name(pair.second), METRICS[pair.metric], f"{'+' if mean > 0 else ''}{percent(mean)}"),
        f"{percent(low)} to {percent(high)}" if known else "",
        f"{percent(100 * above)} %" if known else "",
        f"{pair.ahead} of {pair.n}",
    )


def _name(job: Job) -> str:
    entry = job.entry
    name = f"{entry.method}, {entry.setting}" + ("" if job.context_s is None else f", {context_name(job.context_s)}")
    return f"{name} *" if is_oracle(entry) else name


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
