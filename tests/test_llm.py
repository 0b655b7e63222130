"""The client against a server on this machine that answers as the services do."""

import itertools
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepline.download import retry
from stepline.errors import DownloadError, MissingError, StoreError
from stepline.llm import ask
from stepline.service import Content, Conversation, Service
from tests.llm_answers import KEY, completion, question
from tests.server import CUT, Reply, Request, Server

STORE = Path("answers/llm.sqlite")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(retry, "BACKOFF_S", 0.001)


@pytest.fixture
def serve(serve: Callable[..., Server]) -> Callable[..., Server]:
    """Start a server that echoes the question, after the given replies in turn."""

    def start(*replies: Reply) -> Server:
        rest = itertools.chain(replies, itertools.repeat(None))
        return serve(lambda request: next(rest) or echo(request))

    return start


def echo(request: Request) -> Reply:
    return completion(f"so {question(request)}")


def service(url: str, **changes: object) -> Service:
    return Service(**{"url": url, "model": "small", "max_tokens": 1, "concurrency": 1} | changes)  # type: ignore[arg-type]


def talk(*questions: str) -> list[Conversation]:
    return [[{"role": "system", "content": "be brief"}, {"role": "user", "content": each}] for each in questions]


def test_the_request_is_the_papers_and_no_limit_and_no_key_send_neither(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    assert ask(service(f"{server.url}/v1"), talk("one"), STORE, what="x") == ["so one"]
    monkeypatch.delenv("OPENAI_API_KEY")
    ask(service(f"{server.url}/v1/", max_tokens=None), talk("one"), STORE, what="x")
    request, bare = server.requests
    assert bare.path == "/v1/chat/completions"
    assert bare.json.keys() == {"model", "messages"}
    assert "authorization" not in bare.headers
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.json == {
        "model": "small",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "one"}],
        "temperature": 0,
        "max_tokens": 1,
    }


def test_answers_come_in_the_order_of_the_questions(serve: Callable[..., Server]) -> None:
    server = serve()
    questions = [str(n % 7) for n in range(40)]
    assert ask(service(server.url, concurrency=4), talk(*questions), STORE, what="x") == [f"so {q}" for q in questions]
    assert sorted(question(request) for request in server.requests) == list("0123456")


def test_a_second_run_asks_nothing(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve()
    first = ask(service(server.url), talk("a", "b"), STORE, what="x")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert ask(service(server.url, concurrency=9), talk("b", "a"), STORE, what="x") == first[::-1]
    assert len(server.requests) == 2


def test_what_decides_the_answer_is_asked_again(serve: Callable[..., Server]) -> None:
    server, other = serve(), serve()
    kept = service(server.url)
    ask(kept, talk("a"), STORE, what="x")
    for changed in ({"model": "big"}, {"max_tokens": 2}, {"max_tokens": None}, {"url": other.url}):
        ask(service(**{"url": server.url} | changed), talk("a"), STORE, what="x")  # type: ignore[arg-type]
    ask(kept, [[{"role": "system", "content": "be verbose"}, {"role": "user", "content": "a"}]], STORE, what="x")
    assert (len(server.requests), len(other.requests)) == (5, 1)
    identity = service("http://localhost:8000/v1/").identity(talk("one")[0])
    assert identity == "d5fd8dd384fe3e6a6dff3d6bccf3ee1b0140b9ba2c11d56da6522194902cd882"


def test_a_picture_is_sent_as_it_is_and_another_is_another_question(serve: Callable[..., Server]) -> None:
    server = serve()

    def see(data: str) -> Conversation:
        image = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}
        return [{"role": "user", "content": [{"type": "text", "text": "what?"}, image]}]

    for conversation in (see("AAAA"), see("AAAB"), see("AAAA")):
        ask(service(server.url), [conversation], STORE, what="x")
    assert [request.json["messages"] for request in server.requests] == [see("AAAA"), see("AAAB")]


