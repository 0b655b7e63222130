"""The clips of the measurements: a camera that moves over a photograph, encoded like web videos."""

from pathlib import Path

from measure import sized

from tests.photographs import ffmpeg, moving

SECONDS = sized(20, small=1)
"""The length of a clip that is not repeated."""
PRESET = sized("medium", small="ultrafast")
X264 = ["-c:v", "libx264", "-preset", PRESET, "-b:v", "2500k", "-g", "250", "-bf", "3", "-pix_fmt", "yuv420p"]


def clip(folder: Path, *, times: int) -> Path:
    """Write ``SECONDS`` of 720p at 30 fps with audio, repeated ``times`` by stream copy, and return its path.

    Grain makes it harder to encode. x264 medium, a key frame every 250, 3 B-frames, 2.5 Mbit/s, AAC.
    """
    once, listed, path = folder / "once.mp4", folder / "list.txt", folder / "clip.mp4"
    sound, aac = ["-f", "lavfi", "-i", "sine=300"], ["-c:a", "aac", "-ar", "44100", "-ac", "2"]
    ffmpeg(*sound, *moving("coffee.png", 1280, 720, "30"), "-t", str(SECONDS), *X264, *aac, once)
    listed.write_text(f"file '{once}'\n" * times)
    ffmpeg("-f", "concat", "-safe", "0", "-i", listed, "-c", "copy", path)
    return path
