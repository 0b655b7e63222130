"""A picture as if it were a frame of a video."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image


@dataclass(frozen=True)
class Photo:
    """An RGB picture that can be asked what a frame can."""

    image: Image

    def rgb(self, width: int = 0, height: int = 0) -> NDArray[np.uint8]:
        """Return it as (height, width, 3) RGB, scaled to the given size (bicubic), else as it is."""
        return np.asarray(self.image.resize((width, height)) if width else self.image)
