import multiprocessing
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepline.download import fetch_file, host, unreachable
from stepline.download.host import shown
from stepline.errors import DownloadError
from tests.file_server import serving


def closed() -> str:
    """Return an address where nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{sock.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[tuple[str, socket.socket]]:
    """An address that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}", sock


def connections(sock: socket.socket) -> int:
    sock.settimeout(0.2)
    count = 0
    try:
        while True:
            sock.accept()[0].close()
            count += 1
    except TimeoutError:
        return count


@pytest.mark.parametrize(
    "url", ["http://host:port/a", "http://host:99999/a", "http://[::1/a", "http:///a", "a", "http://u:SECRET@host:x/a"]
)
def test_what_is_no_address_is_one_line_at_once(url: str) -> None:
    began = time.monotonic()
    assert unreachable(url) == f"{url.replace('u:SECRET@', '')} has no valid host and port"
    assert time.monotonic() - began < host.PROBE_S / 2
    assert not Path(".stepline").exists()


@pytest.mark.parametrize("url", ["http://a..b/a", f"http://{'a' * 300}.invalid/a", "ftp://127.0.0.1/a"])
def test_a_host_that_nobody_can_look_up_is_one_line_at_once(url: str) -> None:
    began = time.monotonic()
    assert "is unreachable (" in unreachable(url)
    assert "no answer" not in unreachable(url)
    assert time.monotonic() - began < host.PROBE_S / 2


def test_an_unreachable_host_is_named_and_not_retried() -> None:
    url = closed()
    began = time.monotonic()
    with pytest.raises(DownloadError, match=f"^{url[7:]} is unreachable \\(.*refused.*\\)$"):
        fetch_file(f"{url}/a", Path("out/a"))
    assert time.monotonic() - began < host.PROBE_S / 2


def test_a_silent_host_is_probed_once_within_the_limit(
    silent: tuple[str, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert host.PROBE_S <= 10
    monkeypatch.setattr(host, "PROBE_S", 1.0)
    began = time.monotonic()
    for name in "abcdef":
        with pytest.raises(DownloadError, match="is unreachable"):
            fetch_file(f"{silent[0]}/{name}", Path(name))
    assert time.monotonic() - began < 5
    assert connections(silent[1]) == 1


def test_looking_up_a_name_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "PROBE_S", 0.5)

    def look_up(*_: object, **__: object) -> None:
        time.sleep(10)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    began = time.monotonic()
    assert unreachable("https://somewhere.invalid/a") == "somewhere.invalid is unreachable (no answer in 0.5 s)"
    assert time.monotonic() - began < 8


def test_trying_many_addresses_counts_too(silent: tuple[str, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "PROBE_S", 0.5)
    address = ("127.0.0.1", silent[1].getsockname()[1])
    many = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address)] * 50
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: many)
    began = time.monotonic()
    assert "is unreachable" in unreachable("http://many.invalid/a")
    assert time.monotonic() - began < 8


def _ask(url: str) -> str:
    return unreachable(url)


def test_the_jobs_of_a_run_share_one_probe_even_at_once(
    silent: tuple[str, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "PROBE_S", 1.0)
    monkeypatch.setenv("STEPLINE_RUN", "run-1")
    with multiprocessing.get_context("fork").Pool(3) as pool:
        answers = pool.map(_ask, [f"{silent[0]}/{name}" for name in "abc"], chunksize=1)
    assert len(set(answers)) == 1
    assert "is unreachable" in answers[0]
    assert connections(silent[1]) == 1


def test_another_run_probes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_RUN", "run-1")
    with serving() as server:
        assert unreachable(f"{server.url}/a") == ""
        assert unreachable(f"{server.url}/b") == ""
        assert len(server.asked) == 1
        monkeypatch.setenv("STEPLINE_RUN", "run-2")
        assert unreachable(f"{server.url}/a") == ""
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("address", "written"),
    [
        ("https://user:word@a.org/v.mp4", "https://a.org/v.mp4"),
        ("https://a.org/v.mp4?X-Amz-Signature=abc&part=1", "https://a.org/v.mp4?X-Amz-Signature=***&part=1"),
        ("https://a.org/v.mp4?id=7&access_token=abc#t", "https://a.org/v.mp4?id=7&access_token=***#t"),
        ("https://a.org/?" + "?token" * 20_000, "https://a.org/?" + "?token" * 20_000),
        ("https://www.youtube.com/watch?v=abc", "https://www.youtube.com/watch?v=abc"),
    ],
)
def test_what_lets_its_bearer_in_is_not_shown(address: str, written: str) -> None:
    assert shown(f"{address}: HTTP 404") == f"{written}: HTTP 404"
