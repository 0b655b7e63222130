"""The videos of ``reruns.py``, generated with ffmpeg."""

from itertools import chain
from pathlib import Path

from clip import ffmpeg

X264 = ("-c:v", "libx264", "-preset", "veryfast", "-crf", "23", "-pix_fmt", "yuv420p")


def clips(folder: Path, n: int) -> list[Path]:
    """Create ``n`` videos of 10 s, 640 x 360 at 25 fps with audio, unless they exist."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{i:03}.mp4" for i in range(n)]
    for i, path in enumerate(paths):
        if not path.exists():
            picture = f"testsrc2=size=640x360:rate=25,noise=alls=8:allf=t+u:all_seed={i + 1},hue=h={37 * i % 360}"
            sound = f"sine=frequency={200 + 20 * i}:sample_rate=44100"
            aside = path.with_suffix(".part.mp4")
            sources = ["-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound]
            ffmpeg(*sources, "-t", "10", *X264, "-c:a", "aac", aside)
            aside.rename(path)
    return paths


def joined(folder: Path, n: int) -> list[Path]:
    """Create ``n`` videos of 10 min unless they exist: 15 clips, four times; each video begins with another clip."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = clips(folder.parent / "clips", 15)
    paths = [folder / f"{i:03}.mp4" for i in range(n)]
    for i, path in enumerate(paths):
        if not path.exists():
            listed, aside = folder / "list.txt", path.with_suffix(".part.mp4")
            listed.write_text("".join(f"file '{part}'\nduration 10\n" for part in chain(parts[i:], parts[:i])) * 4)
            sound = ["-f", "lavfi", "-i", f"sine=frequency={200 + 20 * i}:sample_rate=44100"]
            maps = ["-map", "0:v", "-map", "1:a", "-shortest", "-c:v", "copy", "-c:a", "aac"]
            ffmpeg("-f", "concat", "-safe", "0", "-i", listed, *sound, *maps, aside)
            aside.rename(path)
    return paths
