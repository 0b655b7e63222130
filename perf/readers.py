"""Readers of frames, at full size and as RGB: CPU time and memory, compared with PyAV."""

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from clip import SECONDS, clip
from measure import cpu_s, sized

from stepline.features.frames import READERS
from stepline.media.timeline import scan

RATES = sized((1, 8, 30), small=(8,))
REPEATS = sized(3, small=1)


def read(name: str, fps: int, path: Path) -> None:
    """Print the CPU seconds of reading frames after a warm-up, and the peak of this process's memory in MiB."""
    timeline = scan(path)
    indices = timeline.select("at_or_before", fps)
    for _ in range(2):
        start = cpu_s()
        for frame in READERS[name](path, timeline, indices, turned=True):
            frame.rgb()
        used = cpu_s() - start
    status = Path("/proc/self/status").read_text()
    peak_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    print(used, peak_kb / 1024)


def main() -> None:
    """Print the table; the readers alternate, each time in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        clip(Path(folder), times=1)
        path = Path(folder, "once.mp4")  # decord refuses the joined clip, which has an edit list
        for fps in RATES:
            found: dict[str, list[list[float]]] = {name: [] for name in READERS}
            for _ in range(REPEATS):
                for name, each in found.items():
                    command = [sys.executable, __file__, name, str(fps), path]
                    done = subprocess.run(command, check=True, capture_output=True, text=True)
                    each.append([float(number) for number in done.stdout.split()])
            print(f"{SECONDS} s of 1280x720, {fps} frames per second\n{'':20}{'CPU s':>10}{'ratio':>10}{'MiB':>10}")
            peer_s = median(used for used, _ in found["pyav"])
            for name, each in found.items():
                used_s, mib = (median(numbers) for numbers in zip(*each, strict=True))
                print(f"{name:20}{used_s:10.3f}{used_s / peer_s:10.2f}{mib:10.0f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        read(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
