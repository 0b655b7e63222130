"""Faults of servers, drawn by a seed: a file is exact or absent, and what is absent has a record with the reason.

All clients ask a real server on the loopback; only waiting is short. ``python -m tests.chaos.faults SEED N`` prints
what happened, and what became of it.
"""

import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from unittest.mock import patch

import numpy as np

from stepline.asr import deepgram
from stepline.availability import Record, read_availability
from stepline.datasets.schema import Video
from stepline.download import DownloadOptions, fetch_file, fetch_video, host, http, remove_leftovers, retry
from stepline.errors import DownloadError, MissingError
from stepline.io import sha256_file
from stepline.llm import ask
from stepline.media.decode import read_header
from stepline.service import Service
from tests.asr import deepgram_answers
from tests.file_server import FileServer, How
from tests.llm_answers import completion
from tests.media.clips import make
from tests.server import CUT, Reply, Server

STALL_S = 0.2
MOST_REQUESTS = 13
"""Of one file in one run: three attempts and ten redirects."""
FOLDER = Path("videos")


def _drawn(random: Random, size: int, path: str) -> How:
    """Return what goes wrong with one request for a file of so many bytes at ``path``."""
    n, less = random.choice([0, 1, random.randrange(size), size - 1]), random.randrange(size // 2)
    return random.choice(
        [
            *(random.choice([400, 401, 403, 404, 408, 410, 416, 429, 451]), random.choice([500, 502, 503, 504])),
            *(("cut", n), ("cut", n), ("stall", n), ("short", less), ("says", less), ("says", size + 1 + n)),
            *(("from", n), ("from", n), ("total", n), "bare", "bare", "whole", "any", "gzip", "empty", CUT),
            *("chunked", ("chunked", n), ("page", random.choice([200, 206, 403, 500]))),
            ("later", random.choice(["0", "1", "59", "3600", "9" * 400, "soon", "-1", "Mon, 99 Foo 99999999999"])),
            ("to", random.choice([path, "/other", "ftp://127.0.0.1/a", "file:///etc/passwd", "http://[", "", "/gone"])),
        ]
    )


def _plan(random: Random, size: int, path: str) -> list[How]:
    """Return what goes wrong with the requests of one run, in turn."""
    if random.random() < 0.03:
        return [("to", path)] * 100
    cut: list[How] = [("cut", random.randrange(1, size))] if random.random() < 0.4 else []
    return cut + [_drawn(random, size, path) for _ in range(random.randrange(1, 6))]


class Campaign:
    """The clips, the server that has them, and what was counted."""

    def __init__(self, seed: int, server: FileServer, folder: Path) -> None:
        self.random = Random(seed)
        self.server = server
        self.folder = folder
        self.counts: Counter[str] = Counter()
        self.broken: list[str] = []
        self._run = 0
        noise = np.random.default_rng(0).integers(0, 256, (20, 64, 320, 3), np.uint8)
        times = [Fraction(i, 25) for i in range(300)]
        self.clips = [make(folder / f"{i}.mp4", times, picture=lambda at, i=i: noise[(at + i) % 20]) for i in (0, 7)]
        self.contents = [path.read_bytes() for path in self.clips]

    def holds(self, condition: bool, what: str, *about: object) -> None:
        """Note what does not hold."""
        if not condition:
            self.counts[f"broken: {what}"] += 1
            self.broken.append(f"{what}: {about}")

    def next_run(self) -> None:
        """Ask hosts again that were left alone."""
        self._run += 1
        host.RUN = f"chaos-{self._run}"

    def videos(self) -> None:
        """Fetch one video, or three at once, in runs that go wrong and one that does not."""
        at_once = [f"v{self._run}-{i}" for i in range(self.random.choice([1, 1, 3]))]
        trials = [self._trial(name) for name in at_once]
        for _ in range(self.random.randrange(1, 3)):
            self.next_run()
            for trial in trials:
                trial.plan = _plan(self.random, len(self.contents[trial.version]), trial.path)
                self.server.next[trial.path] = list(trial.plan)
                self.counts.update(f"fault {how[0] if isinstance(how, tuple) else how}" for how in trial.plan)
            records = self._fetch(trials)
        self.next_run()
        for trial, record in zip(trials, records, strict=True):
            self.server.next.pop(trial.path, None)
            if record.status != "present" and self.random.random() < 0.2:
                trial.version = 1 - trial.version
                self.server.files[trial.path] = self.contents[trial.version]
                trial.video = replace(trial.video, sha256=trial.video.sha256 and self._sha256(trial.version))
        if self.random.random() < 0.2:
            self._spoil()
        records = self._fetch(trials)
        for trial, record in zip(trials, records, strict=True):
            self.holds(record.status == "present", "a good server is not enough", trial, record)
        remove_leftovers(FOLDER, records)
        left = {path.name for path in FOLDER.iterdir() if path.name.startswith(".")}
        self.holds(not left, "something is left", left)
        for path in FOLDER.iterdir():
            path.unlink()

    def _trial(self, name: str) -> "Trial":
        version = self.random.randrange(2)
        path = f"/{name}.mp4"
        self.server.files[path] = self.contents[version]
        self.server.version = self.random.choice(["ETag", "Last-Modified", ""])
        kind = self.random.choice(["found", "pinned"])
        video = Video(id=name, url=self.server.url + path, sha256=self._sha256(version) if kind == "pinned" else "")
        self.counts[f"trial {kind}"] += 1
        return Trial(video, path, version)

    def _sha256(self, version: int) -> str:
        return sha256_file(self.clips[version])

    def _spoil(self) -> None:
        """Cut, or remove, what an earlier run has left."""
        for part in FOLDER.glob(".*"):
            if self.random.random() < 0.3:
                part.unlink()
            elif part.suffix == ".part":
                with open(part, "ab") as file:
                    file.truncate(self.random.randrange(1 + part.stat().st_size))

    def _fetch(self, trials: list["Trial"]) -> list[Record]:
        before = len(self.server.gets)
        with ThreadPoolExecutor(len(trials)) as pool:
            records = list(pool.map(self._one, trials))
        asked = Counter(path for path, _ in self.server.gets[before:])
        for trial, record in zip(trials, records, strict=True):
            path = FOLDER / f"{trial.video.id}.mp4"
            self.counts[f"record {record.status}"] += 1
            self.counts["requests"] += asked[trial.path]
            kept = path.with_suffix(".json")
            known = read_availability(kept) if kept.exists() else {}
            self.holds(known == {trial.video.id: record}, "another record is kept", trial, record)
            self.holds(asked[trial.path] <= MOST_REQUESTS, "too many requests", asked[trial.path], trial, record)
            if record.status == "present":
                self.holds(path.read_bytes() == self.contents[trial.version], "a wrong file is present", trial, record)
            else:
                self.holds(bool(re.fullmatch(".+", record.reason)), "the reason is no line", trial, record)
                self.counts["line " + re.sub(r"[\d.]+", "#", record.reason.split(": ", 1)[-1])[:60]] += 1
        return records

    def _one(self, trial: "Trial") -> Record:
        try:
            return fetch_video(trial.video, FOLDER, DownloadOptions(sleep_s=0), read_header)
        except Exception as error:  # noqa: BLE001 - it is counted
            self.holds(False, f"no record but {type(error).__name__}", trial, error)
            return Record(video=trial.video.id, status="missing", reason="none")

    def files(self) -> None:
        """Fetch a pinned file, as of a release or of weights, in a run that goes wrong and one that does not."""
        name = f"f{self._run}.mp4"
        content = self.random.choice(self.contents)
        path, pins = Path("release", name), {"sha256": _sha256_of(content), "size": len(content)}
        self.counts["trial file"] += 1
        self.server.files[f"/{name}"] = content
        self.server.next[f"/{name}"] = _plan(self.random, len(content), f"/{name}")
        self.next_run()
        before = len(self.server.gets)
        try:
            fetch_file(f"{self.server.url}/{name}", path, **pins)
        except DownloadError as error:
            self.holds("\n" not in str(error), "the reason is no line", error)
            self.counts["file refused"] += 1
            self.holds(not path.exists(), "a refused file is there", error)
        else:
            self.counts["file came"] += 1
            self.holds(path.read_bytes() == content, "a wrong file came", path)
        asked = len(self.server.gets) - before
        self.counts["requests"] += asked
        self.holds(asked <= MOST_REQUESTS, "too many requests", self.server.gets[before:])
        self.server.next.clear()
        self.next_run()
        fetch_file(f"{self.server.url}/{name}", path, **pins)
        self.holds(path.read_bytes() == content, "a good server is not enough", path)
        left = [*path.parent.glob(".*")]
        self.holds(not left, "something is left", left)

    def services(self) -> None:
        """Ask a recogniser and a language model, in a run that goes wrong and one that does not."""
        for which, request, most in (("speech", _recognised, 4), ("answer", _answered, 6)):
            plan = [_said(self.random, which) for _ in range(self.random.randrange(1, 9))]
            right = _right(which)
            with Server(lambda request, plan=plan, right=right: plan.pop(0) if plan else right).running() as server:
                self.next_run()
                self.counts[f"trial {which}"] += 1
                try:
                    self.holds(request(server.url) == 1, "a wrong answer", which)
                    self.counts[f"{which} came"] += 1
                except (DownloadError, MissingError) as error:
                    self.holds("\n" not in str(error), "the reason is no line", error)
                    self.counts[f"{which} refused"] += 1
                except Exception as error:  # noqa: BLE001 - it is counted
                    self.holds(False, f"no line but {type(error).__name__}", which, repr(error)[:300])
                self.counts["requests"] += len(server.requests)
                self.holds(len(server.requests) <= most, "too many requests", which, len(server.requests))
                plan.clear()
                self.next_run()
                self.holds(request(server.url) == 1, "a good server is not enough", which)


@dataclass
class Trial:
    """A video, how it is asked for, which of the clips it is, and what goes wrong in each run."""

    video: Video
    path: str
    version: int
    plan: list[How] = field(default_factory=list)


def _sha256_of(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def _right(which: str) -> Reply:
    return deepgram_answers.listened([("We open it.", 1.0, 2.0)]) if which == "speech" else completion("1")


def _said(random: Random, which: str) -> Reply:
    right = _right(which).body
    assert isinstance(right, bytes)
    n = random.randrange(len(right))
    return random.choice(
        [
            Reply(random.choice([400, 401, 402, 403, 404, 413, 500, 503, 529])),
            Reply(random.choice([200, 429, 503]), b"<html>busy</html>"),
            Reply(429, b"", {"Retry-After": random.choice(["0", "3600", "soon", "Mon, 99 Foo 99999999999"])}),
            Reply(200, b""),
            Reply(200, right[:n]),
            Reply(200, right[:n], {"Content-Length": str(len(right))}),
            Reply(200, json.dumps({"results": {}}).encode()),
            Reply(200, b"[" * 100_000),
            Reply(302, b"", {"Location": random.choice(["/again", "ftp://127.0.0.1/a", "http://["])}),
            Reply(CUT),
        ]
    )


def _recognised(url: str) -> int:
    engine = deepgram.Deepgram(model="nova-3", url=url, concurrency=1)
    return len(engine.heard(engine.answer(np.zeros(16_000, np.int16))).sentences)


def _answered(url: str) -> int:
    service = Service(url=url, model="small", max_tokens=9, concurrency=1)
    asked = [[{"role": "user", "content": str(time.monotonic_ns())}]]
    return int(ask(service, asked, Path("answers.sqlite"), what="questions")[0])  # type: ignore[arg-type]


@contextmanager
def _short_waits() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(patch.object(time, "sleep", lambda _: None))
        stack.enter_context(patch.object(retry, "BACKOFF_S", 0.001))
        stack.enter_context(patch.object(host, "RUN", "chaos"))
        stack.enter_context(patch.object(http, "STALL_S", STALL_S))
        stack.enter_context(patch.dict("os.environ", {"DEEPGRAM_API_KEY": "key", "OPENAI_API_KEY": "key"}))
        for name in ("STEPLINE_RUN", "STEPLINE_MIRROR"):
            os.environ.pop(name, None)  # until the patch ends
        yield


def campaign(seed: int, n: int) -> Counter[str]:
    """Try ``n`` times; return what went wrong, what became of it, and how many requests it took."""
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        _short_waits(),
        FileServer({}).running() as server,
    ):
        tried = Campaign(seed, server, Path(folder))
        for _ in range(n):
            tried.random.choice([tried.videos, tried.videos, tried.files, tried.services])()
        assert not tried.broken, "\n".join([f"seed {seed}:", *tried.broken[:20]])
        return tried.counts


if __name__ == "__main__":
    for what, count in sorted(campaign(int(sys.argv[1]), int(sys.argv[2])).items()):
        print(f"{count:6} {what}")
