"""Frame scores for shot detection, as PySceneDetect's detectors compute them."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from stepline.media.frame import Image

WIDTH = 256
HASH = 8
BINS = 128


class FrameScores:
    """Computes the scores of each frame of one video, passed in order: a value for each of COLUMNS.

    The picture is first scaled to a longer side of 256 (bilinear). The scores are bit-identical to those that
    PySceneDetect 0.7.2 writes with its ``StatsManager``, default detectors and default downscale. All scores but
    ``average_rgb`` compare the frame with the previous one; the first frame is compared with itself.

    ``delta_hue``, ``delta_sat``, ``delta_lum``: mean absolute difference of hue, saturation and value, in 8-bit levels.
    ``content_val``: their mean (ContentDetector's default weights; edges have weight 0 there and are not computed).
    ``average_rgb``: mean of all levels, 0 to 255 (ThresholdDetector).
    ``hash_dist``: fraction of the 64 bits of the perceptual hash that changed (HashDetector).
    ``hist_diff``: correlation of the luma histograms, 1 if they are equal (HistogramDetector).
    """

    COLUMNS = ("content_val", "delta_hue", "delta_sat", "delta_lum", "average_rgb", "hash_dist", "hist_diff")

    def __init__(self) -> None:
        """Start before the first frame."""
        self._last: tuple[Image, NDArray[np.bool_], NDArray[np.float32]] | None = None

    def __call__(self, bgr: Image) -> tuple[float, ...]:
        """Return the scores of the next frame, (height, width, 3) BGR."""
        import cv2

        small = _scaled(bgr)
        if self._last is not None and self._last[0].shape != small.shape:  # the frame size changed
            height, width, _ = self._last[0].shape
            small = cast(Image, cv2.resize(small, (width, height)))
        hsv = cast(Image, cv2.cvtColor(small, cv2.COLOR_BGR2HSV))
        bits, histogram = _hash(small), _histogram(small)
        average = cv2.norm(small, cv2.NORM_L1) / small.size
        last_hsv, last_bits, last_histogram = self._last or (hsv, bits, histogram)
        first, self._last = self._last is None, (hsv, bits, histogram)
        pixels = hsv.size // 3
        hue, saturation, value, _ = (total / pixels for total in cv2.sumElems(cv2.absdiff(hsv, last_hsv)))
        distance = np.count_nonzero(bits != last_bits) / bits.size
        correlation = 1.0 if first else cv2.compareHist(last_histogram, histogram, cv2.HISTCMP_CORREL)
        return (hue + saturation + value) / 3, hue, saturation, value, average, distance, correlation


def _scaled(bgr: Image) -> Image:
    import cv2

    height, width, _ = bgr.shape
    factor = max(height, width) / WIDTH
    if factor <= 1:
        return bgr
    return cast(Image, cv2.resize(bgr, (max(1, round(width / factor)), max(1, round(height / factor)))))


def _hash(bgr: Image) -> NDArray[np.bool_]:
    """Return HashDetector's hash: a bit per low frequency, True if it is above their median."""
    import cv2

    grey = cast(Image, cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY))
    square = cast(Image, cv2.resize(grey, (2 * HASH, 2 * HASH), interpolation=cv2.INTER_AREA))
    low = cv2.dct(np.asarray(square, np.float32) / (square.max() or 1))[:HASH, :HASH].ravel()
    ordered = np.sort(low)
    half = low.size // 2
    return cast("NDArray[np.bool_]", low > (ordered[half - 1] + ordered[half]) / 2)


def _histogram(bgr: Image) -> NDArray[np.float32]:
    """Return HistogramDetector's histogram of the luma, normalised to unit length."""
    import cv2

    counts = cv2.calcHist([cv2.cvtColor(bgr, cv2.COLOR_BGR2YUV)], [0], None, [BINS], [0, 256])
    return cast("NDArray[np.float32]", cv2.normalize(counts, counts).ravel())
