"""Progress of long work: done, rate and time left on a terminal; silent in logs."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def progress(items: Iterable[Item], *, what: str, unit: str, total: int | None = None) -> Iterator[Item]:
    """Iterate over ``items`` with a progress bar on a terminal's standard error."""
    from tqdm import tqdm

    yield from tqdm(items, desc=what, unit=f" {unit}", total=total, disable=None, leave=False)
