"""The order in which jobs of a host decode a shard's videos: a job that needs all videos has priority."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def all_videos(lock: Path) -> Iterator[None]:
    """Hold a shard's lock for all videos. A job that holds it for one video releases it before its next video."""
    with FileLock(_turnstile(lock)), FileLock(lock):
        yield


@contextmanager
def one_video(lock: Path) -> Iterator[None]:
    """Hold a shard's lock for one video, as soon as no job waits for all videos."""
    with FileLock(_turnstile(lock)):
        pass
    with FileLock(lock):
        yield


def _turnstile(lock: Path) -> Path:
    lock.parent.mkdir(parents=True, exist_ok=True)
    return lock.with_suffix(".all.lock")
