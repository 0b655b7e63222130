"""A language model that is told what is said and asked which step or candidate it belongs to (paper Appendix E.5).

Five examples of training recordings, with their answers, stand before each question. The paper prints one for each task
and does not say how they were chosen. Ours, for example i of 0..4, with windows that hold text:

- of the n training recordings, in the release's order, number ``floor(i n / 5)``;
- step recognition: the middle of the longest segment of step ``1 + floor((2 i + 1) K / 10)``, or of the nearest step;
- retrieval: of the pairs of neighbouring segments of steps, the one nearest to ``(2 i + 1) / 10`` of their list. With
  m, the length of the shorter one, the query is m/4 from their boundary and the candidates are m/2 from the query;
  pairs where they would be nearer to each other or to boundaries than samples are left out. A and B are right by turns;
  the query is in the former segment twice, in the latter twice, then in the former again.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from stepline import paths
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import Chooser, Outcome, SpacewalkMethod
from stepline.benchmarks.spacewalk.prompts import (
    LETTERS,
    NO_ANSWER,
    conversation,
    read_candidate,
    read_step,
    retrieval_question,
    step_question,
)
from stepline.benchmarks.spacewalk.text import RecordingText
from stepline.benchmarks.spacewalk.windows import window
from stepline.datasets.schema import Recording
from stepline.datasets.studies import STEP_RECOGNITION
from stepline.llm import ask
from stepline.service import Service

N_EXAMPLES = 5


class LanguageModel(SpacewalkMethod):
    """A language model."""

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the method at windows of ``context_s`` seconds."""
        assert context_s is not None
        return _LanguageModel(inputs, context_s)


class _LanguageModel:
    def __init__(self, inputs: SpacewalkInputs, context_s: float) -> None:
        self._inputs, self._context_s = inputs, context_s
        self._steps = inputs.entry.task == STEP_RECOGNITION
        self._service = Service(**inputs.options["llm"])
        self._examples = list(self._chosen_examples())
        self._asked = self._unread = 0

    @property
    def selection(self) -> str:
        """How many examples there are, and how many answers named none of the choices."""
        return f"{len(self._examples)} examples; answers not understood: {self._unread} of {self._asked}"

    def __call__(self, video: str, items: list[Item]) -> list[Outcome]:
        entry = self._inputs.entry
        asked = [conversation(entry.task, self._examples, each) for each in self._questions(video, items)]
        answers = ask(self._service, asked, paths.answers(), what=f"{entry.id} {video}")
        n_steps = self._inputs.annotation.recordings[video].n_steps
        read = [read_step(answer, n_steps) if self._steps else read_candidate(answer) for answer in answers]
        self._asked += len(read)
        self._unread += read.count(NO_ANSWER)
        return [(0, np.array(read, dtype=np.int64), None)]

    def _questions(self, video: str, items: list[Item]) -> Iterator[str]:
        text, length_s = self._inputs.text(video), self._context_s
        if self._steps:
            steps = text.step_texts()[1:]
            yield from (step_question(text.window(item.t_s, length_s), steps) for item in items)
            return
        duration_s = text.recording.duration_s
        for item in items:
            bounds_s = [window(t_s, length_s, duration_s) for t_s in item.candidates_s]
            candidates = [(each, text.between(*each)) for each in bounds_s]
            yield retrieval_question(item.frame, text.window(item.t_s, length_s), candidates)

    def _chosen_examples(self) -> Iterator[tuple[str, str]]:
        """Yield question and answer of each example; fewer where recordings have none."""
        inputs, study = self._inputs, self._inputs.benchmark.released
        videos, fps = inputs.recordings("train"), inputs.annotation.fps
        least_s = max(2 * study.min_distance_s, 4 * study.boundary_s)
        for number in range(N_EXAMPLES):
            video = videos[number * len(videos) // N_EXAMPLES]
            recording, text = inputs.annotation.recordings[video], inputs.text(video)
            preferred = _steps(recording, number, fps) if self._steps else _pairs(recording, number, fps, least_s)
            item = next((item for item in preferred if self._told(text, item)), None)
            if item is not None:
                (question,) = self._questions(video, [item])
                yield question, str(item.label) if self._steps else LETTERS[item.label]

    def _told(self, text: RecordingText, item: Item) -> bool:
        return all(text.window(t_s, self._context_s) for t_s in item.times_s)


def _steps(recording: Recording, number: int, fps: float) -> list[Item]:
    """Return the middles of the segments of steps, those of the wanted step first and the longest of each first."""
    wanted = 1 + (2 * number + 1) * recording.n_steps // (2 * N_EXAMPLES)
    segments = [segment for segment in recording.segments if segment.label > 0]
    segments.sort(key=lambda s: (abs(s.label - wanted), s.start_frame - s.end_frame))
    frames = [(segment.start_frame + segment.end_frame) // 2 for segment in segments]
    return [
        Item(id=0, frame=frame, t_s=frame / fps, label=segment.label)
        for frame, segment in zip(frames, segments, strict=True)
    ]


def _pairs(recording: Recording, number: int, fps: float, least_s: float) -> list[Item]:
    """Return a query and its candidates for each pair of neighbouring segments of steps, the wanted pair first.

    least_s: of the shorter segment of a pair.
    """
    label, backward = number % 2, bool(number // 2 % 2)
    items = []
    for former, latter in pairwise(recording.segments):
        shorter = min(segment.end_frame - segment.start_frame for segment in (former, latter))
        if min(former.label, latter.label) > 0 and shorter >= least_s * fps:
            query = latter.start_frame + (shorter // 4 if backward else -(shorter // 4))
            candidates = [query - shorter // 2, query + shorter // 2]
            if backward != bool(label):
                candidates.reverse()
            times_s = tuple(frame / fps for frame in candidates)
            items.append(Item(id=0, frame=query, t_s=query / fps, label=label, candidates_s=times_s))
    places = [abs((2 * rank + 1) * N_EXAMPLES - (2 * number + 1) * len(items)) for rank in range(len(items))]
    return [items[rank] for rank in sorted(range(len(items)), key=places.__getitem__)]
