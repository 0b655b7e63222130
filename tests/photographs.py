"""Footage for tests and measurements: a camera that moves over a photograph of scikit-image, with grain."""

import subprocess
from pathlib import Path

from imageio_ffmpeg import get_ffmpeg_exe

from stepline.datasets.demo import photograph


def ffmpeg(*arguments: str | Path) -> None:
    """Run ffmpeg."""
    subprocess.run([get_ffmpeg_exe(), "-v", "error", "-y", *arguments], check=True)


def moving(name: str, width: int, height: int, rate: str) -> list[str | Path]:
    """Return ffmpeg's input and filter of endless footage: width, height in pixels, rate in frames per second."""
    larger = f"scale={width * 3 // 2}:{height * 3 // 2}:force_original_aspect_ratio=increase,format=yuv420p"
    window = f"crop={width}:{height}:(iw-ow)*(1+sin(t))/2:(ih-oh)*(1+cos(t))/2"
    grain = "noise=alls=6:allf=t"
    return ["-loop", "1", "-framerate", rate, "-i", photograph(name), "-vf", f"{larger},{window},{grain}"]
