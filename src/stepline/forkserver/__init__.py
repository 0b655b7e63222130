"""Jobs of one host, forked from a process that has imported what they use.

A job is ``python -m stepline VERB ...``. Snakemake's process holds a Unix socket (``listener``), which a variable of
the environment names. Where it is set, a job's process (``client``) imports nothing: it sends its words, environment
and files, waits, and ends as the job does. The listener starts a ``server`` for the first job of each interpreter,
folder and environment, so that libraries read at import what they would have read in the job; it forks a child for
each job. Where there is no socket, the job's process does the work itself.

A message is its length, in 4 bytes, and texts with null characters between them.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterable


def message(texts: "Iterable[bytes]") -> bytes:
    """Return texts as a message."""
    content = b"\0".join(texts)
    return len(content).to_bytes(4, "big") + content


def received(file: "socket", size: int) -> bytes:
    """Return so many bytes; raise OSError where it ends before."""
    content = b""
    while len(content) < size:
        if not (part := file.recv(size - len(content))):
            raise ConnectionResetError
        content += part
    return content
