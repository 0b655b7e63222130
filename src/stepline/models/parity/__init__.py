"""Parity of heads: a network filled by a fixed recipe gives what the released code gave.

A head's module here has ``outputs(manifest, golden, path)``: it builds the network of every case in the golden file,
and yields each output as ``Compared``; path is the manifest's. See ``stepline.backbones.parity`` for the recipe.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from stepline.backbones.parity import Golden, Output, read_golden
from stepline.errors import ConfigError, StoreError
from stepline.io import read_json
from stepline.models import CHECKED

FACTOR = 5
"""How many times the reference's own float32 noise an error may be."""


@dataclass(frozen=True)
class Compared:
    """An output beside the reference's: its relative L2 error and the largest that is allowed, 0 of whole numbers."""

    name: str
    error: float
    allowed: float

    @property
    def agrees(self) -> bool:
        """Whether the error is allowed; one that is not a number is not."""
        return self.error <= self.allowed


def compared(name: str, ours: Any, reference: Any, allowed: float) -> Compared:
    """Return two arrays as ``Compared``; of whole numbers and truth values, and of what is NaN, nothing may differ."""
    exact = reference.dtype.kind in "biu"
    if not exact and np.shape(ours) == np.shape(reference) and (np.isnan(ours) == np.isnan(reference)).all():
        ours, reference = np.nan_to_num(ours), np.nan_to_num(reference)
    return Compared(name, Output(name, ours, reference).error, 0.0 if exact else allowed)


def check(name: str, manifest: Path, golden: Path) -> Iterator[Compared]:
    """Yield every output of the head ``name``, filled by the recipe of ``manifest``, against that in ``golden``.

    Raises ConfigError where the name is unknown, StoreError where a file is not what it should be, or where the golden
    file holds an output that was not compared.
    """
    if name not in CHECKED:
        raise ConfigError(f"head {name!r} has no parity check; choose from {', '.join(CHECKED)}")
    described, arrays = read_json(manifest), read_golden(golden)
    module = import_module(f"stepline.models.parity.{name}")
    outputs: Callable[[Any, Golden, Path], Iterator[Compared]] = module.outputs
    is_input: Callable[[str], bool] = module.is_input
    left = {each for each in arrays if not is_input(each)}
    if not left:
        raise StoreError(f"{golden} holds no outputs")
    try:
        for each in outputs(described, arrays, manifest):
            left.discard(each.name)
            yield each
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise StoreError(f"{manifest} and {golden} are not both of {name}: give that head's own") from error
    if left:
        raise StoreError(f"{golden} holds outputs that {name} has not: {', '.join(sorted(left))}")
