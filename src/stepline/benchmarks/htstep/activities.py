"""Table 7: the average precision of each activity, next to the paper's."""

import csv
from pathlib import Path

from stepline.benchmarks.htstep.benchmark import BY_ACTIVITY, BY_ACTIVITY_SPLIT, MADE_UP, Htstep
from stepline.benchmarks.htstep.metrics import SPLITS
from stepline.io import write_text
from stepline.tables import markdown_table, write_lines

READINGS = {"map": "official", "query_map": "per query"}
MEAN = "mAP"
"""The line with the mean over all activities; the printed mean includes activities that the paper does not list."""
SHOWN = ("place", *BY_ACTIVITY)
"""The entries in the Markdown file: the blind baseline, and the two of the paper."""
HEADER = ("activity", "entry", "reading", "split", "value", "paper", "note")


def write_activities(benchmark: Htstep) -> None:
    """Write ``results/htstep/table7.csv`` with one line per number, and ``table7.md`` with one line per activity.

    Numbers are in percent, over all thresholds. The paper's activities come first, in its order. The Markdown file has
    the official reading of three entries.
    """
    with open(benchmark.folder / "paper" / "table7.csv", newline="", encoding="utf-8") as file:
        records = {record.pop("activity"): record for record in csv.DictReader(file)}
    printed = {
        (activity, entry, "official", BY_ACTIVITY_SPLIT): value
        for activity, record in records.items()
        for entry, value in record.items()
    }
    scored: dict[tuple[str, str, str, str], float] = {}
    for job in benchmark.by_activity:
        metrics = benchmark.read_score(job)["metrics"]
        for split in SPLITS:
            for name, reading in READINGS.items():
                if score := metrics.get(f"{split}_{name}"):
                    values = score["per_video"] | {MEAN: score["value"]}
                    scored |= {(activity, job.entry.id, reading, split): value for activity, value in values.items()}
    listed = [*(name for name in records if name != MEAN)]
    listed += sorted({activity for activity, *_ in scored} - {*listed, MEAN})
    noted = MADE_UP if benchmark.made_up else ""
    lines = sorted({*printed, *scored}, key=lambda line: ([*listed, MEAN].index(line[0]), line[1:]))
    folder = Path("results", benchmark.name)
    needs = benchmark.by_activity_needs

    def cells(line: tuple[str, str, str, str]) -> tuple[str, ...]:
        ours, paper = scored.get(line), printed.get(line, "")
        if ours is None:
            return (*line, "", paper, f"needs {needs[line[1]]}" if needs[line[1]] else "")
        return (*line, f"{ours:.4f}", paper, noted)

    write_lines(folder / "table7.csv", HEADER, map(cells, lines))
    columns = sorted({line[1:] for line in lines if line[1] in SHOWN and line[2] == "official"}, key=_place)
    header = ["activity", *(f"{entry}, {split}" for entry, _, split in columns)]
    body = [
        [activity, *(_cell(scored, printed, (activity, *column)) for column in columns)] for activity in [*listed, MEAN]
    ]
    text = "Average precision of activities over tIoU 0.3 to 0.7, in percent: ours (the paper's)."
    text = " ".join(filter(None, [text, noted and f"**{noted}.**"]))
    write_text(folder / "table7.md", f"# {benchmark.title}: Table 7\n\n{text}\n\n{markdown_table(header, body)}\n")


def _place(column: tuple[str, str, str]) -> tuple[int, int]:
    entry, _, split = column
    return SHOWN.index(entry), [*SPLITS].index(split)


def _cell(
    scored: dict[tuple[str, str, str, str], float],
    printed: dict[tuple[str, str, str, str], str],
    line: tuple[str, str, str, str],
) -> str:
    ours = f"{scored[line]:.2f}" if line in scored else ""
    return f"{ours} ({printed[line]})".strip() if line in printed else ours
