"""The cost of atomic results: the share of a stage's time in syncs, locks, renames and digests."""

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, chdir
from functools import partial
from pathlib import Path
from unittest.mock import patch

from clip import SECONDS, clip
from measure import cpu_s

from stepline import aside, io
from stepline.availability import Record, write_availability
from stepline.backbones.histogram import HistogramSpec
from stepline.features.extract import Work, extract
from stepline.media import one_pass
from stepline.media import prepare as media
from stepline.media.process import Limits

LIMITS = Limits(memory_mb=2000, least_s=600, s_per_video_s=4)
OPTIONS = {"device": "cpu", "batch_size": None, "decoders": 1}
VIDEOS = 2
COMMITS = (
    *((aside, name) for name in ("_new", "_remove", "sweep")),
    *((io, name) for name in ("_fsync", "seal", "sealed")),
    *((media, name) for name in ("sha256_file", "sweep")),
    (one_pass, "seal"),
    (Path, "replace"),
)


def show(title: str, run: Callable[[], object]) -> None:
    """Print CPU and wall time of a stage, and the share of commits."""
    spent = [0.0, 0.0]
    within: list[str] = []

    def timed(call: Callable[..., object], *arguments: object, **options: object) -> object:
        start = time.thread_time(), time.perf_counter()
        within.append("")
        try:
            return call(*arguments, **options)
        finally:
            within.pop()
            if not within:
                spent[0] += time.thread_time() - start[0]
                spent[1] += time.perf_counter() - start[1]

    with ExitStack() as patched:
        for owner, name in COMMITS:
            call = getattr(owner, name)
            made = partial(timed, call)
            patched.enter_context(
                patch.object(owner, name, (lambda *a, made=made: made(*a)) if owner is Path else made)
            )
        start = cpu_s(), time.perf_counter()
        run()
        cpu, wall = cpu_s() - start[0], time.perf_counter() - start[1]
    print(f"{title:32}{cpu:8.2f} CPU s, commits {spent[0] / (cpu - spent[0]):.2%} of the rest")
    print(f"{'':32}{wall:8.2f} s, commits {spent[1] / (wall - spent[1]):.2%} of the rest", flush=True)


def main() -> None:
    """Print the shares."""
    with tempfile.TemporaryDirectory(dir=".") as name, chdir(name):
        folder = Path.cwd()
        video = clip(folder, times=1)
        digest = io.sha256_file(video)
        listed = folder / "availability.json"
        each = {"status": "present", "path": str(video), "sha256": digest, "duration_s": SECONDS}
        write_availability(listed, [Record(video=f"v{n}", **each) for n in range(VIDEOS)])  # type: ignore[arg-type]
        work = [Work(spec=HistogramSpec(), store=folder / "features/000")]
        features = partial(extract, listed, work, folder / "features.json", lock=folder / "lock", options=OPTIONS)
        sound = partial(media.prepare, listed, media.Media(folder / "media"), folder / "media.json")
        show(f"media, {VIDEOS} videos of {SECONDS} s", partial(sound, limits=LIMITS))
        show(f"extract, {VIDEOS} videos of {SECONDS} s", partial(features, limits=LIMITS))


if __name__ == "__main__":
    main()
