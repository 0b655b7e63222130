"""Outputs of a clock that was ahead."""

import os
import re
import time
from pathlib import Path

from stepline.io import write_text
from stepline.overview.ahead import bring_back

OLD = 1_000_000_000


def test_outputs_in_the_future_are_brought_back_in_their_order_once() -> None:
    now = time.time_ns() // 10**9
    times_s = {
        "datasets/mine/availability/000.json": now + 3600,
        "datasets/mine/media/manifests/000.json": now + 3690,
        "datasets/mine/shots/manifests/000.json": now + 3605,
        "features/histogram/edges-0/manifests/mine.000.json": now + 3690,
        "results/mine/videos.csv": OLD,
        "clips/a.mp4": now + 86_400,
    }
    for name, time_s in times_s.items():
        write_text(name, "")
        os.utime(name, (time_s, time_s))
    (line,) = bring_back()
    assert re.match(
        r"a clock was ahead: 4 files, such as datasets/mine/av.*, had times up to 36\d\d s in the fut", line
    )
    videos, media, shots, features, table, clip = (Path(name).stat().st_mtime for name in times_s)
    assert now <= videos < shots < media == features <= time.time()
    assert (table, clip) == (OLD, now + 86_400)
    assert [*bring_back()] == []
