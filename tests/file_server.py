"""A server of files that fails as asked."""

import gzip
import mimetypes
import re
import threading
import zlib
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, suppress
from email.utils import formatdate

from tests.server import CUT, PIECE, Reply, Request, Server

How = int | str | tuple[str, int | str]


class FileServer(Server):
    """What is served, how the next requests fail, and what was asked.

    next: what happens to the next GETs of a path, in turn: an int is a status, ``("cut", n)`` sends n bytes and hangs
    up, ``("stall", n)`` sends n bytes and no more until the other side hangs up, ``("slow", n)`` sends n bytes ten
    times a second, ``("short", n)`` sends the first n as if they were all, ``("to", where)`` redirects,
    ``("later", text)`` is a 429 with that Retry-After, "whole" ignores Range, "any" ignores If-Range.
    Of parts, ``("from", n)`` sends those from n on and says so, ``("total", n)`` says that the whole has n bytes,
    "bare" does not say which part it is. ``("says", n)`` says that the body has n bytes, ``("chunked", n)`` says
    nothing, sends n and hangs up; "chunked" sends all in this way, "endless" has no end, "empty" has no byte, "gzip" is
    compressed, ``("page", status)`` is a page of HTML, ``("raw", text)`` are these bytes instead of any answer; what
    follows a "|" is repeated ten times a second until the other side hangs up.
    version: the header by which versions of a file are told apart, "ETag" or "Last-Modified", or "" for neither.
    sent: bytes of bodies. left: set when the other side hung up on a stall, or a slow body ended.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(self._answer)
        self.files = files
        self.next: dict[str, list[How]] = {}
        self.sent = 0
        self.left = threading.Event()
        self.version = "ETag"

    @property
    def asked(self) -> list[tuple[str, str, str]]:
        """All requests: method, path, and Range or ""."""
        return [(request.method, request.target, request.headers.get("Range", "")) for request in self.log]

    @property
    def gets(self) -> list[tuple[str, str]]:
        """The GETs: path and Range."""
        return [(path, wanted) for method, path, wanted in self.asked if method == "GET"]

    def _answer(self, request: Request) -> Reply:
        plan = self.next.get(request.target)
        how = plan.pop(0) if plan else ""
        match how:
            case int():
                return Reply(how, b"")
            case ("to", where):
                return Reply(302, b"", {"Location": str(where)})
            case ("later", text):
                return Reply(429, b"", {"Retry-After": str(text)})
            case ("page", status):
                return Reply(int(status), b"<html>Log in</html>", {"Content-Type": "text/html"})
            case ("raw", text):
                return Reply(CUT, _raw(request, str(text)))
            case "empty":
                return Reply(200, b"")
            case "endless":
                return Reply(200, self._endless(), {"Transfer-Encoding": "chunked"})
        if request.target not in self.files:
            return Reply(404, b"")
        content = self.files[request.target]
        same = how == "any" or request.headers.get("If-Range") in (None, self._version(content))
        return self._part(request, content, request.headers.get("Range", "") if same and how != "whole" else "", how)

    def _version(self, content: bytes) -> str:
        crc = zlib.crc32(content)
        return f'"{crc}"' if self.version == "ETag" else formatdate(crc, usegmt=True)

    def _part(self, request: Request, content: bytes, wanted: str, how: How) -> Reply:
        ranged = re.fullmatch(r"bytes=(\d+)-", wanted)
        start = int(ranged[1]) if ranged else 0
        if ranged and start >= len(content):
            return Reply(416, b"", {"Content-Range": f"bytes */{len(content)}"})
        kind, n = (how[0], int(how[1])) if isinstance(how, tuple) else (str(how), len(content))
        if ranged and kind == "from":
            start = n
        body = gzip.compress(content[start:]) if kind == "gzip" else content[start:]
        headers = {"Content-Type": mimetypes.guess_type(request.target)[0] or "application/octet-stream"}
        headers["Content-Length"] = str(n if kind in ("short", "says") else len(body))
        if self.version:
            headers[self.version] = self._version(content)
        if ranged and kind != "bare":
            total = n if kind == "total" else len(content)
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{total}"
        if kind == "gzip":
            headers["Content-Encoding"] = "gzip"
        pieces = self._pieces(request, body, kind, n)
        if kind == "chunked":
            del headers["Content-Length"]
            headers["Transfer-Encoding"] = "chunked"
            pieces = _chunked(pieces, whole=n >= len(content))
        return Reply(206 if ranged else 200, pieces, headers)

    def _endless(self) -> Generator[bytes, None, None]:
        try:
            while True:
                self.sent += PIECE
                yield f"{PIECE:x}\r\n".encode() + bytes(PIECE) + b"\r\n"
        finally:
            self.left.set()

    def _pieces(self, request: Request, body: bytes, kind: str, n: int) -> Generator[bytes, None, None]:
        slow = kind == "slow"
        body, size = (body, n) if slow else (body if kind in ("from", "total") else body[:n], PIECE)
        try:
            for at in range(0, len(body), size):
                piece = body[at : at + size]
                self.sent += len(piece)  # before the client can have read them
                yield piece
                if slow:
                    threading.Event().wait(0.1)
            if kind == "stall":
                request.connection.recv(1)
        finally:
            if kind in ("stall", "slow"):
                self.left.set()


def _chunked(pieces: Iterator[bytes], *, whole: bool) -> Generator[bytes, None, None]:
    """Yield pieces as the transfer coding "chunked" frames them; without its end where they are not the whole."""
    for piece in pieces:
        yield f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
    if whole:
        yield b"0\r\n\r\n"


def _raw(request: Request, text: str) -> bytes:
    first, _, again = text.encode("latin-1").partition(b"|")
    with suppress(ConnectionError):
        request.connection.sendall(first)
        while again:
            request.connection.sendall(again)
            threading.Event().wait(0.1)
    return b""


def serving(**files: bytes) -> AbstractContextManager[FileServer]:
    """Serve ``files`` until the block ends."""
    return FileServer({f"/{name}": content for name, content in files.items()}).running()
