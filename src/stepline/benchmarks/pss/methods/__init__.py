"""Methods: from an entry's material to segments, and sentences, of every video; a module for each kind.

A module has ``make(material, fits)``, which gives a method per seed, and, where it is trained, ``fit(material, seed,
path)``.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from stepline.benchmarks.pss.material import Material
from stepline.benchmarks.pss.predictions import Prediction
from stepline.datasets.pss import Procedure

Method = Callable[[int, str, Procedure], Prediction]
"""From a seed, a split and a video to what is predicted of it."""


def make_method(material: Material, fits: list[Path]) -> Iterable[tuple[int, Method]]:
    """Yield each seed with its method. fits: one checkpoint per seed, in their order."""
    made: Iterable[tuple[int, Method]] = _module(material).make(material, fits)
    return made


def fit(material: Material, seed: int, path: Path) -> None:
    """Fit the entry on train, choose on val, and write the checkpoint of one seed to ``path``."""
    _module(material).fit(material, seed, path)


def _module(material: Material) -> Any:
    return import_module(f"{__name__}.{material.entry.made.module}")
