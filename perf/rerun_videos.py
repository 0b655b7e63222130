"""The videos of ``reruns.py``, generated with ffmpeg."""

from itertools import chain
from pathlib import Path

from clip import ffmpeg
from measure import sized

SECONDS, PARTS, TIMES = sized((10, 15, 4), small=(2, 3, 1))
"""The length of a clip; the clips of a long video, and how often they are repeated."""
X264 = ("-c:v", "libx264", "-preset", "veryfast", "-crf", "23", "-pix_fmt", "yuv420p")


def clips(folder: Path, n: int) -> list[Path]:
    """Create ``n`` videos of ``SECONDS``, 640 x 360 at 25 fps with audio, unless they exist."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{i:03}.mp4" for i in range(n)]
    for i, path in enumerate(paths):
        if not path.exists():
            picture = f"testsrc2=size=640x360:rate=25,noise=alls=8:allf=t+u:all_seed={i + 1},hue=h={37 * i % 360}"
            sound = f"sine=frequency={200 + 20 * i}:sample_rate=44100"
            aside = path.with_suffix(".part.mp4")
            sources = ["-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound]
            ffmpeg(*sources, "-t", str(SECONDS), *X264, "-c:a", "aac", aside)
            aside.rename(path)
    return paths


def joined(folder: Path, n: int) -> list[Path]:
    """Create ``n`` videos of 10 min unless they exist: some clips, repeated; each video begins with another clip."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = clips(folder.parent / "clips", PARTS)
    paths = [folder / f"{i:03}.mp4" for i in range(n)]
    for i, path in enumerate(paths):
        if not path.exists():
            listed, aside = folder / "list.txt", path.with_suffix(".part.mp4")
            lines = (f"file '{part}'\nduration {SECONDS}\n" for part in chain(parts[i:], parts[:i]))
            listed.write_text("".join(lines) * TIMES)
            sound = ["-f", "lavfi", "-i", f"sine=frequency={200 + 20 * i}:sample_rate=44100"]
            maps = ["-map", "0:v", "-map", "1:a", "-shortest", "-c:v", "copy", "-c:a", "aac"]
            ffmpeg("-f", "concat", "-safe", "0", "-i", listed, *sound, *maps, aside)
            aside.rename(path)
    return paths
