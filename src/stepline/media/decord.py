"""decord as a reader: frames by index, only from mp4 files with a constant frame rate, which it reads correctly.

decord 0.6.0 returns wrong frames for edit lists and variable frame rates, hangs on containers that start late, and
reads ahead without a limit. So a file is first compared with its timeline, and refused if they differ.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_DATA, getrlimit

import numpy as np

from stepline.media.decode import MediaError, Stream, opened
from stepline.media.frame import ArrayFrame, Frame
from stepline.media.process import data_bytes
from stepline.media.timeline import Indices, Timeline

BATCH = 16
"""Frames per request."""


def decord(path: Path, timeline: Timeline, indices: Indices, /, *, turned: bool) -> Iterator[Frame]:
    """Yield the frame of each index. Raises MediaError if decord cannot read the file exactly."""
    import decord as library

    size = _refuse(path, timeline, turned)
    try:
        reader = library.VideoReader(str(path), ctx=library.cpu(0), num_threads=1)
        shown = reader.get_frame_timestamp(np.arange(len(reader)))
        half_s = timeline.end_s / len(timeline.pts) / 2
        if len(shown) != len(timeline.pts) or np.abs(shown[:, 0] - timeline.t_s).max() > half_s:
            raise MediaError("decord's frames differ from the container's: set media.reader to pyav")
        for start in range(0, len(indices), BATCH):
            batch = indices[start : start + BATCH]
            _refuse_read_ahead()
            images = reader.get_batch(batch.tolist()).asnumpy()
            if images.shape[1:3] != size:
                raise MediaError("decord reads another of its video streams: set media.reader to pyav")
            yield from map(ArrayFrame, images)
    except library.DECORDError as error:
        reason = re.sub(r"\[[\d:]+\] \S+:\d+: ", "", str(error).splitlines()[0])  # removes time and source
        raise MediaError(f"decord: {reason}") from None


def _refuse(path: Path, timeline: Timeline, turned: bool) -> tuple[int, int]:
    """Raise MediaError if decord cannot read the file exactly; otherwise return height and width of its pictures."""
    with opened(path) as container:
        stream = Stream(container)
        start, name, rotation = stream.video.start_time, container.format.name, stream.rotation()
        sizes = [(each.height, each.width) for each in stream.videos]
        size = sizes[stream.videos.index(stream.video)]
    steps = np.diff(timeline.pts)
    reason = ""
    if "mp4" not in name.split(","):
        reason = f"the container is {name}, not mp4"
    elif sizes.count(size) > 1:
        reason = "two of its video streams have the same size"
    elif timeline.packets is not None:
        reason = "it is damaged"
    elif turned and rotation:
        reason = "its pictures are stored rotated"
    elif start or timeline.pts[0] or timeline.keys[0]:
        reason = "an edit list cuts its start"
    elif len(steps) and steps.max() - steps.min() > 1:
        reason = "its frame rate varies"
    if reason:
        raise MediaError(f"decord cannot read it exactly ({reason}): set media.reader to pyav")
    return size


def _refuse_read_ahead() -> None:
    limit, _ = getrlimit(RLIMIT_DATA)
    if limit == RLIM_INFINITY:
        return
    if (used := data_bytes()) > 0.8 * limit:
        raise MediaError(f"decord filled {used >> 20} MB by reading ahead: set media.reader to pyav")
