"""Content scores of frames: how much each differs from the one before (PySceneDetect's ContentDetector)."""

import numpy as np

from stepline.media.decode import Image

WIDTH = 256


class ContentScore:
    """The score of each frame of one video, fed in order; the first frame's is 0.

    A score is the mean over hue, saturation and value of the mean absolute difference to the last frame, in 8-bit
    levels, on pictures whose longer side is scaled to 256 (bilinear). It equals `content_val` of PySceneDetect 0.7.2
    bit by bit.
    """

    def __init__(self) -> None:
        """Start before the first frame."""
        self._last: list[Image] = []

    def __call__(self, bgr: Image) -> float:
        """Return the score of the next frame, (height, width, 3) BGR."""
        import cv2

        height, width, _ = bgr.shape
        factor = max(max(height, width) / WIDTH, 1)
        small = cv2.resize(bgr, (max(1, round(width / factor)), max(1, round(height / factor))))
        hsv = np.asarray(cv2.cvtColor(small, cv2.COLOR_BGR2HSV), np.uint8)
        last, self._last = (
            self._last,
            [hsv[:, :, channel].copy() for channel in range(3)],
        )
        if not last:
            return 0.0
        hue, saturation, value = (cv2.norm(a, b, cv2.NORM_L1) / a.size for a, b in zip(self._last, last, strict=True))
        return float(hue + saturation + value) / 3
