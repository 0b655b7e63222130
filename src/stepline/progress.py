"""Progress of long work: names of stages, a bar on a terminal and a record of a workflow job for other processes.

A job with the log ``logs/<rule>/<name>.log`` writes ``.stepline/progress/<rule>/<name>.json`` at most once a second:
``{"what": "media", "unit": "s of video", "done": 612.5, "total": 1740.0}``. ``total`` is null if it is unknown. If a
job has several counts in sequence, the record has the current one. The job removes the record at its end.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

Item = TypeVar("Item")
VIDEO = "s of video"
"""The unit for videos, which are counted by their length."""
NAMES = {
    "release": "release files",
    "videos": "download",
    "media": "sound and scores",
    "transcribe": "speech",
    "extract": "features",
    "encode": "text",
    "thumbnails": "pictures",
    "picture": "pictures of tables",
    "listings": "lists",
    "rebuild": "lists",
    "clusters": "lists",
    "worked_examples": "examples",
}
"""Rule -> stage, if the stage has a different name."""
_FORM = "{desc} {percentage:3.0f}%|{bar}| {n:.1f}/{total:.1f} min of video [{elapsed}<{remaining}{postfix}]"


def stage_of(rule: str) -> str:
    """Return the stage of a rule."""
    return NAMES.get(rule, rule)


def rules_of(rules: Iterable[str]) -> dict[str, list[str]]:
    """Return the rules of each stage, in their order."""
    stages: dict[str, list[str]] = {}
    for rule in rules:
        stages.setdefault(stage_of(rule), []).append(rule)
    return stages


def record_of(log: Path | str) -> Path:
    """Return the progress record of the job with this log, a path relative to the work folder."""
    return Path(".stepline", "progress", Path(log).relative_to("logs")).with_suffix(".json")


class Progress:
    """A progress bar and record for the duration of the block."""

    record: ClassVar[Path | None] = None
    """The progress record of this process, or None."""
    present: ClassVar["Progress | None"] = None
    """The innermost active one that counts seconds of video."""

    def __init__(self, what: str, unit: str, total: float | None = None) -> None:
        """Start counting. total: in ``unit``; None if it is unknown."""
        from tqdm import tqdm

        tqdm.monitor_interval = 0  # no monitor thread, as a process with threads is not forked
        form: dict[str, Any] = {"unit": f" {unit}", "total": total}
        if unit == VIDEO:
            form = {"unit": " min", "unit_scale": 1 / 60, "total": total or 0.0, "bar_format": _FORM}
        self._bar = tqdm(desc=what, file=sys.__stderr__, disable=None, leave=False, miniters=1, **form)
        self._said: dict[str, Any] = {"what": what, "unit": unit, "total": total}
        self._done: float = 0
        self._within: float = 0
        self._next = 0.0

    def __enter__(self) -> Self:
        self._outer = Progress.present
        if self._said["unit"] == VIDEO:
            Progress.present = self
        self._show()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        Progress.present = self._outer
        self._bar.close()

    def add(self, amount: float) -> None:
        """Count ``amount`` more as done."""
        self._done, self._within = self._done + amount, 0
        self._show()

    def reach(self, position: float) -> None:
        """Show the position within the amount that the next ``add`` will count."""
        self._within = position
        self._show()

    def note(self, text: str) -> None:
        """Show ``text`` next to the bar."""
        self._bar.set_postfix_str(text, refresh=False)

    def _show(self) -> None:
        done = self._done + self._within
        self._bar.update(done - self._bar.n)
        if Progress.record is not None and (now := time.monotonic()) >= self._next:
            self._next = now + 1
            _write(Progress.record, self._said | {"done": round(done, 3)})


def progress(
    items: Iterable[Item],
    *,
    what: str,
    unit: str,
    total: float | None = None,
    size: Callable[[Item], float] = lambda _: 1,
) -> Iterator[Item]:
    """Yield ``items``, and count each as done when the next one is requested.

    total: of all items. None means the sum of their sizes, by default their number, if ``items`` has a length.
    size: of an item, in ``unit``, such as seconds of video.
    """
    if total is None and hasattr(items, "__len__"):
        total = sum(map(size, items))
    with Progress(what, unit, total) as shown:
        for item in items:
            yield item
            shown.add(size(item))


def reached(position_s: float) -> None:
    """Show the position in the current video, in seconds. It costs little, and does nothing without a progress bar."""
    if Progress.present is not None:
        Progress.present.reach(position_s)


@contextmanager
def recorded(log: Path | None) -> Iterator[None]:
    """Write the progress record of the job with this log during the block, if it is a workflow job."""
    Progress.record = record_of(log) if log is not None and log.parts[0] == "logs" else None
    try:
        yield
    finally:
        if Progress.record is not None:
            with suppress(OSError):
                Progress.record.unlink()
        Progress.record = None


def _write(path: Path, said: dict[str, Any]) -> None:
    """Write a record; if this fails, as on a full disk, the work continues without it."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        part.write_text(json.dumps(said), encoding="utf-8")
        os.replace(part, path)
