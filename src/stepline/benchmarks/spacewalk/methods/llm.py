"""A language model, prompted with the transcript to choose the step or the candidate (paper Appendix E.5).

Five examples from training recordings, with their answers, precede each question. The paper prints one example for each
task and does not say how it was chosen. Our example i, for i in 0..4, has windows with text:

- recording: number ``floor(i n / 5)`` of the n training recordings, in the release's order;
- step recognition: the middle of the longest segment of step ``1 + floor((2 i + 1) K / 10)``, or of the nearest step;
- retrieval: the pair of adjacent step segments nearest to position ``(2 i + 1) / 10`` in the list of pairs. The query
  is m/4 from their boundary and the candidates are m/2 from the query; m is the length of the shorter segment. Pairs
  that are too short for the least distances of samples are left out. The correct answer alternates between A and B; the
  query is in the earlier segment twice, in the later one twice, then in the earlier one again.
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
        """Return the chooser for windows of ``context_s`` seconds."""
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
        """The number of examples, and the number of answers that named none of the choices, as text."""
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
        """Yield the question and answer of each example; recordings without a suitable window yield none."""
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
    """Return the middles of step segments, ordered by distance from the wanted step, then from long to short."""
    wanted = 1 + (2 * number + 1) * recording.n_steps // (2 * N_EXAMPLES)
    segments = [segment for segment in recording.segments if segment.label > 0]
    segments.sort(key=lambda s: (abs(s.label - wanted), s.start_frame - s.end_frame))
    frames = [(segment.start_frame + segment.end_frame) // 2 for segment in segments]
    return [
        Item(id=0, frame=frame, t_s=frame / fps, label=segment.label)
        for frame, segment in zip(frames, segments, strict=True)
    ]


def _pairs(recording: Recording, number: int, fps: float, least_s: float) -> list[Item]:
    """Return a query and its candidates for each pair of adjacent step segments, nearest to the wanted pair first.

    least_s: minimum length of the shorter segment, in seconds.
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
