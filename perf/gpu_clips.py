"""The videos of the measurements on a GPU, on a machine that may have neither footage nor ffmpeg.

``python perf/gpu_clips.py FOLDER`` writes the clips that are carried there; the measurements repeat them.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import av
from measure import sized

CARRIED = Path(__file__).parents[1] / "build/gpu-carried"
SECONDS = sized(4, small=1)
HEIGHTS = 720, 1080


def write(folder: Path) -> None:
    """Write a clip of each height, 2.5 and 5 Mbit/s, into ``folder``."""
    from clip import X264, clip, ffmpeg

    with tempfile.TemporaryDirectory() as name:
        cut = ["-i", clip(Path(name), times=1), "-frames:v", str(30 * SECONDS), "-an"]
        ffmpeg(*cut, *X264, folder / "720p.mp4")
        ffmpeg(*cut, "-vf", "scale=1920:1080,noise=alls=6:allf=t", *X264, "-b:v", "5000k", folder / "1080p.mp4")


def videos(folder: Path, height: int, n: int, *, times: int) -> list[Path]:
    """Return ``n`` videos of ``times`` x ``SECONDS`` in a folder; they are written once."""
    if not (CARRIED / f"{height}p.mp4").exists() and not (folder / f"{height}p.mp4").exists():
        write(folder)
    source = next(each for each in (CARRIED, folder) if (each / f"{height}p.mp4").exists()) / f"{height}p.mp4"
    whole = folder / f"{height}p-{times}.mp4"
    if not whole.exists():
        repeated(source, whole, times)
    made = [folder / f"{height}p-{times}-{number}.mp4" for number in range(n)]
    for each in made:
        if not each.exists():
            shutil.copy(whole, each)
    return made


def repeated(source: Path, path: Path, times: int) -> None:
    """Write the video ``times`` in a row, without decoding it."""
    with av.open(path, "w") as output:
        stream = None
        for number in range(times):
            with av.open(source) as once:
                video = once.streams.video[0]
                stream = stream or output.add_stream_from_template(video)
                for packet in once.demux(video):
                    if packet.dts is not None:
                        packet.pts += number * video.duration
                        packet.dts += number * video.duration
                        packet.stream = stream
                        output.mux(packet)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
