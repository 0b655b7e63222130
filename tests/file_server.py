"""A file server on the loopback that fails as asked."""

import mimetypes
import re
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 1 << 15
How = int | str | tuple[str, int | str]


class FileServer(ThreadingHTTPServer):
    """What is served, how the next requests fail, and what was asked. It is a proxy too: every host has its files.

    next: what happens to the next GETs of a path, in turn: an int is a status, ``("cut", n)`` sends n bytes and hangs
    up, ``("stall", n)`` sends n bytes and no more until the other side hangs up, ``("slow", n)`` sends n bytes ten
    times a second, ``("short", n)`` sends the first n as if they were all, ``("to", path)`` redirects,
    ``("later", text)`` is a 429 with that Retry-After, "whole" ignores Range, "any" ignores If-Range.
    version: the header by which versions of a file are told apart, "ETag" or "Last-Modified", or "" for neither.
    asked: (method, path, Range or ""). when: their times. cookies: the Cookie headers. sent: bytes of bodies.
    left: set when the other side hung up on a stall, or a slow body ended.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.next: dict[str, list[How]] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.when: list[float] = []
        self.cookies: list[str] = []
        self.sent = 0
        self.left = threading.Event()
        self.version = "ETag"
        self.url = f"http://127.0.0.1:{self.server_port}"

    @property
    def gets(self) -> list[tuple[str, str]]:
        """The GETs: path and Range."""
        return [(path, wanted) for method, path, wanted in self.asked if method == "GET"]


class Handler(BaseHTTPRequestHandler):
    """Answers for a ``FileServer``."""

    server: FileServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        """Let little lie between what is sent and what is read."""
        super().setup()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)

    def log_message(self, *_: object) -> None:
        """Stay silent."""

    def parse_request(self) -> bool:
        """Read the request line as a server does where it was written for a proxy."""
        parsed = super().parse_request()
        if parsed:
            self.path = re.sub("^http://[^/]*", "", self.path)
            self.server.when.append(time.monotonic())
            self.server.cookies += self.headers.get_all("Cookie", [])
        return parsed

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
        elif isinstance(how, tuple) and how[0] == "later":
            self._head(429, 0, **{"Retry-After": str(how[1])})
        elif self.path not in self.server.files:
            self._head(404, 0)
        else:
            content = self.server.files[self.path]
            same = how == "any" or self.headers.get("If-Range") in (None, self._version(content))
            self._body(content, wanted if same and how != "whole" else "", how)

    def _version(self, content: bytes) -> str:
        crc = zlib.crc32(content)
        return f'"{crc}"' if self.server.version == "ETag" else formatdate(crc, usegmt=True)

    def _body(self, content: bytes, wanted: str, how: How) -> None:
        ranged = re.fullmatch(r"bytes=(\d+)-", wanted)
        start = int(ranged[1]) if ranged else 0
        if ranged and start >= len(content):
            self._head(416, 0, **{"Content-Range": f"bytes */{len(content)}"})
            return
        body = content[start:]
        kind, n = (how[0], int(how[1])) if isinstance(how, tuple) else ("", len(body))
        sent = body if kind == "slow" else body[:n]
        more = {"Content-Type": mimetypes.guess_type(self.path)[0] or "application/octet-stream"}
        if self.server.version:
            more[self.server.version] = self._version(content)
        if ranged:
            more["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._head(206 if ranged else 200, len(sent if kind == "short" else body), **more)
        self.close_connection = sent != body
        with suppress(ConnectionError):
            while kind == "slow" and sent:
                self._write(sent[:n])
                sent = sent[n:]
                threading.Event().wait(0.1)
            for at in range(0, len(sent), PIECE):
                self._write(sent[at : at + PIECE])
            if kind == "stall":
                self.connection.recv(1)
        if kind in ("stall", "slow"):
            self.server.left.set()

    def _write(self, piece: bytes) -> None:
        self.server.sent += len(piece)  # before the client can have read them
        self.wfile.write(piece)

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
