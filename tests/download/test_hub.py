"""The token of the hub: who gets it, and what is said without it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stepline.download import fetch_file, hub
from stepline.errors import DownloadError
from tests.server import Reply, Request, Server

TOKEN = "hf_abcdefghijklmnop"
Serve = Callable[[Callable[[Request], Reply]], Server]


@pytest.fixture
def gated(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> tuple[Server, Server]:
    """A hub with one gated repository, which redirects to another server, where its files are."""
    files = serve(lambda _: Reply(200, b"weights"))

    def answer(request: Request) -> Reply:
        if request.headers["Authorization"] != f"Bearer {TOKEN}":
            return Reply(401, b"Access to model o/m is restricted.")
        return Reply(302, b"", {"Location": f"{files.url}/blob"})

    server = serve(answer)
    monkeypatch.setattr(hub, "HUB", server.url)
    return server, files


def test_the_hub_gets_the_token_and_where_it_redirects_does_not(
    gated: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, files = gated
    monkeypatch.setenv("HF_TOKEN", f"{TOKEN}\n")
    fetch_file(f"{server.url}/o/m/resolve/main/model.safetensors", Path("a/model.safetensors"))
    assert Path("a/model.safetensors").read_bytes() == b"weights"
    assert [request.headers["Authorization"] for request in server.requests] == [f"Bearer {TOKEN}"]
    assert [request.headers["Authorization"] for request in files.log] == [None]
    fetch_file(f"{files.url}/o/m/resolve/main/model.safetensors", Path("b/model.safetensors"))
    assert {request.headers["Authorization"] for request in files.log} == {None}


@pytest.mark.parametrize("token", ["", "hf_of_someone_else"])
def test_a_gated_repository_is_one_line_that_says_what_to_do(
    token: str, gated: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = gated
    monkeypatch.setenv("HF_TOKEN", token)
    url = f"{server.url}/o/m/resolve/main/model.safetensors"
    with pytest.raises(DownloadError) as caught:
        fetch_file(url, Path("model.safetensors"))
    line = f"the repository is gated, private or absent: accept its licence at {server.url}/o/m, then set HF_TOKEN to a"
    assert str(caught.value) == f"{url}: HTTP 401: {line} token"
    assert len(server.requests) == 1


def test_a_token_that_cannot_be_one_is_not_repeated(
    gated: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = gated
    monkeypatch.setenv("HF_TOKEN", "hf_secret\nhf_other")
    with pytest.raises(DownloadError, match=r"^HF_TOKEN is not a token: it contains spaces"):
        fetch_file(f"{server.url}/o/m/resolve/main/a", Path("a"))
    assert server.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "http://huggingface.co/o/m",
        "https://huggingface.co.example.org/o/m",
        "https://huggingface.co@example.org/o/m",
        "https://cdn-lfs.huggingface.co/o/m",
        "https://example.org/https://huggingface.co/o/m",
    ],
)
def test_no_other_address_gets_the_token(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert hub.credentials(url) == {}
    assert hub.credentials("https://huggingface.co/o/m") == {"Authorization": f"Bearer {TOKEN}"}
    assert hub.advice(url, 401) == ""
