"""Plans of some windows beside the true ones."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from stepline.benchmark import Benchmark, Entry
from stepline.benchmarks.oepp.kinds import Plan
from stepline.benchmarks.oepp.windows import windows
from stepline.datasets import oepp
from stepline.report import Picture, svg_address
from stepline.runs.shown import lowest_seed

if TYPE_CHECKING:
    from stepline.report.figure_plans import PlannedWindow

SHOWN = 3
"""Windows of each test split whose plans are drawn: the first ones of as many events that are not padded."""
PLANNERS = {
    "matching-t3": "Matching",
    "mlp-t3": "MLP",
    "transformer-t3": "Transformer",
    "pdpp-t3": "PDPP*",
    "vlm-t3-1": "",
}
HORIZON = 3

Planned = Mapping[tuple[str, str, int], tuple[int, ...]]
"""By split, video and place of the first action."""


def plans(benchmark: Benchmark[Entry]) -> list[Picture]:
    """Return a picture of each test split of each release: true plans, and below them those of the lowest seed."""
    releases = filter(oepp.is_here, benchmark.options["releases"])
    return [picture for release in releases for picture in _plans(benchmark, release)]


def _plans(benchmark: Benchmark[Entry], release: str) -> Iterator[Picture]:
    from stepline.report.figure_plans import plans

    found: dict[str, list[Plan]] = lowest_seed(benchmark, release, PLANNERS)
    made = {
        PLANNERS[entry] or benchmark.options["llm"]["model"]: {(p.split, p.video, p.index): p.plan for p in each}
        for entry, each in found.items()
    }
    for split in ("base", "novel"):
        if shown := _shown(release, split, made):
            alt = "; ".join(
                f"{each.title}: {', '.join(each.true)}"
                + "".join(f"; {name}: {', '.join(map(str, steps))}" for name, steps in each.plans.items())
                for each in shown
            )
            yield Picture(svg_address(plans(shown)), alt, f"Plans of test {split} windows, {release}")


def _shown(release: str, split: oepp.Part, made: Mapping[str, Planned]) -> "list[PlannedWindow]":
    from stepline.report.figure_plans import PlannedWindow

    pool = oepp.pool(release, split)
    found: dict[str, PlannedWindow] = {}
    for video in oepp.load(release, split):
        for window in windows([video], HORIZON, "drop")[:1]:
            key = split, window.video, window.index
            named = {name: tuple(pool[e] if e >= 0 else None for e in p[key]) for name, p in made.items() if key in p}
            if named:
                title = f"{video.event}, {video.id}"
                found.setdefault(video.event, PlannedWindow(title=title, true=window.actions, plans=named))
    return list(found.values())[:SHOWN]
