"""Memory use of the media pass over a video of eight hours."""

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from clip import X264, ffmpeg
from measure import sized

from stepline.media.one_pass import Scored, decode
from stepline.media.process import Limits, killable

SECONDS, TIMES = sized((60, 480), small=(1, 2))
LIMITS = Limits(memory_mb=2000, least_s=100_000, s_per_video_s=4)


def measured(path: Path, wav: Path) -> Iterator[tuple[int, float]]:
    """Run the pass and yield its frames and the peak RSS of its process, in MiB."""
    n_frames = sum(len(item.rows) for item in decode(path, wav, (), True) if isinstance(item, Scored))
    assert "torch" not in sys.modules
    yield n_frames, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print the numbers. The video has simple content, so that decoding takes minutes, but frames of normal size."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        once, listed, path = folder / "once.mp4", folder / "list.txt", folder / "long.mp4"
        plain = ["-f", "lavfi", "-i", "color=gray:s=1280x720:r=30", "-f", "lavfi", "-i", "sine=300"]
        ffmpeg(*plain, "-t", str(SECONDS), *X264, "-c:a", "aac", "-ar", "44100", once)
        listed.write_text(f"file '{once}'\n" * TIMES)
        ffmpeg("-f", "concat", "-safe", "0", "-i", listed, "-c", "copy", path)
        start = time.monotonic()
        [(n_frames, peak_mib)] = killable(
            measured, path, folder / "audio.wav", limits=LIMITS, duration_s=TIMES * SECONDS
        )
        print(f"{n_frames} frames of 1280x720, {path.stat().st_size / 1e6:.0f} MB: peak RSS {peak_mib:.0f} MiB")
        print(f"{time.monotonic() - start:.0f} s; audio.wav {(folder / 'audio.wav').stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