def test_conversations_are_made_on_the_way_and_let_go(serve: Callable[..., Server]) -> None:
    class Talk(list[dict[str, Content]]):
        """A list that can be watched."""

    made: list[weakref.ref[Talk]] = []

    def talks() -> Iterator[Conversation]:
        for (conversation,) in (talk(str(n % 20)) for n in range(40)):
            assert sum(each() is not None for each in made) <= 5, "2 in flight, 2 just answered, 1 in hand"
            watched = Talk(conversation)
            made.append(weakref.ref(watched))
            yield watched
            del watched

    server = serve()
    for _ in range(2):
        assert ask(service(server.url, concurrency=2), talks(), STORE, what="x") == [f"so {n % 20}" for n in range(40)]
    assert len(server.requests) == 20


def test_what_the_service_says_is_kept_and_an_empty_answer_is_an_answer(serve: Callable[..., Server]) -> None:
    ask(service(serve().url), talk("a"), STORE, what="x")
    (row,) = sqlite3.connect(STORE).execute("SELECT text, finish_reason, model, usage FROM answers")
    usage = '{"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}'
    assert row == ("so a", "length", "small-0125", usage)
    server = serve(completion(None))
    assert ask(service(server.url), talk("a"), STORE, what="x") == [""]
    assert ask(service(server.url), talk("a"), STORE, what="x") == [""]
    assert len(server.requests) == 1


@pytest.mark.parametrize("failing", [Reply(status=503), Reply(status=CUT)])
def test_what_may_pass_is_asked_again(serve: Callable[..., Server], failing: Reply) -> None:
    server = serve(failing, failing)
    assert ask(service(server.url), talk("a"), STORE, what="x") == ["so a"]
    assert len(server.requests) == 3


def test_there_is_an_end_to_attempts(serve: Callable[..., Server]) -> None:
    server = serve(*[Reply(status=500)] * 6)
    with pytest.raises(DownloadError, match=r"127.0.0.1: HTTP 500: .* \(6 attempts\)"):
        ask(service(server.url), talk("a"), STORE, what="x")
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("reply", "error", "said"),
    [
        (Reply(status=401), MissingError, "the key in OPENAI_API_KEY is refused: 127.0.0.1: HTTP 401: {"),
        (Reply(status=403, body=b"go\naway"), MissingError, "refused: 127.0.0.1: HTTP 403: go away"),
        (Reply(status=400), DownloadError, "127.0.0.1: HTTP 400: {"),
        (Reply(status=404, body=b"no such model"), DownloadError, "127.0.0.1: HTTP 404: no such model"),
        (Reply(status=301), DownloadError, "HTTP 301"),
        (Reply(status=429, headers={"Retry-After": "3600"}), DownloadError, ", requests a wait of 3600 s"),
        (Reply(status=429, body=b'{"error": {"code": "insufficient_quota"}}'), DownloadError, "insufficient_quota"),
        (Reply(body=b"<html>"), DownloadError, "127.0.0.1: the answer is not JSON: Expecting value"),
        (Reply(body=b'{"choices": []}'), DownloadError, "the answer is invalid at $.choices (minItems: 1)"),
        (Reply(body=b'{"choices": [{"message": {"content": [1]}}]}'), DownloadError, "[0].message.content (type: "),
        (Reply(body=b"[1]"), DownloadError, "the answer is invalid at $ (type: object)"),
        (completion("so \ud800"), DownloadError, "the answer is not JSON: 'utf-8' codec can't encode"),
        (Reply(body=b"[" * 100_000), DownloadError, "the answer is not JSON: maximum recursion depth"),
    ],
)  # fmt: skip
def test_a_refusal_is_one_line_and_is_not_asked_again(
    serve: Callable[..., Server], reply: Reply, error: type[Exception], said: str
) -> None:
    server = serve(reply)
    with pytest.raises(error) as raised:
        ask(service(server.url), talk("a"), STORE, what="x")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(server.requests) == 1


