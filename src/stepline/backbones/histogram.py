"""A frame descriptor without weights: histograms of colours and edge directions per cell."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepline.spec import FrameSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class HistogramSpec(FrameSpec):
    """The parameters of the descriptor.

    width, height: the size in pixels to which a frame is resized (area interpolation). rows, columns: the grid of
    cells. hues, saturations, values: bins of the colour histogram of a cell. directions: bins of edge directions,
    without sign. edge: the smallest gradient of an edge, in 8-bit levels per pixel.
    """

    name: str = "histogram"
    label: str = "colour-edges"
    revision: int = 1
    fps: float = 5
    width: int = 96
    height: int = 64
    rows: int = 2
    columns: int = 3
    hues: int = 8
    saturations: int = 4
    values: int = 4
    directions: int = 8
    edge: float = 8
    dtype: str = "float32"

    @property
    def dimension(self) -> int:
        """D, the length of a descriptor."""
        return self.rows * self.columns * (self.hues * self.saturations * self.values + self.directions + 1)


def describe(frame_rgb: "NDArray[np.uint8]", spec: HistogramSpec) -> "NDArray[np.float32]":
    """Return the (D,) descriptor of a (height, width, 3) RGB frame.

    Each cell has a joint histogram of hue, saturation and value, and a histogram of edge directions whose last bin
    counts the pixels that are not on an edge. The descriptor is the square root of all counts, scaled to unit length.
    The dot product of two descriptors is therefore the mean Bhattacharyya coefficient of their histograms: in [0, 1],
    and 1 for equal frames.
    """
    import cv2
    import numpy as np

    small = cv2.resize(frame_rgb, (spec.width, spec.height), interpolation=cv2.INTER_AREA)
    hsv = np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2HSV), np.int64)
    hue = hsv[:, :, 0] * spec.hues // 180
    saturation = hsv[:, :, 1] * spec.saturations // 256
    value = hsv[:, :, 2] * spec.values // 256
    colour = (hue * spec.saturations + saturation) * spec.values + value
    down, right = np.gradient(np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), np.float64))
    angle = np.arctan2(down, right) % np.pi
    direction = (angle * spec.directions / np.pi).astype(np.int64) % spec.directions
    direction[np.hypot(down, right) < spec.edge] = spec.directions
    cell = _cells(spec)
    counts = np.hstack(
        [
            _histograms(cell, colour, spec.hues * spec.saturations * spec.values),
            _histograms(cell, direction, spec.directions + 1),
        ]
    ).ravel()
    descriptor: NDArray[np.float32] = np.sqrt(counts / counts.sum()).astype(np.float32)
    return descriptor


def _cells(spec: HistogramSpec) -> "NDArray[np.int64]":
    import numpy as np

    row = np.arange(spec.height) * spec.rows // spec.height
    column = np.arange(spec.width) * spec.columns // spec.width
    return row[:, None] * spec.columns + column


def _histograms(cell: "NDArray[np.int64]", bin_: "NDArray[np.int64]", bins: int) -> "NDArray[np.int64]":
    import numpy as np

    return np.bincount((cell * bins + bin_).ravel(), minlength=(cell.max() + 1) * bins).reshape(-1, bins)
