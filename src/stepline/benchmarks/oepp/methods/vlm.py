"""A language model that sees the start and the end of a window and chooses actions from the pool (Sec. 7.2.4)."""

import logging
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path

from stepline import paths
from stepline.benchmark import UnavailableError
from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.methods.planner import Planner
from stepline.benchmarks.oepp.pictures import observed_s, pictures
from stepline.benchmarks.oepp.prompts import conversation, read_plan
from stepline.benchmarks.oepp.windows import Window
from stepline.llm import ask
from stepline.media.decode import MediaError
from stepline.metrics.plans import NO_ACTION
from stepline.needs import Need
from stepline.progress import progress
from stepline.service import Conversation, Service

log = logging.getLogger(__name__)


class LanguageModel(Planner):
    """Plans from the answers of a service. The setting ``images`` is the number of images per observation, 1 or 3."""

    def __init__(self) -> None:
        self._plans: list[tuple[int, ...]] = []

    def said(self) -> str:
        """Return how many answers named no action of the pool, and how many actions were not in it or missing."""
        unread = sum(set(plan) <= {NO_ACTION} for plan in self._plans)
        actions = list(chain(*self._plans))
        return (
            f"answers not understood: {unread} of {len(self._plans)}; "
            f"actions missing or not in the pool: {actions.count(NO_ACTION)} of {len(actions)}"
        )

    def plans(
        self, inputs: OeppInputs, split: str, windows: Sequence[Window], fit: Path | None
    ) -> list[tuple[int, ...] | None]:
        """Return the plans in the model's answers; None for windows of a video that cannot be decoded.

        Raises UnavailableError if no video can be decoded.
        """
        pool, asked = inputs.pool(split), list[int]()
        conversations = _conversations(inputs, pool, windows, asked)
        service = Service(**inputs.options["llm"])
        answers = ask(service, conversations, paths.answers(), what=f"{inputs.entry.id} {split}")
        plans = {
            place: read_plan(answer, pool, len(windows[place].actions))
            for place, answer in zip(asked, answers, strict=True)
        }
        if not plans:
            raise UnavailableError(Need("videos", "openevent"))
        self._plans += plans.values()
        return [plans.get(place) for place in range(len(windows))]


def _conversations(
    inputs: OeppInputs, pool: Sequence[str], windows: Sequence[Window], asked: list[int]
) -> Iterator[Conversation]:
    """Yield the question for each window, and append the window's index to ``asked``.

    Windows are grouped by video, which is decoded once. Windows of a video that cannot be decoded are left out.
    """
    images = inputs.entry.settings["images"]
    order = sorted(range(len(windows)), key=lambda place: windows[place].video)
    by_video = groupby(order, key=lambda place: windows[place].video)
    n_videos = len({window.video for window in windows})
    for video, group in progress(by_video, what="pictures", unit="videos", total=n_videos):
        path, places = inputs.video_file(video), list(group)
        assert path is not None, f"{video} is missing, and its windows should have been left out"
        times_s = [observed_s(windows[place], images) for place in places]
        try:
            seen, absent_s = pictures(path, chain(*chain(*times_s)))
        except MediaError as error:
            log.warning("%s", error)
            continue
        if absent_s:
            inputs.in_part[video] = absent_s
        for place, (start_s, end_s) in zip(places, times_s, strict=True):
            start, end = ([seen[t_s] for t_s in each] for each in (start_s, end_s))
            asked.append(place)
            yield conversation(pool, len(windows[place].actions), start, end)
