"""Inter-annotator agreement and the effect of merging clips into segments, as CSV and Markdown."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from math import isnan, nan
from pathlib import Path
from statistics import fmean, median
from typing import Any

from stepline.datasets.annotation.build import Labelled
from stepline.io import csv_text, write_text
from stepline.metrics.agreement import krippendorff_alpha, pairwise_agreement, unanimity
from stepline.tables.files import markdown_table

EDGES_S = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Bin edges of the histogram of durations; the last bin is open."""


@dataclass(frozen=True)
class Annotated:
    """One recording: its clips in temporal order, the votes on each clip by annotator (None: unsure), and its labels.

    segments: the merged clips. animations_s: (start, end) of the animation of each step.
    """

    clips: Mapping[int, tuple[float, float]]
    votes: Mapping[int, Mapping[str, int | None]]
    labels: Sequence[int]
    segments: Sequence[Labelled]
    animations_s: Sequence[tuple[float, float]]

    @property
    def units(self) -> list[list[int]]:
        """The votes on each annotated clip, without unsure votes."""
        return [[vote for vote in votes.values() if vote is not None] for votes in self.votes.values()]

    @property
    def clip_durations_s(self) -> list[float]:
        """The durations of the clips with a label."""
        clips = zip(self.clips.values(), self.labels, strict=True)
        return [end_s - start_s for (start_s, end_s), label in clips if label >= 0]

    @property
    def segment_durations_s(self) -> list[float]:
        """The durations of the segments with a label."""
        return [segment.end_s - segment.start_s for segment in self.segments if segment.label >= 0]


@dataclass(frozen=True)
class Row:
    """A row of the table; times in seconds, fractions in [0, 1].

    clips: number of annotated clips. least: smallest number of annotations of a clip. unsure: fraction of annotations.
    tied: number of clips whose most frequent labels are tied. undecided: number of clips with only unsure votes.
    unanimous, pairwise, alpha: from `stepline.metrics.agreement`, without unsure votes. human_accuracy: Eq. 4.
    in_animation: number of labelled clips that overlap the animation of a step.
    """

    video: str
    annotators: int
    clips: int
    annotations: int
    annotations_per_clip: float
    least: int
    unsure: float
    tied: int
    undecided: int
    unanimous: float
    pairwise: float
    alpha: float
    human_accuracy: float
    in_animation: int
    labelled_s: float
    segments: int
    mean_clip_s: float
    mean_segment_s: float
    median_clip_s: float
    median_segment_s: float


def rows(recordings: Mapping[str, Annotated]) -> list[Row]:
    """Return a row per recording and a row for all recordings.

    In the last row, alpha is the mean over recordings, because recordings have different steps. All other values are
    over all clips.
    """
    lines = [_row(video, [recording]) for video, recording in recordings.items()]
    alphas = [line.alpha for line in lines if not isnan(line.alpha)]
    whole = asdict(_row("all", list(recordings.values()))) | {"alpha": fmean(alphas) if alphas else nan}
    return [*lines, Row(**whole)]


def _row(video: str, recordings: Sequence[Annotated]) -> Row:
    given = [votes for recording in recordings for votes in recording.votes.values()]
    units = [unit for recording in recordings for unit in recording.units]
    numbers = [len(votes) for votes in given]
    n = sum(numbers)
    accuracies = _accuracies(recordings)
    before = [duration for recording in recordings for duration in recording.clip_durations_s]
    after = [duration for recording in recordings for duration in recording.segment_durations_s]
    return Row(
        video=video,
        annotators=len({annotator for votes in given for annotator in votes}),
        clips=len(given),
        annotations=n,
        annotations_per_clip=n / len(given) if given else nan,
        least=min(numbers, default=0),
        unsure=(n - sum(map(len, units))) / n if n else nan,
        tied=sum(_tied(unit) for unit in units),
        undecided=sum(not unit for unit in units),
        unanimous=unanimity(units),
        pairwise=pairwise_agreement(units),
        alpha=krippendorff_alpha(units),
        human_accuracy=fmean(accuracies) if accuracies else nan,
        in_animation=sum(map(_in_animation, recordings)),
        labelled_s=sum(after),
        segments=len(after),
        mean_clip_s=fmean(before) if before else nan,
        mean_segment_s=fmean(after) if after else nan,
        median_clip_s=median(before) if before else nan,
        median_segment_s=median(after) if after else nan,
    )


