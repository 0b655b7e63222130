"""Forking the jobs of one host from a process that has already imported their libraries.

A job is ``python -m stepline VERB ...``. Snakemake's process listens on a Unix socket (``listener``), whose path is in
an environment variable. If the variable is set, a job's process (``client``) imports nothing: it sends its arguments,
environment and files, waits, and ends as the job does. The listener starts a ``server`` for the first job of each
interpreter, folder and environment, so that libraries read the same settings at import as in the job. The server forks
a child for each job. Without a socket, the job's process does the work itself.

A message is its length, in 4 bytes, followed by strings with null characters between them.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterable


def message(texts: "Iterable[bytes]") -> bytes:
    """Return strings as a message."""
    content = b"\0".join(texts)
    return len(content).to_bytes(4, "big") + content


def received(file: "socket", size: int) -> bytes:
    """Return exactly ``size`` bytes; raise OSError if the stream ends before."""
    content = b""
    while len(content) < size:
        if not (part := file.recv(size - len(content))):
            raise ConnectionResetError
        content += part
    return content
