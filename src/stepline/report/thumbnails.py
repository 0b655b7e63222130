"""Small pictures of a video at given times."""

import io
from collections.abc import Sequence
from pathlib import Path

from stepline.media.decode import Image, MediaError, at_or_before

WIDTH = 160


def thumbnails(video: Path, times_s: Sequence[float]) -> list[bytes | None]:
    """Return a JPEG, 160 pixels wide, for each time: what ``at_or_before`` yields.

    times_s: ascending, in seconds from the start of the video stream. None stands for each time after the video's end,
    and for all of a video that cannot be read.
    """
    if not times_s:
        return []
    try:
        images = [_jpeg(image) for image in at_or_before(video, times_s)]
    except MediaError:
        images = []
    return images + [None] * (len(times_s) - len(images))


def _jpeg(rgb: Image) -> bytes:
    import PIL.Image

    height, width, _ = rgb.shape
    content = io.BytesIO()
    image = PIL.Image.fromarray(rgb).resize((WIDTH, max(1, round(WIDTH * height / width))))
    image.save(content, "JPEG", quality=75)
    return content.getvalue()
