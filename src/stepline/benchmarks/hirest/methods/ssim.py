"""Steps that begin at a frame unlike the previous one, by SSIM (Wang et al., 2004) of 32 frames (Sec. 4.1)."""

import logging
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import Method, UnavailableError
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.benchmarks.hirest.methods.found import found, sampled, stepped
from stepline.media.decode import MediaError
from stepline.media.frame import Frame
from stepline.media.read import pyav, with_timeline
from stepline.media.timeline import Timeline, absent_s
from stepline.needs import Need
from stepline.progress import progress

log = logging.getLogger(__name__)

SIDE = 224
"""The shorter side of a grey image, in pixels. The paper states neither the size nor whether it compares colours."""
SETTINGS = {"win_size": 7, "K1": 0.01, "K2": 0.03, "data_range": 255}
"""scikit-image's defaults: a window of 7 x 7 pixels with equal weights."""


class Ssim(Method[HirestInputs, Found]):
    """Parts of the moment. A new step begins if the SSIM is below the setting ``percent``, in hundredths."""

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the parts of each moment with annotated steps, for videos that can be decoded.

        Raises UnavailableError if there are none.
        """
        threshold, pairs, made = inputs.entry.settings["percent"] / 100, stepped(inputs), 0
        for pair, (start_s, end_s) in progress(pairs, what=inputs.entry.id, unit="videos", total=len(pairs)):
            path = inputs.video_file(pair.video)
            assert path is not None, f"{pair.video} is missing and should have been left out"
            try:
                seconds, similar, lost_s = compared(path, pair.duration_s)
            except MediaError as error:
                log.warning("%s: %s; the video is left out: replace the file", path, error)
                continue
            made += 1
            if lost_s:
                inputs.in_part[pair.video] = lost_s
            at = seconds[1:][similar < threshold]
            inside = at[(start_s < at) & (at < end_s)].astype(float).tolist()
            yield found(pair, segments=tuple(pairwise((start_s, *inside, end_s))))
        if not made:
            raise UnavailableError(Need("videos", "hirest"))


def compared(video: Path, duration_s: float) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Return the (32,) seconds of evenly spaced frames, the (31,) SSIM of adjacent frames, and the seconds lost.

    Frames are those shown at whole seconds, as in the released features. A lost frame is replaced by the nearest
    available one; the last value is the duration of the lost parts. Raises MediaError if the file cannot be read.
    """
    from skimage.metrics import structural_similarity

    def made(timeline: Timeline) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
        seconds = sampled(duration_s, ceil(timeline.end_s))
        pictures = map(_grey, pyav(video, timeline, timeline.nearest_had(timeline.at_or_before(seconds))))
        similar = np.array([structural_similarity(a, b, **SETTINGS) for a, b in pairwise(pictures)])
        return seconds, similar, absent_s(timeline.gaps)

    return with_timeline(video, made)


def _grey(frame: Frame) -> NDArray[np.uint8]:
    import cv2

    width, height = (round(length * SIDE / min(frame.size)) for length in frame.size)
    return np.asarray(cv2.cvtColor(frame.rgb(width, height), cv2.COLOR_RGB2GRAY), np.uint8)
