"""A stand-in for a language model: a real HTTP server on this machine that speaks OpenAI's chat completions."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-loopback-0123456789abcdef"
CUT = 0
"""Instead of a status: read the request and close the connection."""


@dataclass
class Reply:
    """What the server answers to one request: a text by the model, or a body of its own."""

    text: str | None = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass
class Request:
    """What was asked for; ``question`` is the last message."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def question(self) -> str:
        question: str = self.body["messages"][-1]["content"]
        return question


class Server:
    """The running server: ``url``, the ``requests`` that it got so far, and the most that it had ``at_once``."""

    def __init__(self, reply: Callable[[Request], Reply]) -> None:
        self.requests: list[Request] = []
        self.at_once = 0
        server, lock, running = self, threading.Lock(), [0]

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one packet for headers and body: two wait for each other

            def do_HEAD(self) -> None:
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                with lock:
                    server.requests.append(request)
                    running[0] += 1
                    server.at_once = max(server.at_once, running[0])
                answer = reply(request)
                with lock:
                    running[0] -= 1
                if answer.status == CUT:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                sent = answer.body if answer.body is not None else json.dumps(completion(answer, body)).encode()
                self.send_response(answer.status)
                for name, value in {**answer.headers, "Content-Length": str(len(sent))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

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


def completion(reply: Reply, asked: dict[str, Any]) -> dict[str, Any]:
    """Return what the service answers, in its schema: an error where the status is one."""
    if reply.status != 200:
        return {"error": {"message": "no", "type": "invalid_request_error", "param": None, "code": None}}
    message = {"role": "assistant", "content": reply.text}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": f"{asked['model']}-0125",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
    }
