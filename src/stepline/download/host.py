"""Whether a host responds: tested once per host and run."""

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from stepline.io import read_json, write_json
from stepline.lock import acquire

Result = TypeVar("Result")
PROBE_S = 10.0
RUN = f"{os.getpid()}-{time.time_ns()}"
"""The run id of a process that is not a job of a workflow run."""


YOUTUBE = re.compile(r"https?://([^/?#]*[.@])?(youtube(-nocookie)?\.com|youtu\.be)([:/?#]|$)", re.IGNORECASE)
"""The beginning of an address on YouTube."""
OF_QUERY = re.compile(r"([?&;][^=?&;#\s]*=)[^&#\s]+")
SECRET = re.compile("token|key|sig|auth|pass|secret|credential", re.IGNORECASE)
"""The name of a credential in the query of an address."""


def shown(text: str) -> str:
    """Return ``text`` without user names, passwords and tokens in its addresses."""
    named = re.sub(r"(?<=://)[^/?#\s]*@", "", text)
    return OF_QUERY.sub(lambda found: f"{found[1]}***" if SECRET.search(found[1]) else found[0], named)


def within(limit_s: float, call: Callable[[], Result]) -> Result:
    """Return the result of ``call``, which runs in a thread; after ``limit_s`` seconds abandon it: httpx.ReadTimeout.

    The timeouts of a client limit one read or one address. A server that sends a byte now and then, or a name with many
    addresses, never exceeds them.
    """
    import httpx

    done: Future[Result] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return done.result(limit_s)
    except TimeoutError:
        raise httpx.ReadTimeout(f"no answer in {limit_s:g} s") from None


def unreachable(url: str) -> str:
    """Return why the host of ``url`` does not respond, or "" if it does: one probe of at most 10 s per host and run.

    The jobs of a workflow run (``STEPLINE_RUN``) share the result of the first probe.
    """
    try:
        host = urlsplit(url).netloc.rpartition("@")[2]
        valid = bool(urlsplit(url).hostname) and urlsplit(url).port != 0
    except ValueError:
        valid = False
    if not valid:
        return f"{shown(url)} has no valid host and port"
    memory = _memory(host)
    memory.parent.mkdir(parents=True, exist_ok=True)
    with acquire(".stepline/probes.lock"):
        if not memory.exists():
            why = _probe(f"{urlsplit(url).scheme}://{host}/")
            write_json(memory, {"reason": why and f"{host} is unreachable ({why})"})
        return str(read_json(memory)["reason"])


def leave_alone(url: str, reason: str) -> None:
    """Stop all requests to the host of ``url`` in this run, because of ``reason``."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    write_json(_memory(host), {"reason": f"{host} is left alone until the next run: {reason}"})


def _memory(host: str) -> Path:
    named = hashlib.sha256(host.encode(errors="surrogateescape")).hexdigest()[:16]  # a host may be longer than a name
    return Path(".stepline/probes") / f"{os.environ.get('STEPLINE_RUN') or RUN}-{named}.json"


def _probe(url: str) -> str:
    """Return why ``url`` does not respond, or ""."""
    import httpx

    try:
        within(PROBE_S, lambda: httpx.head(url, timeout=PROBE_S))
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return str(error) or type(error).__name__
    return ""
