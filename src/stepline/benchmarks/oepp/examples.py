"""Predicted plans of some windows next to the true plans."""

from collections.abc import Iterator

from stepline.benchmark import Benchmark, Entry
from stepline.benchmarks.oepp.windows import windows
from stepline.datasets import oepp
from stepline.report import Picture, svg_address
from stepline.report.figure_plans import PlannedWindow, plans
from stepline.runs.shown import SHOWN, lowest_seed

PLANNERS = {
    "matching-t3": "Matching",
    "mlp-t3": "MLP",
    "transformer-t3": "Transformer",
    "pdpp-t3": "PDPP*",
    "vlm-t3-1": "",
}
HORIZON = 3
TEST: tuple[oepp.Part, ...] = ("base", "novel")


def pictures(benchmark: Benchmark[Entry]) -> Iterator[Picture]:
    """Yield a picture for each test split of each release: true plans above the plans of the lowest seed."""
    model = benchmark.options["llm"]["model"]
    for release in filter(oepp.is_here, benchmark.options["releases"]):
        found = lowest_seed(benchmark, release, PLANNERS)
        for split in TEST:
            made = {
                PLANNERS[entry] or model: {(p.video, p.index): p.plan for p in listed if p.split == split}
                for entry, listed in found.items()
            }
            if shown := _shown(release, split, made):
                alt = "; ".join(each.said for each in shown)
                yield Picture(svg_address(plans(shown)), alt, f"Plans of test {split} windows, {release}")


def _shown(
    release: str, split: oepp.Part, made: dict[str, dict[tuple[str, int], tuple[int, ...]]]
) -> list[PlannedWindow]:
    """Return the first planned windows that are not padded, one per event."""
    pool = oepp.pool(release, split)
    found: dict[str, PlannedWindow] = {}
    for video in oepp.load(release, split):
        for window in windows([video], HORIZON, "drop")[:1]:
            planned = {name: of[video.id, window.index] for name, of in made.items() if (video.id, window.index) in of}
            named = {name: tuple(pool[each] if each >= 0 else None for each in p) for name, p in planned.items()}
            if named:
                title = f"{video.event}, {video.id}"
                found.setdefault(video.event, PlannedWindow(title=title, true=window.actions, plans=named))
    return list(found.values())[:SHOWN]
