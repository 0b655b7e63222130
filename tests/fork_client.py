"""What asks for a fork: it imports little, for it stands in the place of ``python`` where jobs are started."""

import _socket
import marshal
import os
import sys
from collections.abc import Mapping, Sequence


def ask(
    address: str, module: str, arguments: Sequence[str], folder: str, environment: Mapping[str, str], files: list[int]
) -> int:
    """Return the exit code of ``python -m module`` in ``folder``, with ``files`` as its input, output and errors."""
    asked = {"module": module, "arguments": list(arguments), "folder": folder, "environment": dict(environment)}
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    server.connect(address)
    descriptors = b"".join(file.to_bytes(4, sys.byteorder) for file in files)
    server.sendmsg([b"?"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
    server.sendall(marshal.dumps(asked))
    code = server.recv(1)
    server.close()
    return next(iter(code), 137)


def main(address: str, python: str) -> None:
    """Be ``python``, by a fork where it is asked for a job."""
    option, *arguments = sys.argv[1:]
    if option != "-m" or arguments[0] not in ("stepline", "snakemake"):
        os.execv(python, [python, option, *arguments])
    sys.exit(ask(address, *arguments[:1], arguments[1:], os.getcwd(), os.environ, [0, 1, 2]))
