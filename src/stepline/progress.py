"""Progress of long work: done, rate and time left on a terminal; silent in logs."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def progress(items: Iterable[Item], *, what: str, unit: str, total: int | None = None) -> Iterator[Item]:
    """Iterate over ``items`` with a progress bar on a terminal's standard error."""
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # else a thread looks at bars, and a process with threads is not forked
    yield from tqdm(items, desc=what, unit=f" {unit}", total=total, disable=None, leave=False, miniters=1)
