"""Checkpoints: read without running code, checked against the network they are for."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Tensors = dict[str, "torch.Tensor"]


def read(path: Path) -> Any:
    """Return the object in a checkpoint."""
    raise NotImplementedError


def state(path: Path, *, inside: Sequence[str] = (), prefix: str = "") -> Tensors:
    """Return the tensors by name."""
    raise NotImplementedError


def load(network: "torch.nn.Module", tensors: Tensors, *, model: str, path: Path, ignore: Sequence[str] = ()) -> None:
    """Load the tensors into the network, strictly."""
    raise NotImplementedError
