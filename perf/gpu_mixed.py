"""Batches of clips of several videos compared with batches of one video: rows and times; random weights.

Short videos, because their last batches are small.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import sized

CORES = sized(len(os.sched_getaffinity(0)), small=2)
VIDEOS, TIMES = sized(32, small=2), sized(2, small=1)
"""The number of videos, and how often each repeats the clip."""


def main() -> None:
    """Print the table."""
    # Imported here, because the decoding processes import this file too.
    from dataclasses import replace
    from time import perf_counter

    import numpy as np
    from gpu_clips import SECONDS, videos
    from gpu_rows import apart
    from random_weights import random_presets
    from stage import FOUR, extracted

    from stepline.errors import SteplineError

    presets = random_presets()
    print(f"{VIDEOS} videos of {TIMES * SECONDS} s, 720p, bfloat16, {CORES} decoding processes")
    print(f"{'':22}{'of one video, s':>18}{'mixed, s':>12}{'ratio':>8}{'largest difference':>20}{'equal rows':>12}")
    with TemporaryDirectory() as name:
        folder = Path(name)
        some = videos(folder, 720, VIDEOS, times=TIMES)

        def figures(chosen: tuple[str, ...]) -> str:
            found, spent_s = [], []
            for batches in ("video", "mixed"):
                changes = {"compute": "bfloat16", "dtype": "float32", "batches": batches}
                specs = [replace(presets[each], **changes) for each in chosen]
                extracted(some[:1], folder, specs)
                start = perf_counter()
                banks = extracted(some, folder, specs, decoders=CORES)
                spent_s.append(perf_counter() - start)
                found.append([np.concatenate([bank[video.stem] for video in some]) for bank in banks])
            differ = max(apart(*pair) for pair in zip(*reversed(found), strict=True))
            equal = np.mean([(a == b).all(axis=1).mean() for a, b in zip(*found, strict=True)])
            return f"{spent_s[0]:18.2f}{spent_s[1]:12.2f}{spent_s[1] / spent_s[0]:8.2f}{differ:20.1e}{equal:12.0%}"

        for chosen in (FOUR, *((each,) for each in FOUR)):
            what = chosen[0] if len(chosen) == 1 else "all four"
            try:
                found = figures(chosen)
            except SteplineError as error:
                found = f"  {error}"
            print(f"{what:22}{found}", flush=True)


if __name__ == "__main__":
    main()
