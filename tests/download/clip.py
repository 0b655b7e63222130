"""A small real video for the tests of downloads."""

import subprocess
from pathlib import Path

import imageio_ffmpeg

from stepline.media.headers import Headers
from stepline.media.process import Limits

DURATION_S = 3
HEADERS = Headers(Limits(memory_mb=1000, least_s=120, s_per_video_s=4))


def ffmpeg(*arguments: str | Path) -> None:
    subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-y", *arguments], check=True)


def make(folder: Path) -> None:
    """Make ``a.mp4`` (64 x 48, 10 fps, h264, aac), its streams ``v.mp4`` and ``a.m4a``, and ``a.webm``."""
    noise = ["-f", "lavfi", "-i", f"testsrc2=size=64x48:rate=10:duration={DURATION_S},noise=alls=90:allf=t"]
    sine = ["-f", "lavfi", "-i", f"sine=duration={DURATION_S}"]
    exact = ["-fflags", "+bitexact", "-flags", "+bitexact", "-threads", "1"]
    h264 = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-qp", "1"]
    ffmpeg(*noise, *sine, *exact, *h264, "-c:a", "aac", "-b:a", "128k", folder / "a.mp4")
    ffmpeg("-i", folder / "a.mp4", *exact, "-c", "copy", "-an", folder / "v.mp4")
    ffmpeg("-i", folder / "a.mp4", *exact, "-c", "copy", "-vn", folder / "a.m4a")
    ffmpeg(*noise, *exact, "-c:v", "libvpx", "-b:v", "200k", folder / "a.webm")


def cut(whole: Path, path: Path) -> None:
    """Write a file as earlier versions downloaded it for spans of a video."""
    mark = 'comment=stepline cut: {"spans": [[0.5, 1.0]], "fps": 10.0, "frame_rate": "10", "duration_s": 3.0}'
    ffmpeg("-i", whole, "-c", "copy", "-t", "1.5", "-metadata", mark, path)
