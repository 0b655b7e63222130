"""Makes torchvision importable next to a CPU build of torch, which timm and transformers need."""

import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_DEFINED: list[Any] = []
"""Keeps the operator definitions alive."""


def make_importable() -> None:
    """Make ``import torchvision`` work. Call it before torchvision, timm, open_clip or transformers is imported.

    If torchvision's compiled operators cannot be loaded, this declares the two operators that its import requires. They
    cannot be called; torchvision's transforms do not use them.
    """
    import torch

    found = find_spec("torchvision")
    if _DEFINED or found is None or found.origin is None:
        return
    try:
        torch.ops.load_library(str(Path(found.origin).with_name("_C.so")))  # type: ignore[no-untyped-call]
    except OSError:
        library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")  # type: ignore[no-untyped-call]
        _DEFINED.append(library)


def make_importable_on_import() -> None:
    """Let the import of torchvision call ``make_importable`` first. Code that does not import it needs no torch."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(sys.meta_path.index(PathFinder), _Finder())


class _Finder:
    """Finds torchvision."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        found = PathFinder.find_spec(name) if name == "torchvision" else None
        if found is not None and found.origin is not None:
            found.loader = _Loader(name, found.origin)
        return found


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        make_importable()
        super().exec_module(module)
