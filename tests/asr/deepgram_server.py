"""A stand-in for Deepgram's service: a real HTTP server on this machine that answers in the service's schema."""

import hashlib
import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

KEY = "0123456789abcdef-loopback-key"
CUT = 0
"""Instead of a status: read the audio and close the connection."""

Said = Iterable[tuple[str, float, float]]


@dataclass
class Reply:
    """What the server answers to one request."""

    status: int = 200
    said: Said = ()
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass
class Request:
    """What was asked for: path, query, headers, and the samples of the WAV file as bytes."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    pcm: bytes


def response(said: Said, wav: bytes) -> dict[str, Any]:
    """Return what the service answers where ``said`` (text, start and end in seconds) is heard in ``wav``."""
    utterances = []
    for number, (text, start_s, end_s) in enumerate(said):
        spoken = text.split()
        each_s = (end_s - start_s) / len(spoken)
        words = [
            {
                "word": re.sub(r"[^a-z']", "", word.lower()),
                "start": round(start_s + i * each_s, 3),
                "end": round(start_s + (i + 1) * each_s, 3),
                "confidence": 0.99,
                "punctuated_word": word,
            }
            for i, word in enumerate(spoken)
        ]
        utterance = {"start": start_s, "end": end_s, "confidence": 0.99, "channel": 0, "transcript": text}
        utterances.append(utterance | {"words": words, "id": f"00000000-0000-4000-8000-{number:012d}"})
    heard = {
        "transcript": " ".join(u["transcript"] for u in utterances),
        "confidence": 0.99,
        "words": [word for u in utterances for word in u["words"]],
    }
    return {
        "metadata": {
            "transaction_key": "deprecated",
            "request_id": "00000000-0000-4000-8000-000000000000",
            "sha256": hashlib.sha256(wav).hexdigest(),
            "created": "2026-01-01T00:00:00.000Z",
            "duration": struct.unpack("<I", wav[40:44])[0] / 32_000,
            "channels": 1,
            "models": ["1"],
            "model_info": {"1": {"name": "general-nova-3", "version": "1", "arch": "nova-3"}},
        },
        "results": {"channels": [{"alternatives": [heard]}], "utterances": utterances},
    }


class Server:
    """The running server: ``url``, the ``requests`` that it got so far, and the most that it had ``at_once``."""

    def __init__(self, reply: Callable[[Request], Reply]) -> None:
        self.requests: list[Request] = []
        self.at_once = 0
        server, lock, running = self, threading.Lock(), [0]

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_POST(self) -> None:
                wav = self.rfile.read(int(self.headers["Content-Length"]))
                parts = urlsplit(self.path)
                query, headers = dict(parse_qsl(parts.query)), {k.lower(): v for k, v in self.headers.items()}
                request = Request(parts.path, query, headers, wav[44:])
                with lock:
                    server.requests.append(request)
                    running[0] += 1
                    server.at_once = max(server.at_once, running[0])
                answer = reply(request)
                with lock:
                    running[0] -= 1
                if headers.get("authorization") != f"Token {KEY}":
                    said = b'{"err_code":"INVALID_AUTH","err_msg":"Invalid credentials.","request_id":"1"}'
                    answer = Reply(401, body=said)
                if answer.status == CUT:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                body = answer.body if answer.body is not None else b'{"err_code":"E","err_msg":"no"}'
                if answer.status == 200 and answer.body is None:
                    body = json.dumps(response(answer.said, wav)).encode()
                self.send_response(answer.status)
                for name, value in {**answer.headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator["Server"]:
        """Answer requests in a thread until the block ends."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()
