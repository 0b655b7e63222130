import time
from pathlib import Path
from threading import Thread

from filelock import FileLock, Timeout

from stepline.turns import all_videos, one_video


def test_a_job_that_wants_all_videos_comes_before_the_next_video(tmp_path: Path) -> None:
    lock = tmp_path / "locks/a.000.lock"
    order: list[str] = []

    def extract() -> None:
        with all_videos(lock):
            order.append("all begin")
            time.sleep(0.2)
            order.append("all end")

    other = Thread(target=extract)
    for video in ("a", "b", "c"):
        with one_video(lock):
            if video == "b":
                other.start()
                deadline = time.monotonic() + 60
                while not held(lock.with_suffix(".all.lock")):
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
                time.sleep(0.2)
            order.append(video)
    other.join()
    assert order == ["a", "b", "all begin", "all end", "c"]


def held(lock: Path) -> bool:
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True