def _accuracies(recordings: Iterable[Annotated]) -> list[float]:
    """Return the fraction of each annotator's votes that equal the label (Spacewalk-18, Eq. 4).

    Unsure votes count as wrong. Clips without a label are ignored.
    """
    right: dict[str, list[bool]] = {}
    for recording in recordings:
        for clip, label in zip(recording.clips, recording.labels, strict=True):
            for annotator, vote in recording.votes.get(clip, {}).items():
                if label >= 0:
                    right.setdefault(annotator, []).append(vote == label)
    return [fmean(each) for each in right.values()]


def _tied(votes: Sequence[int]) -> bool:
    counts = sorted((votes.count(label) for label in set(votes)), reverse=True)
    return len(counts) > 1 and counts[0] == counts[1]


def _in_animation(recording: Annotated) -> int:
    return sum(
        label >= 0 and any(start_s < over_s and end_s > begin_s for begin_s, over_s in recording.animations_s)
        for (start_s, end_s), label in zip(recording.clips.values(), recording.labels, strict=True)
    )


def histogram(durations_s: Iterable[float]) -> list[int]:
    """Return the number of durations in each bin [edge, next edge) of ``EDGES_S``."""
    counts = [0] * len(EDGES_S)
    for duration_s in durations_s:
        counts[bisect_right(EDGES_S, duration_s) - 1] += 1
    return counts


def write_agreement(folder: Path, recordings: Mapping[str, Annotated], *, title: str) -> list[Row]:
    """Write ``agreement.csv``, ``labels.csv``, ``segments.csv``, ``durations.csv`` and ``agreement.md``.

    labels.csv: each clip with its label and the number of votes per label. segments.csv: the merged segments that have
    a label. durations.csv: histograms of the durations of clips and segments (Fig. A2). Returns the rows of
    agreement.csv.
    """
    made = rows(recordings)
    columns = [field.name for field in fields(Row)]
    texts = [[_text(value) for value in asdict(row).values()] for row in made]
    counts = [
        histogram(duration for each in recordings.values() for duration in each.clip_durations_s),
        histogram(duration for each in recordings.values() for duration in each.segment_durations_s),
    ]
    bins = [
        (from_s, to_s, *n)
        for (from_s, to_s), n in zip(pairwise([*EDGES_S, ""]), zip(*counts, strict=True), strict=True)
    ]
    spans = [
        (video, *segment)
        for video, recording in recordings.items()
        for segment in recording.segments
        if segment.label >= 0
    ]
    write_text(folder / "agreement.csv", csv_text(columns, texts))
    write_text(
        folder / "labels.csv", csv_text(("video", "clip", "start_s", "end_s", "label", "votes"), _labels(recordings))
    )
    write_text(folder / "segments.csv", csv_text(("video", "start_s", "end_s", "label"), spans))
    write_text(folder / "durations.csv", csv_text(("from_s", "to_s", "clips", "segments"), bins))
    write_text(folder / "agreement.md", _markdown(title, columns, texts, bins))
    return made


def _labels(recordings: Mapping[str, Annotated]) -> Iterable[tuple[Any, ...]]:
    for video, recording in recordings.items():
        for (clip, span), label in zip(recording.clips.items(), recording.labels, strict=True):
            votes = list(recording.votes.get(clip, {}).values())
            said = sorted({*votes} - {None}, key=lambda each: (-votes.count(each), each)) + [None] * (None in votes)
            counts = " ".join(f"{'unsure' if each is None else each}:{votes.count(each)}" for each in said)
            yield video, clip, *span, label, counts


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "" if isnan(value) else f"{value:.4f}"
    return str(value)


LEGEND = """\
Agreement ignores unsure votes. `unanimous`: fraction of clips with at least two votes on which all annotators agree.
`pairwise`: fraction of annotator pairs that agree, mean over these clips. `alpha`: Krippendorff's alpha for nominal
labels; for `all`, the mean over recordings. `human_accuracy`: fraction of an annotator's votes that equal the label
(Spacewalk-18, Eq. 4), mean over annotators; the label depends on all votes, including the annotator's own. Times are
in seconds.\
"""


def _markdown(title: str, columns: Sequence[str], texts: Sequence[Sequence[str]], bins: Sequence[Sequence[Any]]) -> str:
    durations = markdown_table(("from s", "to s", "clips", "segments"), (map(str, row) for row in bins))
    parts = (f"# {title}", LEGEND, markdown_table(columns, texts), "## Durations before and after merging", durations)
    return "\n\n".join(parts) + "\n"
