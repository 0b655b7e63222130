"""Durations of recordings and clips: Tables A1 and A5 and Figure A2 of the paper."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from stepline import paths
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.presentation import PRINTED
from stepline.datasets.schema import SPLITS, Release, Split
from stepline.io import write_bytes, write_text
from stepline.needs import Need
from stepline.report.clock import clock
from stepline.report.shots import read_shots
from stepline.tables import MARKS, Status, markdown_table, write_lines

OURS = "Spacewalk-18"
MEASURES = {"certificate_s": "Temporal certificate", "clip_s": "Average clip length", "test_s": "Test duration"}
LABELS = {0: "steps and Irrelevant", 1: "steps"}


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A recording's duration in the released annotation, and as printed in the paper, which truncates to seconds."""

    video: str
    date: str
    split: str
    duration_s: float
    paper: str

    @property
    def difference_s(self) -> int | None:
        """Our duration minus the paper's, in whole seconds; None if the paper does not list the recording."""
        hours, minutes, seconds = map(int, self.paper.split(":")) if self.paper else (0, 0, 0)
        return int(self.duration_s) - 3600 * hours - 60 * minutes - seconds if self.paper else None

    @property
    def status(self) -> Status:
        """``exact`` if both agree to the second, otherwise ``differs``; ``ours`` if the paper has no duration."""
        return "ours" if self.difference_s is None else "differs" if self.difference_s else "exact"

    @property
    def texts(self) -> tuple[str, ...]:
        """The line of Table A1."""
        difference = "" if self.difference_s is None else str(self.difference_s)
        return (
            *(self.video, self.date, self.split, clock(self.duration_s), self.paper),
            *(f"{self.duration_s:.3f}", difference, self.status),
        )


A1 = ("recording", "date", "split", "duration", "paper", "duration_s", "difference_s", "status")


def recordings(release: Release) -> list[Recorded]:
    """Return the recordings' durations: first those that the paper lists, in its order, then the others."""
    listed = {record["video"]: record for record in _records("tableA1")}
    order = {video: place for place, video in enumerate(listed)}
    return [
        Recorded(
            video=video,
            date=listed[video]["date"] if video in listed else "",
            split=recording.split,
            duration_s=recording.duration_s,
            paper=listed[video]["paper"] if video in listed else "",
        )
        for video, recording in sorted(release.recordings.items(), key=lambda item: order.get(item[0], len(order)))
    ]


def clips(release: Release, splits: Sequence[Split], lowest: int) -> list[float]:
    """Return the durations, in seconds, of the splits' segments with labels of ``lowest`` or above."""
    return [
        segment.end_s - segment.start_s
        for split in splits
        for video in release.splits[split]
        for segment in release.recordings[video].segments
        if segment.label >= lowest
    ]


class Measured(NamedTuple):
    """A number of Table A5.

    of: the splits and labels that it covers. value: computed on one release, in seconds; None if nothing is computed.
    paper: as printed.
    """

    dataset: str
    measure: str
    of: str
    release: str
    value: float | None
    paper: str
    status: Status
    note: str

    @property
    def texts(self) -> tuple[str, ...]:
        """The line of the CSV file."""
        value = difference = ""
        if self.value is not None:
            value = f"{self.value:.2f}"
            difference = f"{self.value - float(self.paper):.2f}" if self.status in ("within", "differs") else ""
        return self.dataset, self.measure, self.of, self.release, value, self.paper, difference, self.status, self.note

    @property
    def cell(self) -> str:
        """Our value and the paper's, formatted as in the other tables."""
        paper = f"({self.paper})" if self.paper else ""
        return " ".join(filter(None, (f"{self.value:,.2f}", paper, MARKS[self.status])))


A5 = ("dataset", "measure", "of", "release", "value_s", "paper_s", "difference_s", "status", "note")


def published() -> list[Measured]:
    """Return the numbers of Table A5 that are copied: other data sets, and the temporal certificate.

    The certificate is measured with human viewers.
    """
    return [
        Measured(record["dataset"], measure, "as published", "", None, record[key], "reference", "")
        for record in _records("tableA5")
        for key, measure in MEASURES.items()
        if record["dataset"] != OURS or key == "certificate_s"
    ]


def measured(release: Release, *, paper: bool) -> Iterator[tuple[int, Measured, Measured]]:
    """Yield the number of segments, their average length and their total length, by splits and labels.

    paper: whether to compare them with the paper's two numbers.
    """
    (printed,) = (record for record in _records("tableA5") if record["dataset"] == OURS)
    for lowest, labels in LABELS.items():
        for splits in (SPLITS, *((split,) for split in SPLITS)):
            seconds = clips(release, splits, lowest)
            if not seconds:
                continue
            name = OURS if paper else release.study
            of = f"{'all splits' if splits == SPLITS else splits[0]}, {labels}"
            clip = printed["clip_s"] if paper and (splits, lowest) == (SPLITS, 0) else ""
            test = printed["test_s"] if paper and (splits, lowest) == (("test",), 0) else ""
            mean, total = sum(seconds) / len(seconds), sum(seconds)
            yield (
                len(seconds),
                Measured(name, MEASURES["clip_s"], of, release.name, mean, clip, *_judged(release, mean, clip, CLIP)),
                Measured(
                    name,
                    MEASURES["test_s"] if splits == ("test",) else "Duration",
                    *(of, release.name, total, test, *_judged(release, total, test, TEST)),
                ),
            )


