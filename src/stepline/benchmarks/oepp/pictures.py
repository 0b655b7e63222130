"""Pictures of the start and end of a window for a vision-language model (Sec. 7.2.4)."""

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
"""The maximum length of the longest side in pixels. Smaller pictures keep their size."""
QUALITY = 90
"""The quality of the JPEGs, which the paper does not state."""


def observed_s(window: Window, images: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the whole seconds of the pictures of the start and of the end, ascending.

    As in the curation (``dataset.py``), these are the second of the start with the two after it, and the second of the
    end with the two before it, rounded down. With fewer ``images``, which the paper does not describe, the first
    seconds of the start and the last seconds of the end are used. A second can be outside the video.
    """
    start_s, end_s = int(window.start.start_s), int(window.end.end_s)
    return tuple(range(start_s, start_s + images)), tuple(range(end_s - images + 1, end_s + 1))


def pictures(video: Path, times_s: Iterable[int]) -> tuple[dict[int, bytes], float]:
    """Return a JPEG of the frame at each time, or of the nearest frame if the video shows none then.

    times_s: in seconds. The file is decoded once. Pictures are upright and at most 512 pixels wide and high. The second
    value is the duration of the lost parts of a damaged video, in seconds. Raises MediaError with the file name if the
    file cannot be read.
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
