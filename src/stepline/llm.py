"""Requests to a language model, with any service that has OpenAI's chat completions API. Answers are cached.

https://platform.openai.com/docs/api-reference/chat/create
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import httpx

from stepline.download import WorthRetryingError, may_pass, retried, retry_after, unreachable
from stepline.download.answers import service_client, without_key
from stepline.errors import DownloadError, MissingError, StoreError
from stepline.lock import NONE, without_locks
from stepline.progress import progress
from stepline.service import KEY, Conversation, Service, api_key, is_openai

ATTEMPTS = 6
LONGEST_WAIT_S = 600.0
"""If the service requests a longer wait, the request is left to another run."""
TIMEOUT_S = 600.0
LOCKED_S = 60.0
"""The longest wait for another job that writes answers, in seconds."""
ERRORS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
}
"""Errors of SQLite that no damage of the store causes, with those of the system."""

ANSWER = {
    "type": "object",
    "required": ["choices"],
    "properties": {
        "choices": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["message"],
                "properties": {
                    "message": {
                        "type": "object",
                        "required": ["content"],
                        "properties": {"content": {"type": ["string", "null"]}},
                    }
                },
            },
        }
    },
}
"""The schema of a chat completion: what is read of it."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The service's answer: the text, the reason of its end, the service's name of the model, and its usage as JSON."""

    text: str
    finish_reason: str
    model: str
    usage: str


def ask(service: Service, conversations: Iterable[Conversation], store: Path, *, what: str) -> list[str]:
    """Return the model's answer to each conversation, in order.

    Conversations are read one by one and released after their answer, so that they can be generated lazily: at most one
    more than the service's ``concurrency`` is in memory. Answers are cached in ``store``, an SQLite file, with one
    transaction each, so a kill loses at most ``concurrency`` answers. Conversations with a cached answer are not sent;
    if all are cached, neither key nor network is needed. Equal conversations are sent once. Raises DownloadError if the
    service cannot be reached or refuses a request, MissingError if it refuses the key or a required key is not set, and
    StoreError if the store cannot be used.
    """
    keys = []

    def asked() -> Iterator[tuple[str, Conversation]]:
        for conversation in progress(conversations, what=what, unit="questions"):
            keys.append(service.identity(conversation))
            yield keys[-1], conversation

    with _opened(store) as database, closing(_Asker(service, database, store).answers(asked())) as answers:
        texts = dict(answers)
    return [texts[key] for key in keys]


@contextmanager
def _opened(store: Path) -> Iterator[sqlite3.Connection]:
    store.parent.mkdir(parents=True, exist_ok=True)
    if not store.exists():
        store.touch()  # SQLite would create it without the permissions of the umask
    database = sqlite3.connect(store, timeout=LOCKED_S, isolation_level=None)
    try:
        database.execute(
            "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, "
            "text TEXT NOT NULL, finish_reason TEXT NOT NULL, model TEXT NOT NULL, usage TEXT NOT NULL)"
        )
        database.execute("CREATE TABLE IF NOT EXISTS digests (key TEXT PRIMARY KEY, sha256 TEXT NOT NULL)")
        yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if found := ERRORS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF):
            raise OSError(found, os.strerror(found), str(store)) from None
        _refuse_without_locks(store)
        raise StoreError(f"{store} cannot be used ({error}): remove it to send all requests again") from None
    finally:
        database.close()


def _refuse_without_locks(store: Path) -> None:
    """Raise StoreError if the store's file system has no locks, which SQLite does not say."""
    with store.open("rb") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in NONE:
                raise without_locks(store, error) from None