def test_a_key_that_is_wanted_and_not_there_or_wrong_is_one_line(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(MissingError, match="OPENAI_API_KEY is not set: 127.0.0.1: HTTP 401"):
        ask(service(serve(Reply(status=401)).url), talk("a"), STORE, what="x")
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    with pytest.raises(MissingError, match=r"OPENAI_API_KEY is not set: export OPENAI_API_KEY=\.\.\."):
        ask(service("https://api.openai.com/v1"), talk("a"), STORE, what="x")
    monkeypatch.setenv("OPENAI_API_KEY", "two words")
    with pytest.raises(MissingError, match="OPENAI_API_KEY contains spaces") as raised:
        ask(service("https://api.openai.com/v1"), talk("a"), STORE, what="x")
    assert "two words" not in str(raised.value)


def test_nobody_there_and_a_damaged_store_are_one_line(serve: Callable[..., Server]) -> None:
    with pytest.raises(DownloadError, match="127.0.0.1:9 is unreachable"):
        ask(service("http://127.0.0.1:9/v1"), talk("a"), STORE, what="x")
    STORE.write_bytes(b"no database, but long enough to be looked at" * 50)
    with pytest.raises(StoreError, match=r"answers/llm.sqlite cannot be used \(file is not a database\)"):
        ask(service(serve().url), talk("a"), STORE, what="x")


def test_the_key_stands_nowhere(serve: Callable[..., Server], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = serve(completion(""), Reply(status=400, body=f"what is {KEY}?".encode()))
    ask(service(server.url), talk("a"), STORE, what="x")
    with pytest.raises(DownloadError, match=r"what is \*\*\*\?"):
        ask(service(server.url), talk("b"), STORE, what="x")
    assert caplog.text
    assert KEY not in caplog.text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert STORE.absolute() in files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_so_many_are_asked_at_once() -> None:
    together = threading.Barrier(3, timeout=10)

    def reply(request: Request) -> Reply:
        together.wait()
        return echo(request)

    with Server(reply).running() as server:
        ask(service(server.url, concurrency=3), talk(*map(str, range(9))), STORE, what="x")
    assert server.at_once == 3


def test_what_was_answered_beside_a_failure_is_kept() -> None:
    failed = threading.Event()

    def reply(request: Request) -> Reply:
        if question(request) == "bad":
            failed.set()
            return Reply(status=400)
        failed.wait(10)
        time.sleep(0.2)
        return echo(request)

    with Server(reply).running() as server:
        with pytest.raises(DownloadError, match="HTTP 400"):
            ask(service(server.url, concurrency=2), talk("slow", "bad", "never"), STORE, what="x")
        assert ask(service(server.url), talk("slow"), STORE, what="x") == ["so slow"]
    assert [question(request) for request in server.requests].count("slow") == 1


def test_a_kill_keeps_what_was_answered(tmp_path: Path) -> None:
    hold, third = threading.Event(), threading.Event()

    def reply(request: Request) -> Reply:
        if question(request) == "2":
            third.set()
            hold.wait(30)
        return echo(request)

    questions = [str(n) for n in range(4)]
    code = textwrap.dedent(f"""
        from pathlib import Path
        from stepline.llm import ask
        from stepline.service import Service
        talk = [[{{"role": "system", "content": "be brief"}}, {{"role": "user", "content": q}}] for q in {questions}]
        ask(Service(url="URL", model="small", max_tokens=1, concurrency=1), talk, Path("{STORE}"), what="x")
    """)
    with Server(reply).running() as server:
        killed = subprocess.Popen([sys.executable, "-c", code.replace("URL", server.url)], cwd=tmp_path)
        assert third.wait(60)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        hold.set()
        assert ask(service(server.url), talk(*questions), STORE, what="x") == [f"so {q}" for q in questions]
    assert [question(request) for request in server.requests] == ["0", "1", "2", "2", "3"]


def test_of_two_jobs_that_ask_the_same_the_first_answer_counts() -> None:
    def reply(request: Request) -> Reply:
        with sqlite3.connect(STORE) as other:
            key = service(server.url).identity(talk("a")[0])
            other.execute("INSERT INTO answers VALUES (?, 'theirs', 'stop', 'small', 'null')", (key,))
        other.close()
        return completion("ours")

    with Server(reply).running() as server:
        assert ask(service(server.url), talk("a"), STORE, what="x") == ["theirs"]


def test_an_answer_that_was_changed_is_not_used(serve: Callable[..., Server]) -> None:
    server = serve()
    ask(service(server.url), talk("a"), STORE, what="x")
    with sqlite3.connect(STORE) as other:
        other.execute("UPDATE answers SET text = 'no'")
    other.close()
    with pytest.raises(StoreError, match="an answer is damaged; to ask again: sqlite3 answers/llm.sqlite "):
        ask(service(server.url), talk("a"), STORE, what="x")
