"""A real HTTP server on this machine. What it answers is each test's own."""

import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

CUT = 0
"""Instead of a status: read the request and close the connection."""
PIECE = 1 << 15


@dataclass
class Reply:
    """The answer to one request. body: pieces, too, that are sent as they come; then headers say how long it is."""

    status: int = 200
    body: bytes | Generator[bytes, None, None] = b'{"error":"no"}'
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Request:
    """What was asked for, and when. target: path and query. connection: that it came by."""

    method: str
    target: str
    headers: Message
    body: bytes
    connection: socket.socket
    at: float = field(default_factory=time.monotonic)

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query))

    @cached_property
    def json(self) -> Any:
        return json.loads(self.body)


class Server(ThreadingHTTPServer):
    """The server at ``url``. It is a proxy too, to which every host is itself.

    log: all requests so far. at_once: the most that waited for an answer at once. A HEAD, as by the probe of a host, is
    answered with 404.
    """

    def __init__(self, reply: Callable[[Request], Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.log: list[Request] = []
        self.at_once = self._waiting = 0
        self._reply, self._lock = reply, threading.Lock()

    @property
    def requests(self) -> list[Request]:
        """The requests so far, without HEADs."""
        return [request for request in self.log if request.method != "HEAD"]

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Answer requests in a thread until the block ends."""
        with self:
            threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
            try:
                yield self
            finally:
                self.shutdown()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that hangs up."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def reply(self, request: Request) -> Reply:
        with self._lock:
            self.log.append(request)
            if request.method == "HEAD":
                return Reply(404, b"")
            self._waiting += 1
            self.at_once = max(self.at_once, self._waiting)
        try:
            return self._reply(request)
        finally:
            with self._lock:
                self._waiting -= 1


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two packets, of which the second would wait

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)  # little is sent before it is read

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        target = re.sub("^http://[^/]*", "", self.path)
        reply = self.server.reply(Request(self.command, target, self.headers, body, self.connection))
        if reply.status == CUT:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        pieces, headers, sent = reply.body, reply.headers, 0
        if isinstance(pieces, bytes):
            headers = {"Content-Length": str(len(pieces))} | headers
            pieces = (whole for whole in [pieces])
        with closing(pieces), suppress(ConnectionError):
            self.send_response(reply.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            for piece in pieces:
                self.wfile.write(piece)
                sent += len(piece)
        if sent != int(headers.get("Content-Length", -1)):
            self.close_connection = True

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Stay silent."""
