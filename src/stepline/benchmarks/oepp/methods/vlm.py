"""A language model that sees the start and the end of a window and chooses actions of the pool (paper, Sec. 7.2.4)."""

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path

from stepline import paths
from stepline.benchmarks.oepp.material import Material
from stepline.benchmarks.oepp.methods import Method
from stepline.benchmarks.oepp.pictures import observed_s, pictures
from stepline.benchmarks.oepp.prompts import conversation, read_plan
from stepline.benchmarks.oepp.windows import Window
from stepline.datasets.oepp import Part
from stepline.llm import Conversation, Service, ask
from stepline.metrics.plans import NO_ACTION
from stepline.progress import progress


def make(material: Material, fits: list[Path]) -> Iterator[tuple[int, Method]]:
    """Yield the method. images: of the start and of the end, each, 1 or 3."""
    yield 0, _LanguageModel(material)


class _LanguageModel:
    def __init__(self, material: Material) -> None:
        self._material = material
        self._service = Service(**material.plan.study_config["llm"])
        self._plans: list[tuple[int, ...]] = []

    @property
    def selection(self) -> str:
        """How many answers named no action of the pool, and how many actions were none of it or lacking."""
        unread = sum(set(plan) <= {NO_ACTION} for plan in self._plans)
        actions = list(chain(*self._plans))
        return (
            f"answers not understood: {unread} of {len(self._plans)}; "
            f"actions lacking or not of the pool: {actions.count(NO_ACTION)} of {len(actions)}"
        )

    def __call__(self, part: Part, windows: Sequence[Window]) -> list[tuple[int, ...]]:
        pool = self._material.pool(part)
        order = sorted(range(len(windows)), key=lambda place: windows[place].video)
        ordered = [windows[place] for place in order]
        asked = self._conversations(pool, ordered)
        answers = ask(self._service, asked, paths.answers(), what=f"{self._material.entry.id} {part}")
        plans = [read_plan(answer, pool, len(window.actions)) for window, answer in zip(ordered, answers, strict=True)]
        self._plans += plans
        return [plan for _, plan in sorted(zip(order, plans, strict=True))]

    def _conversations(self, pool: Sequence[str], windows: Sequence[Window]) -> Iterator[Conversation]:
        """Make the question of each window. Windows of one video stand together: it is decoded once."""
        images, n_videos = self._material.entry.settings["images"], len({each.video for each in windows})
        by_video = groupby(windows, key=lambda window: window.video)
        for video, group in progress(by_video, what="pictures", unit="videos", total=n_videos):
            path, its_own = self._material.video_file(video), list(group)
            assert path is not None, f"{video} is missing: its windows are left out before"
            times_s = [observed_s(window, images) for window in its_own]
            seen = pictures(path, chain(*chain(*times_s)))
            for window, (start_s, end_s) in zip(its_own, times_s, strict=True):
                start, end = ([seen[t_s] for t_s in each] for each in (start_s, end_s))
                yield conversation(pool, len(window.actions), start, end)
