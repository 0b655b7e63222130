"""Peak memory of the features stage for four presets in one pass, without networks, by the length of the video."""

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

TIMES = {"20 s": 1, "10 min": 30, "1 h": 180}


def peak_mb(work: Callable[[], object]) -> float:
    """Return the peak increase in memory of this process and its children during ``work``, in MiB.

    Shared pages count in each process.
    """
    import psutil

    process, ended, most = psutil.Process(), threading.Event(), 0

    def held() -> int:
        total = 0
        for each in (process, *process.children(recursive=True)):
            try:
                total += each.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return total

    def watch() -> None:
        nonlocal most
        while not ended.wait(0.05):
            most = max(most, held())

    before = held()
    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    ended.set()
    watcher.join()
    return (most - before) / 2**20


def main() -> None:
    """Print the table."""
    # Imported here, because the decoding process imports this file too.
    import torch
    from clip import clip
    from stage import FOUR, extracted, stand_in

    from stepline.features import network

    torch.set_num_threads(1)
    specs = [stand_in(each) for each in FOUR]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        extracted([clip(folder, times=1)], folder, specs)  # imports count as the program
        for device in ("cpu", "cuda"):
            network.FRAMES["cpu"], network.MOST["cpu"] = network.FRAMES[device], network.MOST[device]
            for length, times in list(TIMES.items())[: 3 if device == "cpu" else 2]:
                video = clip(folder, times=times)
                peak = peak_mb(lambda video=video: extracted([video], folder, specs))
                print(f"{length:10} of 1280x720, batches as on {device}: {peak:6.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
