import gzip
import json
import time
from collections.abc import Callable, Generator

import httpx
import pytest

from stepline.download import answers
from stepline.download.answers import service_client, without_key
from stepline.errors import DownloadError
from tests.file_server import serving
from tests.server import Reply, Request, Server

Serve = Callable[[Callable[[Request], Reply]], Server]


def endless(wait_s: float = 0.0) -> Generator[bytes, None, None]:
    while True:
        yield b"1000\r\n" + bytes(4096) + b"\r\n"
        time.sleep(wait_s)


@pytest.fixture
def chunked(serve: Serve) -> Callable[[float], str]:
    """Serve an answer without end, and return its address."""
    return lambda wait_s: serve(lambda _: Reply(200, endless(wait_s), {"Transfer-Encoding": "chunked"})).url


def test_an_answer_has_a_limit_of_length(chunked: Callable[[float], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_BYTES", 1 << 20)
    with service_client({}, timeout_s=60) as client, pytest.raises(DownloadError, match="more than 1048576 bytes"):
        client.post(chunked(0))


def test_an_answer_has_a_limit_of_time(chunked: Callable[[float], str]) -> None:
    with service_client({}, timeout_s=0.3) as client, pytest.raises(httpx.ReadTimeout, match="no answer in 0.3 s"):
        client.post(chunked(0.02))


def test_headers_without_end_have_a_limit_of_time() -> None:
    with serving() as server, service_client({}, timeout_s=0.3) as client:
        server.next["/"] = [("raw", "|HTTP/1.1 103 Early Hints\r\n\r\n")]
        with pytest.raises(httpx.ReadTimeout, match="no answer in 0.3 s"):
            client.post(f"{server.url}/")


def test_a_compressed_answer_is_not_unpacked(serve: Serve) -> None:
    server = serve(lambda _: Reply(200, gzip.compress(bytes(1 << 24)), {"Content-Encoding": "gzip"}))
    with service_client({}, timeout_s=9) as client, pytest.raises(DownloadError, match=r"is compressed \(gzip\)"):
        client.post(server.url)
    assert server.requests[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("charset", ["zlib", "rot13", "latin1"])
def test_an_answer_is_utf_8_whatever_its_header_states(charset: str, serve: Serve) -> None:
    server = serve(lambda _: Reply(500, "schön".encode(), {"Content-Type": f"text/plain; charset={charset}"}))
    with service_client({}, timeout_s=9) as client:
        assert client.post(server.url).text == "schön"


def test_an_answer_is_read_and_no_redirect_followed(serve: Serve) -> None:
    server = serve(lambda request: Reply(302, b"moved", {"Location": "/"}))
    with service_client({}, timeout_s=9, headers={"X": "y"}) as client:
        assert client.post(server.url).text == "moved"
    assert [request.headers["X"] for request in server.requests] == ["y"]


def test_a_key_that_is_repeated_is_masked_however_it_is_written() -> None:
    key = 'sk-0123456789/"abcdef'
    answer = json.loads(json.dumps({"said": [f"it is {key}.", 1.5]}).replace("/", "\\/"))
    assert without_key(answer, key) == {"said": ["it is ***.", 1.5]}
    assert without_key({"said": "x"}, "x") == {"said": "x"}
    assert without_key({"said": "x"}, "") == {"said": "x"}
