"""Which job decodes a shard's videos, where jobs share a host: one that wants all videos comes first."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def all_videos(lock: Path) -> Iterator[None]:
    """Hold a shard's lock for all videos. A job that holds it for one video at a time lets go before the next."""
    with FileLock(_turnstile(lock)), FileLock(lock):
        yield


@contextmanager
def one_video(lock: Path) -> Iterator[None]:
    """Hold a shard's lock for one video, once no job waits for all of them."""
    with FileLock(_turnstile(lock)):
        pass
    with FileLock(lock):
        yield


def _turnstile(lock: Path) -> Path:
    lock.parent.mkdir(parents=True, exist_ok=True)
    return lock.with_suffix(".all.lock")
