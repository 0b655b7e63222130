"""Object storage: the files of a store are objects of the same names. Keys, region and endpoint: the environment's."""

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
"""Requests at once by one process."""
PIECE = 16 << 20
"""Bytes of one request, at most."""
RETRIES = 6
"""How often a request that the service refuses for now (5xx, SlowDown) or that breaks off is sent again."""
RETRY_S = 60
"""Seconds after the first request beyond which it is not sent again."""
ARRAY = "features/c/0/0"
METADATA = "features/zarr.json"
INDEX = "index.parquet"
CLIPS = "clips.parquet"
FILES = (ARRAY, METADATA, CLIPS, INDEX)
"""A store's files in the order in which they are written: what the index says of them is there when it is."""


class StorageError(SteplineError):
    """Object storage that refuses or does not answer. It is no StoreError: nothing is known of the store."""


class ObjectError(StoreError):
    """An object that is not there, or ends before what is asked for."""


def get(url: str) -> bytes:
    """Return an object; raise ObjectError where there is none, StorageError where that cannot be known."""
    import obstore

    with _one_line(url, "read"):
        return bytes(obstore.get(*split(url)).bytes())


def get_range(url: str, start: int, end: int) -> memoryview:
    """Return the bytes of an object from ``start`` to before ``end``, or to where it ends; raise as ``get`` does."""
    import obstore

    with _one_line(url, "read"):
        return memoryview(obstore.get_range(*split(url), start=start, end=end))


def size(url: str) -> int:
    """Return an object's bytes; raise as ``get`` does."""
    import obstore

    with _one_line(url, "read"):
        return int(obstore.head(*split(url))["size"])


def put_store(folder: Path, url: str) -> None:
    """Write the store in ``folder`` to ``url``, each file whole, the index last; raise StorageError where it cannot be.

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
    """Return the names below ``url`` that have more below them, in order; raise StorageError."""
    import obstore

    with _one_line(url, "list"):
        bucket, path = split(url)
        found = obstore.list_with_delimiter(bucket, prefix=path)["common_prefixes"]
    return sorted(each.rpartition("/")[2] for each in found)


def at_once(calls: Iterable[Callable[[], Made]]) -> list[Made]:
    """Return what calls return, several at a time; the first error, in their order, ends those that wait."""
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
    """Return what Zarr reads the array at ``url`` from."""
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
    """Return the client of a bucket, one for each process: a forked one cannot go on with its parent's."""
    from obstore.store import S3Store

    return S3Store.from_url(bucket, **_options())


_ADDRESS = r"https?://(\[[0-9A-Fa-f:.]+\]|[^/?#@:\[\]\s]+)(:[0-9]{1,5})?(/[^?#@\s]*)?"


def _options() -> "_Options":
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    if endpoint and not re.fullmatch(_ADDRESS, endpoint):
        raise StorageError("AWS_ENDPOINT_URL is no address: give http(s)://HOST[:PORT], without keys")
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
    """Raise what the client raises as one line, without what the service said: that may repeat parts of a request."""
    from obstore import exceptions

    try:
        yield
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise StorageError(f"{_bucket(url)} is not there: make the bucket, or correct features.store") from None
        raise ObjectError(f"{url} is not there") from None
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
    ("error sending request|HttpError", "the service does not answer: see AWS_ENDPOINT_URL and the network"),
)


def _reason(said: str) -> str:
    """Return what to do, from what the client says."""
    for pattern, line in _REASONS:
        if re.search(pattern, said):
            return line
    status = re.search(r"status code: (\d{3})", said)
    return f"the service refuses (status {status[1] if status else 'unknown'}): run the same again later"
