"""Small pictures of a video at given times."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from av import VideoFrame

WIDTH = 160


def thumbnails(video: Path | str, times_s: Sequence[float]) -> list[bytes | None]:
    """Return a JPEG, 160 pixels wide, for each time: the last frame with pts ≤ t, from one pass in decoding order.

    times_s: ascending. None stands where the video has no frame that early.
    """
    import av

    images: list[bytes | None] = []
    with av.open(str(video)) as container:
        stream = container.streams.video[0]
        last = None
        for frame in container.decode(stream):
            while len(images) < len(times_s) and frame.time > times_s[len(images)]:
                images.append(_jpeg(last))
            if len(images) == len(times_s):
                break
            last = frame
    return images + [_jpeg(last)] * (len(times_s) - len(images))


def _jpeg(frame: "VideoFrame | None") -> bytes | None:
    if frame is None:
        return None
    image = frame.to_image()  # type: ignore[no-untyped-call]
    image = image.resize((WIDTH, max(1, round(WIDTH * image.height / image.width))))
    content = io.BytesIO()
    image.save(content, "JPEG", quality=75)
    return content.getvalue()
