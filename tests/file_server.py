"""A file server on the loopback that fails as asked."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

How = int | str | tuple[str, int | str]


class FileServer(ThreadingHTTPServer):
    """What is served, how the next requests fail, and what was asked.

    next: what happens to the next GETs of a path, in turn: an int is a status, ``("cut", n)`` sends n bytes and hangs
    up, ``("short", n)`` sends the first n as if they were all, ``("to", path)`` redirects, "whole" ignores Range.
    asked: (method, path, Range or ""). sent: bytes of bodies.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.next: dict[str, list[How]] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.sent = 0
        self.url = f"http://127.0.0.1:{self.server_port}"

    @property
    def gets(self) -> list[tuple[str, str]]:
        """The GETs: path and Range."""
        return [(path, wanted) for method, path, wanted in self.asked if method == "GET"]


class Handler(BaseHTTPRequestHandler):
    """Answers for a ``FileServer``."""

    server: FileServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Stay silent."""

    def do_HEAD(self) -> None:
        self.server.asked.append(("HEAD", self.path, ""))
        self._head(404, 0)

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.server.asked.append(("GET", self.path, wanted))
        plan = self.server.next.get(self.path)
        how = plan.pop(0) if plan else ""
        if isinstance(how, int):
            self._head(how, 0)
        elif isinstance(how, tuple) and how[0] == "to":
            self._head(302, 0, Location=str(how[1]))
        elif self.path not in self.server.files:
            self._head(404, 0)
        else:
            self._body(self.server.files[self.path], "" if how == "whole" else wanted, how)

    def _body(self, content: bytes, wanted: str, how: How) -> None:
        ranged = re.fullmatch(r"bytes=(\d+)-", wanted)
        start = int(ranged[1]) if ranged else 0
        if ranged and start >= len(content):
            self._head(416, 0)
            return
        body = content[start:]
        sent = body[: int(how[1])] if isinstance(how, tuple) else body
        short = isinstance(how, tuple) and how[0] == "short"
        self._head(206 if ranged else 200, len(sent if short else body))
        self.wfile.write(sent)
        self.server.sent += len(sent)
        self.close_connection = sent != body

    def _head(self, status: int, length: int, **more: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        for name, value in more.items():
            self.send_header(name, value)
        self.end_headers()


@contextmanager
def serving(**files: bytes) -> Iterator[FileServer]:
    """Serve ``files`` until the block ends."""
    with FileServer({f"/{name}": content for name, content in files.items()}) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
