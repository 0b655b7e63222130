"""Methods: from an entry's material to a plan of every window; a module for each kind.

A module has ``make(material, fits)``, which gives a method per seed, and, where it is trained, ``fit(material, seed,
path)``.
"""

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from stepline.benchmarks.oepp.material import Material
from stepline.benchmarks.oepp.windows import Window
from stepline.datasets.oepp import Part

Method = Callable[[Part, Sequence[Window]], Sequence[tuple[int, ...] | None]]
"""From a part of the split and some of its windows to a plan of each: places in the part's pool, or None.

None: it cannot be made, and the window is not evaluated.
"""


def make_method(material: Material, fits: list[Path]) -> Iterable[tuple[int, Method]]:
    """Yield each seed with its method. fits: one checkpoint per seed, in their order."""
    made: Iterable[tuple[int, Method]] = _module(material).make(material, fits)
    return made


def fit(material: Material, seed: int, path: Path) -> None:
    """Fit the entry on train, choose the epoch on val, and write the checkpoint of one seed to ``path``."""
    _module(material).fit(material, seed, path)


def _module(material: Material) -> Any:
    return import_module(f"{__name__}.{material.entry.made.module}")
