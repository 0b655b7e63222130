"""CrossTask and COIN in the form of HT-Step's videos, and narrations.

A task of CrossTask or an event of COIN is an activity with one article, which has its steps in the listed order. If a
step is listed twice, only its first position counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any, Literal

from stepline.datasets import coin as coin_files
from stepline.datasets import crosstask as crosstask_files
from stepline.datasets import oepp
from stepline.datasets.htstep import NARRATIONS, RELEASES, Held, Recording, Segment, Step
from stepline.errors import ReleaseError
from stepline.io import parse_json
from stepline.mirror import cached_sha256

Source = Literal["crosstask", "coin"]
Steps = dict[tuple[str, str], Step]
"""Steps by activity and wording."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A sentence from start_s to end_s in seconds; sentences may overlap."""

    start_s: float
    end_s: float
    text: str


def crosstask() -> tuple[Recording, ...]:
    """Return the annotated videos of the primary tasks, in the released order.

    A video that is annotated for two tasks appears once for each: activity and video are the key. Raises ReleaseError
    if the release is absent, changed or has another form.
    """
    return _read("crosstask")[1]


def crosstask_pool(validation: bool) -> Mapping[str, frozenset[str]]:
    """Return the videos of each primary task that CrossTask's random splits are drawn from, also unannotated ones.

    These are the videos of ``videos.csv`` that are not in ``videos_val.csv`` (``train.py`` of Zhukov et al.), by the
    task's title. validation: whether videos of ``videos_val.csv`` are added instead. Raises ReleaseError as
    ``crosstask`` does.
    """
    release = crosstask_files.load(RELEASES.release_file("crosstask", "crosstask_release.zip"))
    listed, left_out = {*release.listed}, {*release.validation}
    pool = listed | left_out if validation else listed - left_out
    return {task.title: frozenset(vid for each, vid in pool if each == task.id) for task in release.tasks.values()}


def coin() -> tuple[Recording, ...]:
    """Return COIN's train videos, then its test videos; raise ReleaseError as ``crosstask`` does."""
    return _read("coin")[1]


def texts_of(source: Source) -> Mapping[int, Step]:
    """Return the steps by id, numbered from 0 in the listed order; raise ReleaseError as ``crosstask`` does.

    ``headline`` is its wording, ``activity`` the title of its task or event; it has no paragraph.
    """
    return {step.id: step for step in _read(source)[0].values()}


def narrations(videos: Iterable[str]) -> Mapping[str, tuple[Sentence, ...]]:
    """Return the narrations of these videos in the file's order, without videos that the file does not contain.

    Raises ReleaseError if the file is absent, changed or has another form, or if the ``start``, ``end`` and ``text`` of
    a video differ in length or are not ascending times in seconds and text.
    """
    file = RELEASES.release_file("narrations", NARRATIONS)
    try:
        content = parse_json(file.read_bytes())
    except ValueError as error:
        raise ReleaseError(f"{file} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ReleaseError(f"{file} contains no narrations by video")
    found = {}
    for video in videos:
        if video not in content:
            continue
        try:
            found[video] = tuple(_sentences(content[video]))
        except (KeyError, TypeError, ValueError) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise ReleaseError(f"{file}: {video} has no narration in HowTo100M's format: {reason}") from None
    return found


def _sentences(record: Mapping[str, Any]) -> Iterable[Sentence]:
    columns = [record[key] for key in ("start", "end", "text")]
    if any(type(column) is not list for column in columns):
        raise TypeError("start, end and text are not all lists")
    for start_s, end_s, text in zip(*columns, strict=True):
        if type(text) is not str:
            raise TypeError(f"the text {text!r}")
        if not {type(start_s), type(end_s)} <= {int, float} or not 0 <= start_s <= end_s < inf:
            raise ValueError(f"a sentence from {start_s!r} to {end_s!r} s")
        yield Sentence(start_s=float(start_s), end_s=float(end_s), text=text)


def _read(source: Source) -> tuple[Steps, tuple[Recording, ...]]:
    files = [RELEASES.release_file(source, each.path) for each in RELEASES.release_files(source)]
    return _READERS[source](tuple((file, cached_sha256(file)) for file in files))


@cache
def _crosstask(files: tuple[Held, ...]) -> tuple[Steps, tuple[Recording, ...]]:
    [(file, _)] = files
    release = crosstask_files.load(file)
    titles = [task.title for task in release.tasks.values()]
    if len({*titles}) < len(titles):
        raise ReleaseError(f"{file} has two tasks with the same title")
    steps = _numbered((task.title, task.actions) for task in release.tasks.values())
    videos = ((video, release.tasks[task].title, found) for (task, video), found in release.videos.items())
    return steps, tuple(_recordings("crosstask", steps, videos))


@cache
def _coin(files: tuple[Held, ...]) -> tuple[Steps, tuple[Recording, ...]]:
    by_name = {file.name: file for file, _ in files}
    events = coin_files.taxonomy(by_name["taxonomy.xlsx"])
    steps = _numbered((event.name, event.actions) for event in events.values())
    videos = coin_files.videos(by_name["coin_train_70.json"], by_name["coin_test_30.json"]).values()
    for video in videos:
        for step in video.steps:
            if (video.event, step.action) not in steps:
                raise ReleaseError(f"{video.vid} has {step.action!r}, which COIN's taxonomy does not list")
    return steps, tuple(_recordings("coin", steps, ((video.vid, video.event, video.steps) for video in videos)))


_READERS = {"crosstask": _crosstask, "coin": _coin}


def _numbered(activities: Iterable[tuple[str, tuple[str, ...]]]) -> Steps:
    found: Steps = {}
    for activity, actions in activities:
        for index, action in enumerate(actions, start=1):
            if (activity, action) not in found:
                found[activity, action] = Step(
                    id=len(found), activity=activity, variation="", index=index, headline=action, paragraph=""
                )
    return found


def _recordings(
    source: Source, steps: Steps, videos: Iterable[tuple[str, str, tuple[oepp.Step, ...]]]
) -> Iterable[Recording]:
    """Yield the videos with segments, given with their activity and actions."""
    articles: dict[str, tuple[int, ...]] = {}
    for step in steps.values():
        articles[step.activity] = (*articles.get(step.activity, ()), step.id)
    for video, activity, found in videos:
        if found:
            yield Recording(
                video=video,
                split=source,
                activity=activity,
                steps=articles[activity],
                segments=tuple(
                    Segment(start_s=each.start_s, end_s=each.end_s, step=steps[activity, each.action].id, match="")
                    for each in found
                ),
                labelled=True,
            )
