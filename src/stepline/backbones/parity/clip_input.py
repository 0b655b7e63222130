"""The inputs of models that use CLIP's normalisation."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.backbones.parity import video01
from stepline.backbones.presets.clip import MEAN, STD
from stepline.errors import StoreError


def clip_input(*, name: str, shape: list[int], sha256: str, **_: Any) -> NDArray[np.float32]:
    """Return the normalised (B, 3, T, H, W) input of a case. If ``shape`` has four dimensions, T is 1.

    Raises StoreError if its bytes do not match ``sha256``.
    """
    batch, colours, *frames, height, width = shape
    video = video01(name, (batch, colours, *(frames or [1]), height, width))
    mean, std = (np.array(each, np.float32)[:, None, None, None] for each in (MEAN, STD))
    normalised: NDArray[np.float32] = (video - mean) / std
    if hashlib.sha256(normalised.tobytes()).hexdigest() != sha256:
        raise StoreError(f"the recipe's input {name} differs from the golden file's")
    return normalised