def _judged(release: Release, value: float, paper: str, tolerance: tuple[float, str]) -> tuple[Status, str]:
    if not paper:
        return "ours", ""
    if release.name != Spacewalk.paper_release:
        return "not comparable", f"the paper's numbers were computed on {Spacewalk.paper_release}"
    return "within" if abs(value - float(paper)) <= tolerance[0] else "differs", tolerance[1]


CLIP = (
    0.5,
    "tolerance ±0.5 s, half the printed digit; no set of segments has this average: it may cover the certified 2.5 h",
)
TEST = 18.0, "tolerance ±18 s: the paper's number is exactly 33.24 h, so it comes from hours rounded to 0.01"


def before_merging(study: str, release: Release) -> tuple[list[float], int]:
    """Return the durations of our shots centred in a labelled part, in seconds, and how many recordings have shots."""
    seconds: list[float] = []
    counted = 0
    for video, recording in release.recordings.items():
        shots = read_shots(paths.shots(study) / f"{video}.parquet")
        counted += bool(shots)
        labelled = [(segment.start_s, segment.end_s) for segment in recording.segments if segment.label >= 0]
        seconds += [
            end_s - start_s
            for start_s, end_s in shots
            if any(first_s <= (start_s + end_s) / 2 < last_s for first_s, last_s in labelled)
        ]
    return seconds, counted


def write_durations(benchmark: Spacewalk) -> None:
    """Write ``tableA1`` and ``tableA5`` as CSV and Markdown, and ``figureA2.svg``, into ``results/<study>``."""
    from stepline.benchmarks.spacewalk.report.figure_durations import Durations, durations
    from stepline.report.figures import render

    name, title, folder = benchmark.name, benchmark.title, Path("results", benchmark.name)
    releases = [benchmark.released.load(release) for release in benchmark.releases]
    last, paper = releases[-1], name == "spacewalk"

    recorded = recordings(last)
    write_lines(folder / "tableA1.csv", A1, (line.texts for line in recorded))
    write_text(folder / "tableA1.md", _a1(title, recorded))

    counts = [line for release in releases for line in measured(release, paper=paper)]
    constants = published() if paper else []
    lines = [*constants, *(number for _, *numbers in counts for number in numbers)]
    write_lines(folder / "tableA5.csv", A5, (line.texts for line in lines))
    write_text(folder / "tableA5.md", _a5(title, constants, counts))

    seconds, counted = before_merging(name, last)
    before = f"Before merging: our shots in labelled parts, {counted} of {len(last.recordings)} recordings"
    wanted = Need("videos", name)
    todo = benchmark.filled_by("videos.csv", [wanted]).split(" && ")
    todo += benchmark.filled_by("figureA2.svg", [wanted]).split(" && ")[-1:]
    absent = "\n".join([f"needs {wanted}", "", *todo])
    after = f"After merging: labelled segments, release {last.name}"
    parts = [
        Durations(before, seconds, absent),
        Durations(after, clips(last, SPLITS, 0)),
    ]
    write_bytes(folder / "figureA2.svg", render(durations(parts)))


def _a1(title: str, recorded: Sequence[Recorded]) -> str:
    listed = [line for line in recorded if line.paper]
    same = sum(line.status == "exact" for line in listed)
    hours = sum(line.duration_s for line in recorded) / 3600
    parts = [f"# {title}: Table A1, durations of the recordings"]
    parts += [
        f"Duration: until the end of the last released segment; {hours:.1f} h in total. "
        + (f"{same} of {len(listed)} equal the paper's to the second." if listed else "")
    ]
    parts += [markdown_table(A1, (line.texts for line in recorded))]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _a5(title: str, constants: Sequence[Measured], counts: Sequence[tuple[int, Measured, Measured]]) -> str:
    parts = [f"# {title}: Table A5, temporal certificates"]
    if constants:
        listed = {record["dataset"]: list(record.values()) for record in _records("tableA5")}
        parts += ["The paper's numbers, in seconds. They are copied: the certificate is measured with human viewers."]
        parts += [markdown_table(("Data set", *MEASURES.values()), listed.values())]
    parts += ["The numbers that can be computed from the releases, in seconds, with the paper's in parentheses."]
    head = ("Release", "Of", "Segments", MEASURES["clip_s"], "Duration", "Hours")
    body = (
        (clip.release, clip.of, f"{n:,}", clip.cell, total.cell, f"{(total.value or 0) / 3600:.2f}")
        for n, clip, total in counts
    )
    parts += [markdown_table(head, body)]
    remarks = dict.fromkeys(f"{MARKS[line.status]} {line.note}" for _, *pair in counts for line in pair if line.note)
    return "\n\n".join([*parts, *(["\n".join(f"- {remark}" for remark in remarks)] if remarks else [])]) + "\n"


def _records(table: str) -> list[dict[str, str]]:
    with open(PRINTED[table], newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
