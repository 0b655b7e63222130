"""Frames at 1, 8 and 16 a second, scaled to a short side of 224, against decoding alone."""

import subprocess
import tempfile
from pathlib import Path

import av
from clip import clip
from imageio_ffmpeg import get_ffmpeg_exe
from measure import show

from stepline.media.read import pyav
from stepline.media.timeline import scan

PEER = "ffmpeg, decoded to null"


def selected(path: Path, fps: int) -> None:
    """Scale each frame that stands for k / fps seconds."""
    timeline = scan(path)
    for frame in pyav(path, timeline, timeline.select("at_or_before", fps)):
        frame.rgb(398, 224)


def decode(path: Path) -> None:
    """Decode every frame with PyAV's libavcodec, and do nothing with it."""
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
            "40 s of 1280x720 at 30 frames a second",
            PEER,
            {
                PEER: lambda: to_null(path),
                "PyAV, every frame decoded and dropped": lambda: decode(path),
                "stepline, 1 frame a second": lambda: selected(path, 1),
                "stepline, 8 frames a second": lambda: selected(path, 8),
                "stepline, 16 frames a second": lambda: selected(path, 16),
            },
        )


if __name__ == "__main__":
    main()