class _Asker:
    """A run of requests: threads send them, and the iterating thread reads and writes the store."""

    def __init__(self, service: Service, database: sqlite3.Connection, store: Path) -> None:
        self._service, self._database, self._store = service, database, store
        self._key = api_key()
        self._ended = threading.Event()

    def answers(self, conversations: Iterable[tuple[str, Conversation]]) -> Generator[tuple[str, str], None, None]:
        """Yield the key and answer of each distinct conversation, in order of completion."""
        pool, waiting = ThreadPoolExecutor(self._service.concurrency), dict[Future[Answer], str]()
        client, seen = None, set[str]()
        try:
            for key, conversation in conversations:
                if key in seen:
                    continue
                seen.add(key)
                if (kept := self._kept(key)) is not None:
                    yield key, kept
                    continue
                client = client or self._client()
                if len(waiting) == self._service.concurrency:
                    yield from self._completed(waiting)
                waiting[pool.submit(self._ask, client, conversation)] = key
            while waiting:
                yield from self._completed(waiting)
        finally:
            self._ended.set()
            pool.shutdown(cancel_futures=True)
            for future, key in waiting.items():
                if not future.cancelled() and future.exception() is None:
                    self._keep(key, future.result())
            if client:
                client.close()

    def _completed(self, waiting: dict[Future[Answer], str]) -> Iterator[tuple[str, str]]:
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            answer, key = future.result(), waiting.pop(future)
            yield key, self._keep(key, answer)

    def _kept(self, key: str) -> str | None:
        """Return a cached answer, or None; raise StoreError if it was changed."""
        answer = self._database.execute("SELECT text FROM answers WHERE key = ?", (key,)).fetchone()
        digest = self._database.execute("SELECT sha256 FROM digests WHERE key = ?", (key,)).fetchone()
        if digest and (answer is None or digest[0] != _sha256(answer[0])):
            remove = "; ".join(f"DELETE FROM {table} WHERE key = '{key}'" for table in ("answers", "digests"))
            raise StoreError(f'{self._store}: an answer is damaged; to ask again: sqlite3 {self._store} "{remove}"')
        return None if answer is None else str(answer[0])

    def _keep(self, key: str, answer: Answer) -> str:
        """Cache an answer and return its text, or the text that another job cached in the meantime."""
        row = key, answer.text, answer.finish_reason, answer.model, answer.usage
        self._database.execute("BEGIN IMMEDIATE")
        if self._database.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", row).rowcount:
            self._database.execute("INSERT OR REPLACE INTO digests VALUES (?, ?)", (key, _sha256(answer.text)))
        self._database.execute("COMMIT")
        return str(self._kept(key))

    def _client(self) -> httpx.Client:
        url = self._service.url
        if not self._key and is_openai(url):
            raise MissingError(f"{KEY} is not set: export {KEY}=... and run the same command again")
        if self._key and not re.fullmatch("[!-~]+", self._key):
            raise MissingError(f"{KEY} contains spaces or characters that no key has: copy it again")
        if reason := unreachable(url):
            raise DownloadError(reason)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        limits = httpx.Limits(max_connections=self._service.concurrency)
        return service_client(ANSWER, timeout_s=TIMEOUT_S, headers=headers, limits=limits)

    def _ask(self, client: httpx.Client, conversation: Conversation) -> Answer:
        url = f"{self._service.url.rstrip('/')}/chat/completions"
        host = f"{httpx.URL(url).host}: "

        def attempt() -> Answer:
            response = client.post(url, json=self._service.request(conversation))
            return self._answer(response) if response.status_code == 200 else self._refuse(response, host)

        return retried(attempt, attempts=ATTEMPTS, longest_wait_s=LONGEST_WAIT_S, prefix=host, sleep=self._ended.wait)

    def _refuse(self, response: httpx.Response, host: str) -> NoReturn:
        status = response.status_code
        text = self._said(response)
        reason = f"HTTP {status}: {' '.join(text.split())[:300]}"
        if may_pass(status) and "insufficient_quota" not in text:
            raise WorthRetryingError(reason, retry_after(response.headers))
        if status in (401, 403):
            refused = f"the key in {KEY} is refused" if self._key else f"{KEY} is not set"
            raise MissingError(f"{refused}: {host}{reason}")
        raise DownloadError(f"{host}{reason}")

    def _answer(self, response: httpx.Response) -> Answer:
        content = without_key(response.json(), self._key)
        choice = content["choices"][0]
        return Answer(
            text=choice["message"]["content"] or "",
            finish_reason=str(choice.get("finish_reason")),
            model=str(content.get("model")),
            usage=json.dumps(content.get("usage")),
        )

    def _said(self, response: httpx.Response) -> str:
        return response.text.replace(self._key, "***") if self._key else response.text


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
