"""Whether a host responds: tested once per host and run."""

import os
import re
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from stepline.io import read_json, write_json
from stepline.lock import acquire

PROBE_S = 10.0
RUN = f"{os.getpid()}-{time.time_ns()}"
"""The run id of a process that is not a job of a workflow run."""


SECRET = re.compile(r"([?&;][^=&#\s]*(?:token|key|sig|auth|pass|secret|credential)[^=&#\s]*=)[^&#\s]+", re.IGNORECASE)
"""A credential in the query of an address."""


def shown(text: str) -> str:
    """Return ``text`` without user names, passwords and tokens in its addresses."""
    return SECRET.sub(r"\1***", re.sub(r"(?<=://)[^/?#\s]*@", "", text))


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
    return Path(".stepline/probes") / f"{os.environ.get('STEPLINE_RUN') or RUN}-{host.replace(':', '-')}.json"


def _probe(url: str) -> str:
    """Return why ``url`` does not respond, or "".

    Name resolution and the attempts on each address have no timeout, so the probe runs in a thread that is abandoned.
    """
    import httpx

    answers = [f"no answer in {PROBE_S:g} s"]

    def ask() -> None:
        try:
            httpx.head(url, timeout=PROBE_S)
            answers.append("")
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            answers.append(str(error) or type(error).__name__)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PROBE_S)
    return answers[-1]
