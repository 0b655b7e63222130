"""torchvision beside a torch without GPU: its own wheel cannot be imported there, nor then timm and transformers."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

_DEFINED: list[Any] = []
"""Keeps the operators' definitions alive."""


def make_importable() -> None:
    """See that ``import torchvision`` works; call it before torchvision, timm, open_clip or transformers is imported.

    Where torchvision's compiled operators cannot be loaded, the two that its import asks for are declared, and cannot
    be called. Its transforms need none of them.
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
