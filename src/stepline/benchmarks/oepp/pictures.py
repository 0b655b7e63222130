"""Pictures of what a window starts and ends with, for a language model that sees (paper, Sec. 7.2.4)."""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from stepline.benchmarks.oepp.windows import Window
from stepline.media.decode import MediaError
from stepline.media.frame import DecodedFrame
from stepline.media.read import pyav, with_timeline
from stepline.media.timeline import Timeline, absent_s

SIDE = 512
"""Longest side in pixels. A smaller picture keeps its size."""
QUALITY = 90
"""Of the JPEGs; the paper does not say."""


def observed_s(window: Window, images: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the whole seconds of the start's and of the end's pictures, ascending.

    As in the curation (``dataset.py``): the start's second and the two behind it, the end's and the two before it,
    fractions cut off. Of fewer ``images`` than 3, which the paper does not describe, the start's are the first and the
    end's are the last. A second may lie outside the video.
    """
    start_s, end_s = int(window.start.start_s), int(window.end.end_s)
    return tuple(range(start_s, start_s + images)), tuple(range(end_s - images + 1, end_s + 1))


def pictures(video: Path, times_s: Iterable[int]) -> tuple[dict[int, bytes], float]:
    """Return a JPEG of the frame that is shown at each time; of the nearest frame where the video shows none then.

    times_s: in seconds. The file is decoded once. Pictures are upright and at most 512 pixels long and wide. The second
    value is how many seconds are absent of a damaged video. Raises MediaError, which names the file, where it cannot be
    read.
    """
    times = sorted(set(times_s))

    def made(timeline: Timeline) -> tuple[dict[int, bytes], float]:
        shown = timeline.nearest_had(timeline.at_or_before(times))
        images = [_jpeg(cast(DecodedFrame, frame)) for frame in pyav(video, timeline, shown)]
        return dict(zip(times, images, strict=True)), absent_s(timeline.gaps)

    try:
        return with_timeline(video, made)
    except MediaError as error:
        raise MediaError(f"{video}: {error}; its windows are left out: replace the file") from None


def _jpeg(frame: DecodedFrame) -> bytes:
    import PIL.Image

    image = PIL.Image.fromarray(frame.rgb())
    image.thumbnail((SIDE, SIDE))
    content = io.BytesIO()
    image.save(content, "JPEG", quality=QUALITY)
    return content.getvalue()
