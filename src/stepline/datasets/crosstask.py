"""CrossTask (Zhukov et al., 2019): the primary tasks, their steps, and the steps' segments in videos."""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

from stepline.availability import check_video_id
from stepline.datasets.oepp import Step
from stepline.datasets.release import DAMAGED_ARCHIVE
from stepline.errors import ReleaseError
from stepline.io import read_member

TASKS, VIDEOS, VALIDATION, ANNOTATIONS = "tasks_primary.txt", "videos.csv", "videos_val.csv", "annotations"
BLOCK = 6
"""The number of lines per task: its id, title, address, number of steps, steps, and an empty line."""
MOST_BYTES = 16 * 2**20
"""The maximum size of an archive member; the largest of the release is far smaller."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One primary task. actions: its steps in order."""

    id: str
    title: str
    actions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CrossTask:
    """The release, with videos as pairs of a primary task's id and a YouTube id.

    tasks: by id. listed: the videos of ``videos.csv``. validation: those of ``videos_val.csv``. videos: the steps of
    all annotated ones, in seconds.
    """

    tasks: dict[str, Task]
    listed: tuple[tuple[str, str], ...]
    validation: tuple[tuple[str, str], ...]
    videos: dict[tuple[str, str], tuple[Step, ...]]


def load(file: Path) -> CrossTask:
    """Return the content of ``crosstask_release.zip`` in its order, without extracting it.

    Its files may be in a folder of the archive; other members are ignored. Videos without an annotation file or a
    primary task are left out, and so are segments that end before they start. Raises ReleaseError if the archive is
    damaged or has another form.
    """
    try:
        with ZipFile(file) as archive:
            return _load(archive)
    except DAMAGED_ARCHIVE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ReleaseError(f"{file} is not CrossTask's release: {reason}") from None


def _load(archive: ZipFile) -> CrossTask:
    names = archive.namelist()
    if len(set(names)) < len(names):
        raise ValueError("it contains the same file twice")
    folders = [PurePosixPath(name).parent for name in names if PurePosixPath(name).name == TASKS]
    if len(folders) != 1:
        raise ValueError(f"it contains {len(folders)} files {TASKS}")
    folder = folders[0]
    tasks = {task.id: task for task in _tasks(_lines(archive, str(folder / TASKS)))}
    listed, validation = (tuple(_videos(archive, folder, name, tasks)) for name in (VIDEOS, VALIDATION))
    videos: dict[tuple[str, str], tuple[Step, ...]] = {}
    for task, vid in dict.fromkeys([*listed, *validation]):
        name = str(folder / ANNOTATIONS / f"{task}_{vid}.csv")
        if name in archive.NameToInfo:
            videos[task, vid] = tuple(_steps(name, _lines(archive, name), tasks[task]))
    return CrossTask(tasks=tasks, listed=listed, validation=validation, videos=videos)


def _videos(archive: ZipFile, folder: PurePosixPath, name: str, tasks: Container[str]) -> Iterator[tuple[str, str]]:
    for line in _lines(archive, str(folder / name)):
        task, vid, _ = _fields(name, line, 3)
        check_video_id(vid)
        if task in tasks:
            yield task, vid


def _lines(archive: ZipFile, name: str) -> list[str]:
    """Return the lines of a member; raise KeyError if it is absent."""
    try:
        return read_member(archive, name, MOST_BYTES).decode().splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{name} is not UTF-8") from None


def _fields(name: str, line: str, n: int) -> list[str]:
    fields = line.split(",")
    if len(fields) != n:
        raise ValueError(f"{name}: {line!r} does not have {n} fields")
    return fields


def _tasks(lines: list[str]) -> Iterator[Task]:
    while lines and not lines[-1].strip():
        lines.pop()
    for start in range(0, len(lines), BLOCK):
        number, title, _, n_steps, steps, *empty = [*map(str.strip, lines[start : start + BLOCK]), *[""] * BLOCK][
            :BLOCK
        ]
        actions = tuple(steps.split(","))
        if not number.isdecimal() or not title or n_steps != str(len(actions)) or not all(actions) or any(empty):
            raise ValueError(f"{TASKS}: the lines from {start + 1} are not a task")
        yield Task(id=number, title=title, actions=actions)


def _steps(name: str, lines: list[str], task: Task) -> Iterator[Step]:
    for line in lines:
        number, start_s, end_s = _fields(name, line, 3)
        if not number.isdecimal() or not 1 <= int(number) <= len(task.actions):
            raise ValueError(f"{name}: {task.title!r} has no step {number!r}")
        try:
            start, end = float(start_s), float(end_s)
            if end < start:
                continue
            yield Step(action=task.actions[int(number) - 1], start_s=start, end_s=end)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
