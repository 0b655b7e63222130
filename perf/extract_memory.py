"""Peak memory of the features stage for four presets in one pass, without networks, by the length of the video.

The stage runs in a new process for each length, as a process keeps some of the memory that it frees.
"""

import subprocess
import sys
import tempfile
import time
from contextlib import chdir
from pathlib import Path

import psutil
from measure import sized

DEVICES = sized({1: ("cpu", "cuda"), 30: ("cpu", "cuda"), 180: ("cpu",)}, small={1: ("cpu", "cuda")})
"""The devices whose batches are measured, by how often the clip is repeated."""


def extract(device: str, video: Path) -> None:
    """Run the stage after the end of standard input, with the batches of a device. Imports count as the program."""
    # Imported here, because the decoding process may import this file too.
    import torch
    from stage import FOUR, extracted, stand_in

    from stepline.backbones.histogram import HistogramSpec
    from stepline.features import encoder

    torch.set_num_threads(1)
    encoder.FRAMES["cpu"], encoder.MOST["cpu"] = encoder.FRAMES[device], encoder.MOST[device]
    with tempfile.TemporaryDirectory() as name, chdir(name):
        extracted([video.with_name("once.mp4")], Path(name), [HistogramSpec()])
        print("imported", flush=True)
        sys.stdin.read()
        extracted([video], Path(name), [stand_in(each) for each in FOUR])


def held_mib(process: psutil.Process) -> float:
    """Return the memory of a process and its children, in MiB. Processes that share a page count a part of it each."""
    total = 0
    try:
        for each in (process, *process.children(recursive=True)):
            total += each.memory_full_info().pss
    except psutil.NoSuchProcess:  # it ended in the meantime
        return 0.0
    return total / 2**20


def peak_mib(device: str, video: Path) -> float:
    """Return the peak increase in memory of the stage's processes, in MiB."""
    command = [sys.executable, __file__, device, video]
    with psutil.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        before = most = held_mib(process)
        process.stdin.close()
        while process.poll() is None:
            most = max(most, held_mib(process))
            time.sleep(0.05)
    assert not process.returncode
    return most - before


def main() -> None:
    """Print the table."""
    from clip import SECONDS, clip

    with tempfile.TemporaryDirectory() as name:
        for times, devices in DEVICES.items():
            video = clip(Path(name), times=times)
            for device in devices:
                length, peak = f"{times * SECONDS} s", peak_mib(device, video)
                print(f"{length:10} of 1280x720, batches as on {device}: {peak:6.0f} MiB", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        extract(sys.argv[1], Path(sys.argv[2]))
    else:
        main()
