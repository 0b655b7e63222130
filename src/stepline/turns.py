"""The order in which jobs of a host decode a shard's videos: a job that needs all videos has priority."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stepline.lock import acquire


@contextmanager
def all_videos(lock: Path) -> Iterator[None]:
    """Hold a shard's lock for all videos. A job that holds it for one video releases it before its next video."""
    with acquire(_turnstile(lock)), acquire(lock):
        yield


@contextmanager
def one_video(lock: Path) -> Iterator[None]:
    """Hold a shard's lock for one video, as soon as no job waits for all videos."""
    with acquire(_turnstile(lock)):
        pass
    with acquire(lock):
        yield


def _turnstile(lock: Path) -> Path:
    lock.parent.mkdir(parents=True, exist_ok=True)
    return lock.with_suffix(".all.lock")
