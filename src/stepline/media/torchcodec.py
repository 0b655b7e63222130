"""torchcodec as a reader: frames by index in its exact mode, each compared with the requested time.

torchcodec 0.13.0 seeks to the key frame before a frame. With edit lists and MPEG-TS the seek may end elsewhere, and the
next frame is another one: such a file is refused. Pictures are rotated as the header of the stream specifies.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np

from stepline.errors import SetupError
from stepline.media.decode import Complaints, MediaError, Stream, opened
from stepline.media.frame import ArrayFrame, Frame
from stepline.media.timeline import Indices, Timeline

VARIABLE = "LD_LIBRARY_PATH"


def torchcodec(path: Path, timeline: Timeline, indices: Indices, /, *, turned: bool) -> Iterator[Frame]:
    """Yield the frame of each index.

    Raises MediaError if torchcodec cannot read the file exactly, SetupError if torchcodec cannot be loaded.
    """
    library = _library()
    with opened(path) as container:
        stream = Stream(container)
        number, start_s, rotation = stream.video.index, float(stream.start * stream.time_base), stream.rotation()
    if timeline.packets is not None:
        raise _refused("it is damaged, or its packets do not state when frames are shown")
    complaints = Complaints()
    try:
        decoder = library.VideoDecoder(path, stream_index=number, dimension_order="NHWC", seek_mode="exact")
        clockwise = -(decoder.metadata.rotation or 0)
        if rotation >= 360 or abs((clockwise - rotation + 180) % 360 - 180) > 1:
            raise _refused("its pictures are mirrored, or rotated by another angle than its header states")
        for index, t_s in zip(indices.tolist(), timeline.t_s[indices].tolist(), strict=True):
            frame = decoder.get_frame_at(index)
            at_s = frame.pts_seconds - start_s
            if abs(at_s - t_s) > float(timeline.time_base) / 2:
                raise _refused(f"for {t_s:.3f} s it returns the frame at {at_s:.3f} s")
            if reason := complaints():
                raise _refused(f"damaged at {t_s:.3f} s: {reason}")
            image = frame.data.numpy()
            yield ArrayFrame(image if turned else np.ascontiguousarray(np.rot90(image, rotation // 90)))
    except (RuntimeError, IndexError, ValueError) as error:
        raise _refused(str(error).splitlines()[0]) from None


@contextmanager
def ffmpeg_of_pyav() -> Iterator[None]:
    """Let processes that start in the block find the FFmpeg libraries in PyAV's wheel, as torchcodec's has none.

    If PyAV is not from a wheel, torchcodec finds the libraries that PyAV itself uses: the system's, or conda's.
    """
    av = find_spec("av")
    wheel = Path(av.origin).parents[1] / "av.libs" if av and av.origin else Path()
    if wheel.name != "av.libs" or not wheel.is_dir():
        yield
        return
    with TemporaryDirectory(prefix="stepline-ffmpeg-") as folder:
        for file in wheel.iterdir():
            Path(folder, file.name).symlink_to(file)
            if name := re.fullmatch(r"(lib(?:av|sw)\w+)-[0-9a-f]{8}(\.so\.\d+).*", file.name):
                Path(folder, name[1] + name[2]).symlink_to(file)
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = os.pathsep.join(filter(None, [folder, before]))
        try:
            yield
        finally:
            del os.environ[VARIABLE]
            os.environ |= {VARIABLE: before} if before else {}


def _library() -> ModuleType:
    try:
        import torchcodec.decoders
    except ModuleNotFoundError:
        raise
    except (ImportError, OSError, RuntimeError) as error:  # a RuntimeError has a traceback for each version of FFmpeg
        reason = next((line for line in str(error).splitlines() if line.startswith("OSError: ")), str(error))
        raise SetupError(f"media.reader: torchcodec cannot be loaded ({reason}): see docs/media.md") from None
    return torchcodec.decoders


def _refused(reason: str) -> MediaError:
    return MediaError(f"torchcodec cannot read it exactly ({reason}): set media.reader to pyav")
