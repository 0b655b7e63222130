import time
from pathlib import Path
from threading import Thread

import pytest
from filelock import FileLock, Timeout

from stepline.turns import all_videos, one_video


def test_who_wants_all_videos_has_them_before_the_next_single_one(tmp_path: Path) -> None:
    lock = tmp_path / "locks/a.000.lock"
    order: list[str] = []

    def extract() -> None:
        with all_videos(lock):
            order.append("all")

    other = Thread(target=extract)
    for video in ("a", "b", "c"):
        with one_video(lock):
            order.append(video)
            if video == "b":
                other.start()
                while not waits(lock):
                    time.sleep(0.01)
    other.join()
    assert order == ["a", "b", "all", "c"]


def test_a_video_waits_for_who_has_them_all(tmp_path: Path) -> None:
    lock = tmp_path / "a.000.lock"
    order: list[str] = []

    def media() -> None:
        with one_video(lock):
            order.append("one")

    other = Thread(target=media)
    with all_videos(lock):
        other.start()
        with pytest.raises(Timeout):
            FileLock(lock).acquire(timeout=0.2)
        order.append("all")
    other.join()
    assert order == ["all", "one"]


def waits(lock: Path) -> bool:
    try:
        with FileLock(lock.with_suffix(".all.lock"), timeout=0):
            return False
    except Timeout:
        return True
