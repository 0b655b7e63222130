"""Object storage: a store's files are objects of the same names. The environment sets keys, region and endpoint."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar

from stepline.errors import SteplineError, StoreError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Store
    from zarr.storage import ObjectStore

    class _Options(TypedDict):
        client_options: ClientConfig
        retry_config: RetryConfig


Made = TypeVar("Made")
AT_ONCE = 8
"""The maximum number of parallel requests of a process."""
PIECE = 16 << 20
"""The maximum number of bytes of a request."""
RETRIES = 6
"""How often a request is repeated if the service refuses it temporarily (5xx, SlowDown) or the connection breaks."""
RETRY_S = 60
"""Seconds after the first attempt beyond which a request is not repeated."""
ARRAY = "features/c/0/0"
METADATA = "features/zarr.json"
INDEX = "index.parquet"
CLIPS = "clips.parquet"
FILES = (ARRAY, METADATA, CLIPS, INDEX)
"""A store's files in the order in which they are written: the index is last, so that the files it describes exist."""


class StorageError(SteplineError):
    """Object storage refuses a request or does not respond. It is not a StoreError: the store's state is unknown."""


class ObjectError(StoreError):
    """An object does not exist, or ends before the requested range."""


def get(url: str) -> bytes:
    """Return the bytes of an object; raise ObjectError if it does not exist, StorageError if this is unknown."""
    import obstore

    with _one_line(url, "read"):
        return bytes(obstore.get(*split(url)).bytes())


def get_range(url: str, start: int, end: int) -> memoryview:
    """Return the bytes [start, end) of an object, or up to its end if it is shorter; raise as ``get`` does."""
    import obstore

    with _one_line(url, "read"):
        return memoryview(obstore.get_range(*split(url), start=start, end=end))


def size(url: str) -> int:
    """Return an object's size in bytes; raise as ``get`` does."""
    import obstore

    with _one_line(url, "read"):
        return int(obstore.head(*split(url))["size"])


def put_store(folder: Path, url: str) -> None:
    """Write the store in ``folder`` to ``url``, each file whole and the index last; raise StorageError on failure.

    A large file is sent in parts as it is read.
    """
    import obstore

    for name in FILES:
        place = f"{url}/{name}"
        with _one_line(place, "write"):
            if (folder / name).exists():
                with open(folder / name, "rb") as file:
                    obstore.put(*split(place), file, chunk_size=PIECE, max_concurrency=AT_ONCE)
            elif name == ARRAY:  # of a store without rows
                obstore.delete(*split(place))


def folders(url: str) -> list[str]:
    """Return the sorted names of the folders in ``url``; raise StorageError if they cannot be listed."""
    import obstore

    with _one_line(url, "list"):
        bucket, path = split(url)
        found = obstore.list_with_delimiter(bucket, prefix=path)["common_prefixes"]
    return sorted(each.rpartition("/")[2] for each in found)


def at_once(calls: Iterable[Callable[[], Made]]) -> list[Made]:
    """Return the results of calls that run in parallel; the first error, in their order, cancels the waiting calls."""
    listed = list(calls)
    if len(listed) < 2:
        return [call() for call in listed]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        started = [pool.submit(call) for call in listed]
        try:
            return [each.result() for each in started]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def zarr_store(url: str) -> "ObjectStore[S3Store]":
    """Return the Zarr store of the array at ``url``."""
    from obstore.store import S3Store
    from zarr.storage import ObjectStore

    return ObjectStore(S3Store.from_url(url, **_options()), read_only=True)


def _bucket(url: str) -> str:
    return "/".join(url.split("/")[:3])


def split(url: str) -> tuple["S3Store", str]:
    """Return the bucket of a URL and the path in it."""
    return opened(_bucket(url), os.getpid()), url[len(_bucket(url)) + 1 :]


@lru_cache
def opened(bucket: str, pid: int) -> "S3Store":  # noqa: ARG001
    """Return the client of a bucket, one per process: a forked process cannot use its parent's client."""
    from obstore.store import S3Store

    return S3Store.from_url(bucket, **_options())


_ADDRESS = r"https?://(\[[0-9A-Fa-f:.]+\]|[^/?#@:\[\]\s]+)(:[0-9]{1,5})?(/[^?#@\s]*)?"


def _options() -> "_Options":
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    if endpoint and not re.fullmatch(_ADDRESS, endpoint):
        raise StorageError("AWS_ENDPOINT_URL is not an address: give http(s)://HOST[:PORT], without keys")
    return {
        "client_options": {
            "allow_http": endpoint.startswith("http:"),
            "connect_timeout": timedelta(seconds=10),
            "timeout": timedelta(minutes=2),
        },
        "retry_config": {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_S)},
    }


@contextmanager
def _one_line(url: str, what: str) -> Iterator[None]:
    """Raise the client's errors as one line, without the service's response, which may repeat parts of a request."""
    from obstore import exceptions

    try:
        yield
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise StorageError(f"{_bucket(url)} does not exist: create the bucket, or correct features.store") from None
        raise ObjectError(f"{url} does not exist") from None
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError):
        raise StorageError(
            f"{url}: access denied: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to keys that may {what} there"
        ) from None
    except exceptions.BaseError as error:
        if "status code: 416" in str(error):
            raise ObjectError(f"{url} is too short") from None
        raise StorageError(f"{url} cannot be {_DONE[what]}: {_reason(str(error))}") from None


_DONE = {"read": "read", "write": "written", "list": "listed"}
_REASONS: Sequence[tuple[str, str]] = (
    ("169.254.169.254|169.254.170", "there are no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    ("PermanentRedirect|AuthorizationHeaderMalformed|redirect", "the bucket is in another region: set AWS_REGION"),
    ("error sending request|HttpError", "the service does not respond: check AWS_ENDPOINT_URL and the network"),
)


def _reason(said: str) -> str:
    """Return the reason and what to do, from the client's message."""
    for pattern, line in _REASONS:
        if re.search(pattern, said):
            return line
    status = re.search(r"status code: (\d{3})", said)
    return f"the service refuses (status {status[1] if status else 'unknown'}): run the same command again later"
