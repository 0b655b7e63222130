"""Examples of right and wrong answers, as in Figures A10 to A23 of the paper.

The most confident right and wrong answers of the method's lowest seed are shown, at most one per recording. Confidence
is the score of the answer minus the best other score. Ties: the first recording by name, and the earlier sample. In
step recognition, samples labelled Irrelevant and answers without a score are excluded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline import paths
from stepline.availability import Record, read_availability
from stepline.benchmarks.spacewalk import presentation
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.kinds import Choice
from stepline.benchmarks.spacewalk.windows import window
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION
from stepline.needs import Need
from stepline.report import data_address
from stepline.report.clock import clock
from stepline.report.examples import Answer, Clip, Example, Examples, Shown, marked, words, write_examples
from stepline.report.shots import read_shots
from stepline.report.thumbnails import read_thumbnails, thumbnails
from stepline.runs.predictions import read_predictions
from stepline.runs.shown import timeline_command
from stepline.tables import context_name, sees_text

SHOWN = 3
"""The number of successes, and of failures, shown for each method."""
ANSWERS = 3
"""The number of best answers shown in step recognition."""
RULES = {
    STEP_RECOGNITION: "The most confident right and wrong answers of the method's lowest seed on samples of a step: up "
    f"to {SHOWN} of each, one per recording. Confidence is the score of the answer minus the best other score. "
    "An answer that is Irrelevant because its score is below a threshold has no score of its own and is not shown.",
    RETRIEVAL: "The most confident right and wrong answers of the method's lowest seed: up to "
    f"{SHOWN} of each, one per recording. Confidence is the difference between the two candidates' scores.",
}
TITLES = {STEP_RECOGNITION: "Step recognition", RETRIEVAL: "Intra-video retrieval"}


@dataclass(frozen=True, kw_only=True)
class Picked:
    """A sample to show. scores: of labels 0..K, or of the two candidates."""

    video: str
    item: Item
    answer: int
    scores: NDArray[np.float32]
    margin: float

    @property
    def right(self) -> bool:
        """Whether the answer is right."""
        return self.answer == self.item.label


def pick(predictions: Sequence[Choice], items: dict[str, list[Item]], task: str) -> list[Picked]:
    """Return the samples to show: successes, then failures, each in order of decreasing confidence."""
    best: dict[tuple[bool, str], Picked] = {}
    lowest = min((p.seed for p in predictions), default=0)
    for p in sorted(predictions, key=lambda p: p.video):
        if p.seed != lowest or p.split != "test" or p.scores is None:
            continue
        by_id = {item.id: item for item in items[p.video]}
        for number, sample in enumerate(p.ids):
            item, answer, scores = by_id[sample], int(p.chosen[number]), p.scores[number]
            if answer < 0 or np.isnan(scores[answer]) or (task == STEP_RECOGNITION and item.label == 0):
                continue
            others = np.delete(scores, answer)
            margin = float(scores[answer] - np.nanmax(others)) if not np.isnan(others).all() else 0.0
            found = Picked(video=p.video, item=item, answer=answer, scores=scores, margin=margin)
            place = (found.right, p.video)
            if place not in best or margin > best[place].margin:
                best[place] = found
    ranked = sorted(best.values(), key=lambda found: -found.margin)
    return [found for right in (True, False) for found in [f for f in ranked if f.right == right][:SHOWN]]


def write_study_examples(benchmark: Spacewalk) -> None:
    """Write ``results/<study>/examples.html``."""
    shown: dict[str, list[tuple[SpacewalkInputs, list[Picked]]]] = {}
    missing = []
    for job in presentation.example_jobs(benchmark):
        inputs, picked = benchmark.inputs(job), list[Picked]()
        if not (needs := benchmark.lacking(job.entry, job.release)):
            picked, needs = _picked(inputs)
        if needs:
            missing.append((job.entry, needs))
        else:
            shown.setdefault(job.entry.task, []).append((inputs, picked))
    pictures = _Pictures(benchmark, list(_times(shown)))
    tasks = [
        (TITLES[task], RULES[task], [_method(inputs, picked, pictures) for inputs, picked in methods])
        for task, methods in shown.items()
    ]
    name = benchmark.name
    page = Examples(
        title=f"{benchmark.title}: right and wrong answers of methods",
        note="" if pictures else f"No pictures: they need videos:{name} (stepline fetch {name}/videos).",
        tasks=tasks,
        missing=[
            (
                f"{entry.method}, {entry.setting} ({entry.table})",
                "; ".join(map(str, needs)),
                benchmark.filled_by("examples.html", needs),
            )
            for entry, needs in missing
        ],
    )
    write_examples(page, Path("results", name, "examples.html"))


def _picked(inputs: SpacewalkInputs) -> tuple[list[Picked], tuple[Need, ...]]:
    job = inputs.job
    path = paths.predictions(inputs.benchmark.name, job.release, job.entry.id, job.context)
    made, about = read_predictions(path, Choice, inputs.spec)
    chosen, _ = inputs.benchmark.select(inputs, made)
    return pick(chosen, inputs.items("test"), job.entry.task), tuple(map(Need.parse, about["needs"]))


def _times(shown: dict[str, list[tuple[SpacewalkInputs, list[Picked]]]]) -> Iterator[tuple[str, float, float | None]]:
    """Yield the video, and the centre and length in seconds, of each window to show."""
    for methods in shown.values():
        for inputs, picked in methods:
            for found in picked:
                for t_s in found.item.times_s:
                    yield found.video, t_s, inputs.job.context_s


def _method(inputs: SpacewalkInputs, picked: Sequence[Picked], pictures: "_Pictures") -> Shown:
    job, entry = inputs.job, inputs.entry
    examples = [(found, _example(inputs, found, pictures)) for found in picked]
    window_name = "unlimited" if job.context_s is None else context_name(job.context_s)
    seen = sees_text(inputs.benchmark.seen(entry))
    return Shown(
        title=f"{entry.method}, {entry.setting}" + (f" ({entry.modality})" if entry.modality != "-" else ""),
        anchor=entry.id,
        facts=f"Table {entry.table}, release {job.release}, window {window_name}; it sees {seen}",
        successes=[example for found, example in examples if found.right],
        failures=[example for found, example in examples if not found.right],
        reason="" if picked else "No examples: the predictions have no scores, or none for a step.",
    )


def _example(inputs: SpacewalkInputs, found: Picked, pictures: "_Pictures") -> Example:
    make = _retrieval if inputs.entry.task == RETRIEVAL else _recognition
    clips, answers = make(inputs, found, pictures)
    job = inputs.job
    options = ("--entry", job.entry.id, "--release", job.release, "--context", job.context)
    return Example(
        title=f"{found.video}, {clock(found.item.t_s)}",
        margin=f"sample {found.item.id}; confidence {found.margin:.4g}",
        clips=clips,
        answers=answers,
        command=timeline_command(inputs.benchmark.name, found.video, *options),
    )


def _recognition(inputs: SpacewalkInputs, found: Picked, pictures: "_Pictures") -> tuple[list[Clip], list[Answer]]:
    steps = inputs.text(found.video).step_texts()
    meant = [words(f"{narration} {caption}") for narration, caption in steps]
    said = _said(inputs, found.video, found.item.t_s)
    heard, true = words(said), found.item.label
    false: Any = () if found.right else meant[found.answer]
    clip = pictures.clip(
        found.video, found.item.t_s, inputs.job.context_s, "The window", marked(said, meant[true], false)
    )
    order = [label for label in np.argsort(-found.scores, kind="stable").tolist() if not np.isnan(found.scores[label])]
    answers = []
    for label in dict.fromkeys([*order[:ANSWERS], true]):
        narration, caption = steps[label]
        pair = (heard, ()) if label == true else ((), heard)
        answers.append(
            Answer(
                title=f"{order.index(label) + 1}: {f'step {label}' if label else 'Irrelevant'}",
                caption=marked(caption, *pair),
                narration=marked(narration, *pair) if label else [],
                score=f"{found.scores[label]:.4g}",
                right=label == true,
            )
        )
    return [clip], answers


def _retrieval(inputs: SpacewalkInputs, found: Picked, pictures: "_Pictures") -> tuple[list[Clip], list[Answer]]:
    texts = [_said(inputs, found.video, t_s) for t_s in found.item.times_s]
    query, *candidates = map(words, texts)
    right = found.item.label
    clips = [
        pictures.clip(
            *(found.video, found.item.t_s, inputs.job.context_s, f"Query, {clock(found.item.t_s)}"),
            marked(texts[0], candidates[right], candidates[1 - right]),
        )
    ]
    for number, t_s in enumerate(found.item.candidates_s):
        same = number == right
        verdict = f"{'the same step' if same else 'another step'}{', chosen' if number == found.answer else ''}"
        clips.append(
            pictures.clip(
                *(found.video, t_s, inputs.job.context_s, f"Candidate {number + 1}, {clock(t_s)}"),
                marked(texts[number + 1], *((query, ()) if same else ((), query))),
                f"{verdict}; score {found.scores[number]:.4g}",
            )
        )
    return clips, []


def _said(inputs: SpacewalkInputs, video: str, t_s: float) -> str:
    return inputs.text(video).window(t_s, inputs.job.context_s) if inputs.job.context_s else ""


class _Pictures:
    """Pictures of windows: frames of kept videos, otherwise pictures of the nearest shots, otherwise a reason."""

    def __init__(self, benchmark: Spacewalk, wanted: Sequence[tuple[str, float, float | None]]) -> None:
        self.study = benchmark.name
        self.shots = read_thumbnails(self.study, benchmark.pipeline.videos.all_shards).pictures
        records: dict[str, Record] = {}
        for shard in benchmark.pipeline.videos.all_shards:
            if (path := paths.availability(self.study, shard)).exists():
                records |= read_availability(path)
        times: dict[str, set[float]] = {}
        for video, t_s, length_s in wanted:
            times.setdefault(video, set()).update(self._times(t_s, length_s))
        self.frames: dict[str, dict[float, bytes | None]] = {}
        for video, asked in sorted(times.items()):
            file = Path(records[video].path) if video in records and records[video].path else None
            if file and file.is_file():
                listed = sorted(asked)
                self.frames[video] = dict(zip(listed, thumbnails(file, listed), strict=True))
        self.durations = {video.id: video.duration_s or float("inf") for video in benchmark.released.videos()}

    def __bool__(self) -> bool:
        """Whether there are any pictures."""
        return any(self.shots.values()) or any(any(found.values()) for found in self.frames.values())

    @staticmethod
    def _times(t_s: float, length_s: float | None) -> list[float]:
        quarter_s = (length_s or 0.0) / 4
        return sorted({max(0.0, t_s - quarter_s), t_s, t_s + quarter_s})

    def clip(self, video: str, t_s: float, length_s: float | None, title: str, said: Any, verdict: str = "") -> Clip:
        """Return a window with its pictures."""
        pictures, note = self._of(video, t_s, length_s)
        shown = [(data_address("image/jpeg", content), clock(time)) for time, content in pictures]
        return Clip(title=title, said=said, pictures=shown, note=note, verdict=verdict)

    def _of(self, video: str, t_s: float, length_s: float | None) -> tuple[list[tuple[float, bytes]], str]:
        cut = self.frames.get(video, {})
        if frames := [(time, frame) for time in self._times(t_s, length_s) if (frame := cut.get(time))]:
            return frames, ""
        there = self._shots(video)
        if not there:
            return [], "No pictures." if self else ""
        start_s, end_s = window(t_s, length_s or 0.0, self.durations[video])
        inside = [(time, file.read_bytes()) for time, file in there if start_s <= time <= end_s]
        if inside:
            return inside, ""
        time, file = min(there, key=lambda shot: abs(shot[0] - t_s))
        return [(time, file.read_bytes())], f"The video is not kept; the nearest picture is from {clock(time)}."

    def _shots(self, video: str) -> list[tuple[float, Path]]:
        shots = read_shots(paths.shots(self.study) / f"{video}.parquet")
        listed = self.shots.get(video, {}).items()
        return [(sum(shots[shot]) / 2, file) for shot, file in listed if shot < len(shots) and file.exists()]
