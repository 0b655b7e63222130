"""Frames at 1, 8 and 16 per second, scaled to a short side of 224, compared with only decoding."""

import subprocess
import tempfile
from functools import partial
from pathlib import Path

import av
from clip import SECONDS, clip
from imageio_ffmpeg import get_ffmpeg_exe
from measure import show

from stepline.media.read import pyav
from stepline.media.timeline import scan

RATES = (1, 8, 16)
PEER = "ffmpeg, decoded to null"


def selected(path: Path, fps: int, *, scaled: bool = True) -> None:
    """Decode the frame at each time k / fps, and scale it."""
    timeline = scan(path)
    for frame in pyav(path, timeline, timeline.select("at_or_before", fps)):
        if scaled:
            frame.rgb(398, 224)


def decode(path: Path) -> None:
    """Decode every frame with PyAV's libavcodec, and drop it."""
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "AUTO"
        for _ in container.decode(video=0):
            pass


def to_null(path: Path) -> None:
    """Decode every frame with ffmpeg."""
    subprocess.run([get_ffmpeg_exe(), "-v", "error", "-i", path, "-map", "0:v", "-f", "null", "-"], check=True)


def main() -> None:
    """Print the table."""
    version = subprocess.run([get_ffmpeg_exe(), "-version"], capture_output=True, text=True, check=True).stdout
    print(f"{version.splitlines()[0]}; PyAV {av.__version__} with ffmpeg {av.ffmpeg_version_info}")
    with tempfile.TemporaryDirectory() as folder:
        path = clip(Path(folder), times=2)
        show(
            f"{2 * SECONDS} s of 1280x720 at 30 frames per second",
            PEER,
            {
                PEER: lambda: to_null(path),
                "PyAV, every frame decoded and dropped": lambda: decode(path),
                **{f"stepline, {fps} frames per second": partial(selected, path, fps) for fps in RATES},
                **{f"the same, {fps}, not scaled": partial(selected, path, fps, scaled=False) for fps in RATES},
            },
        )


if __name__ == "__main__":
    main()
