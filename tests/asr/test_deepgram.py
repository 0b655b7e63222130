"""Deepgram's engine against a server on this machine that answers as the service does."""

import hashlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.asr import chunks
from stepline.asr.transcribe import transcribe
from stepline.asr.transcript import Sentence, Word, read
from stepline.availability import read_manifest, write_manifest
from stepline.cli import main
from stepline.config import validate
from stepline.download import retry
from stepline.errors import ConfigError, MissingError, StoreError
from stepline.media.audio import RATE
from tests.asr.deepgram_answers import KEY, keyed, listened, pcm, response
from tests.server import CUT, Reply, Request, Server

FIRST = [("We open the door.", 1.0, 2.5), ("It's cold outside.", 4.0, 5.25)]
SECOND = [("Now close it again.", 0.5, 2.0)]
Script = Callable[[list[Reply]], Server]


def sentence(text: str, start_s: float, end_s: float) -> Sentence:
    """Return what becomes of what the server says in a first chunk."""
    spoken = text.split()
    each_s = (end_s - start_s) / len(spoken)
    times = [(round(start_s + i * each_s, 3), round(start_s + (i + 1) * each_s, 3)) for i in range(len(spoken))]
    words = tuple(Word(word, *span, 0.99) for word, span in zip(spoken, times, strict=True))
    return Sentence(text, start_s, end_s, 0.99, words, engine="deepgram")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPGRAM_API_KEY", KEY)
    monkeypatch.setattr(retry, "BACKOFF_S", 0.01)


@pytest.fixture
def scripted(serve: Callable[..., Server]) -> Script:
    """Start a server that gives these replies in turn."""

    def start(replies: list[Reply]) -> Server:
        rest = iter(replies)
        return serve(keyed(lambda request: next(rest)))

    return start


def audio(folder: Path, **seconds: float) -> None:
    """Write a media manifest and each video's noise: so many seconds, one of silence from 585 s on."""
    videos: dict[str, Any] = {"mute": {"status": "gone", "reason": "deleted"}}
    for number, (video, length) in enumerate(seconds.items()):
        noise = np.random.default_rng(number).integers(-50, 50, int(length * RATE), dtype=np.int16)
        noise[585 * RATE : 586 * RATE] = 0
        (folder / "media" / video).mkdir(parents=True, exist_ok=True)
        with wave.open(str(folder / "media" / video / "audio.wav"), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes(noise.tobytes())
        heard = {"status": "present", "reason": ""}
        found = {"status": "present", "reason": "", "sha256": f"{video} {length}", "revision": 1}
        videos[video] = found | {"audio": heard}
    write_manifest(folder / "media.json", videos)


def run(folder: Path, url: str, model: str = "nova-3", concurrency: int = 4) -> dict[str, dict[str, Any]]:
    manifest = folder / "asr.json"
    transcribe(
        folder / "media.json", folder / "media", folder / "transcripts", manifest,
        engine="deepgram", model=model, url=url, concurrency=concurrency,
    )  # fmt: skip
    return {video: record for video, record in read_manifest(manifest).items() if video != "mute"}


def said(path: Path) -> list[tuple[str, float, float]]:
    return [(sentence.text, sentence.start_s, sentence.end_s) for sentence in read(path)]


def test_two_chunks_become_one_transcript(tmp_path: Path) -> None:
    audio(tmp_path, a=603)
    with Server(
        keyed(lambda request: listened(SECOND if len(pcm(request)) < 100 * RATE else FIRST))
    ).running() as server:
        assert run(tmp_path, server.url) == {"a": {"status": "present", "reason": "", "n_sentences": 3}}
    long, short = sorted(server.requests, key=lambda request: -len(pcm(request)))
    cut_s = len(pcm(long)) / 2 / RATE
    assert 585 < cut_s < 586
    first, second, third = read(tmp_path / "transcripts/a.parquet")
    assert [first, second] == [sentence(*line) for line in FIRST]
    assert third == Sentence(
        "Now close it again.", 0.5 + cut_s, 2.0 + cut_s, 0.99,
        tuple(Word(text, s + cut_s, e + cut_s, 0.99) for text, s, e in
              [("Now", 0.5, 0.875), ("close", 0.875, 1.25), ("it", 1.25, 1.625), ("again.", 1.625, 2.0)]),
        chunk=1, engine="deepgram",
    )  # fmt: skip
    with wave.open(str(tmp_path / "media/a/audio.wav")) as file:
        assert pcm(long) + pcm(short) == file.readframes(file.getnframes())
    for request in server.requests:
        assert request.path == "/v1/listen"
        assert request.query == {"model": "nova-3", "language": "en", "punctuate": "true", "utterances": "true"}
        assert request.headers["authorization"] == f"Token {KEY}"


def test_a_finished_transcript_is_kept(tmp_path: Path, scripted: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    audio(tmp_path, a=3)
    server = scripted([listened(SECOND)])
    first = run(tmp_path, server.url)
    monkeypatch.delenv("DEEPGRAM_API_KEY")
    assert run(tmp_path, server.url) == first
    assert run(tmp_path, "http://127.0.0.1:9") == first
    assert len(server.requests) == 1


def test_a_lost_transcript_is_made_from_the_kept_answers(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=3)
    server = scripted([listened(SECOND)])
    run(tmp_path, server.url)
    path = tmp_path / "transcripts/a.parquet"
    before = path.read_bytes()
    path.unlink()
    run(tmp_path, server.url)
    assert path.read_bytes() == before
    assert len(server.requests) == 1


def test_another_model_transcribes_again(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=3)
    server = scripted([listened(SECOND), listened([("Another model.", 0, 1)])])
    run(tmp_path, server.url)
    run(tmp_path, server.url, model="nova-2")
    assert [sentence.text for sentence in read(tmp_path / "transcripts/a.parquet")] == ["Another model."]
    assert [request.query["model"] for request in server.requests] == ["nova-3", "nova-2"]
    assert json.loads((tmp_path / "asr.json").read_text())["model"] == "nova-2"
    run(tmp_path, server.url)
    assert [sentence.text for sentence in read(tmp_path / "transcripts/a.parquet")] == ["Now close it again."]


def test_silence_is_an_empty_transcript(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=3, empty=0)
    server = scripted([listened([])])
    nobody = {"status": "present", "reason": "no speech found", "n_sentences": 0}
    assert run(tmp_path, server.url) == {"a": nobody, "empty": nobody}


def test_times_end_with_the_audio(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=1.5)
    run(tmp_path, scripted([listened(SECOND)]).url)
    assert [sentence.end_s for sentence in read(tmp_path / "transcripts/a.parquet")] == [1.5]


def test_utterances_are_put_in_order(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=6)
    run(tmp_path, scripted([listened([("Late.", 7.0, 8.0), *reversed(FIRST)])]).url)
    assert said(tmp_path / "transcripts/a.parquet") == [*FIRST, ("Late.", 6.0, 6.0)]


def test_words_are_put_in_order(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=3)
    answer = response(SECOND)
    answer["results"]["utterances"][0]["words"].reverse()
    run(tmp_path, scripted([Reply(body=json.dumps(answer).encode())]).url)
    assert read(tmp_path / "transcripts/a.parquet") == (sentence(*SECOND[0]),)


@pytest.mark.parametrize(
    ("start_s", "end_s", "reason"),
    [
        (2.0, 1.0, "the answer has text that ends before it starts"),
        (0.0, 34.0, "the answer has text at 34 s, after the end of the audio"),
        (-1.0, 1.0, "127.0.0.1: the answer is invalid at $.results.utterances[0].start (minimum: 0)"),
        (0.0, float("nan"), "127.0.0.1: the answer is not JSON: NaN is not a number"),
    ],
)
def test_times_that_cannot_be_are_a_record(
    start_s: float, end_s: float, reason: str, tmp_path: Path, scripted: Script
) -> None:
    audio(tmp_path, a=3)
    failed = run(tmp_path, scripted([listened([("What?", start_s, end_s)])]).url)["a"]
    assert (failed["status"], failed["reason"]) == ("failed", reason)
    assert not (tmp_path / "transcripts/answers").exists()


def test_a_confidence_is_at_most_1(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=3)
    answer = response(SECOND)
    answer["results"]["utterances"][0]["confidence"] = 1.0000001
    run(tmp_path, scripted([Reply(body=json.dumps(answer).encode())]).url)
    assert [said.confidence for said in read(tmp_path / "transcripts/a.parquet")] == [1.0]


def odd(**changes: Any) -> Reply:
    """Return an answer with a changed utterance."""
    answer = response(SECOND)
    answer["results"]["utterances"][0] |= changes
    return Reply(body=json.dumps(answer).encode())


def test_a_failure_leaves_no_transcript_of_another_video(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=3)
    server = scripted([listened(SECOND), Reply(400)])
    run(tmp_path, server.url)
    assert (tmp_path / "transcripts/a.parquet").exists()
    audio(tmp_path, a=4)
    assert run(tmp_path, server.url)["a"]["status"] == "failed"
    assert not (tmp_path / "transcripts/a.parquet").exists()


@pytest.mark.parametrize("reply", [Reply(503), Reply(CUT)], ids=lambda r: r.status)
def test_a_passing_failure_is_asked_again(reply: Reply, tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=3)
    server = scripted([reply, listened(SECOND)])
    assert run(tmp_path, server.url)["a"] == {"status": "present", "reason": "", "n_sentences": 1}
    first, second = server.requests
    assert pcm(first) == pcm(second) != b""


def test_an_answer_for_a_part_of_the_audio_is_asked_again(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=30)
    server = scripted([listened(SECOND, duration_s=12), listened(FIRST)])
    assert run(tmp_path, server.url)["a"] == {"status": "present", "reason": "", "n_sentences": 2}
    assert said(tmp_path / "transcripts/a.parquet") == FIRST
    first, second = server.requests
    assert pcm(first) == pcm(second)


def test_seconds_that_no_answer_covers_are_named_and_paid_twice_at_most(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=603)
    server = scripted([listened(FIRST), listened(SECOND, duration_s=12), listened(SECOND, duration_s=11)])
    record = run(tmp_path, server.url, concurrency=1)["a"]
    start_s = len(pcm(server.requests[0])) / 2 / RATE + 12
    why = f"no transcript of {start_s:.1f} to 603.0 s: the service's answer ends before"
    assert record == {"status": "present", "reason": why, "n_sentences": 3, "unheard": [[start_s, 603.0]]}
    assert len(read(tmp_path / "transcripts/a.parquet")) == 3
    (tmp_path / "asr.json").unlink()
    assert run(tmp_path, server.url)["a"] == record
    (tmp_path / "transcripts/a.parquet").unlink()
    assert run(tmp_path, server.url)["a"] == record
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "answer",
    [
        listened(FIRST, duration_s=5),
        listened(FIRST[:1], duration_s=5.1),
        Reply(body=b'{"results": {"utterances": []}}'),
    ],
)
def test_an_answer_that_covers_the_audio_or_states_no_length_is_not_asked_again(
    answer: Reply, tmp_path: Path, scripted: Script
) -> None:
    audio(tmp_path, a=6)
    server = scripted([answer])
    assert "unheard" not in run(tmp_path, server.url)["a"]
    assert len(server.requests) == 1


def test_a_wait_of_hours_is_left_to_another_run(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=3)
    server = scripted([Reply(429, headers={"Retry-After": "3600"})])
    failed = run(tmp_path, server.url)["a"]
    assert failed["status"] == "failed"
    assert "HTTP 429" in failed["reason"]
    assert "requests a wait of 3" in failed["reason"]


def test_after_three_retries_the_video_is_a_record_and_the_others_go_on(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=3, b=3)
    server = scripted([Reply(503)] * 4 + [listened(SECOND)] + [Reply(503)] * 4 + [listened(FIRST)])
    records = run(tmp_path, server.url)
    reason = '127.0.0.1: HTTP 503: {"error":"no"} (4 attempts)'
    assert records["a"] == {"status": "failed", "reason": reason, "failures": 1}
    assert records["b"]["status"] == "present"
    assert not (tmp_path / "transcripts/a.parquet").exists()
    assert run(tmp_path, server.url)["a"]["failures"] == 2
    assert run(tmp_path, server.url)["a"] == {"status": "present", "reason": "", "n_sentences": 2, "failures": 2}
    assert len(server.requests) == 10


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(400, body=b'{"err_code":"Bad Request","err_msg":"corrupt or unsupported data"}'), "HTTP 400.*corrupt"),
        (Reply(402), "HTTP 402"),
        (Reply(301, headers={"Location": "http://127.0.0.1:9/"}), "HTTP 301"),
        (Reply(204, b""), "the answer is not JSON"),
        (Reply(400, b"\xff"), "'utf-8' codec"),
        (Reply(400, b"[" * 100_000), "recursion"),
        (Reply(body=b"<html>a proxy's page</html>"), "the answer is not JSON"),
        (Reply(body=b'{"results": {"utterances": ['), "the answer is not JSON"),
        (Reply(body=b'{"results": "\xff"}'), "the answer is not JSON: 'utf-8' codec"),
        (Reply(body=b"[" * 100_000), "the answer is not JSON: .*recursion"),
        (Reply(body=b"null"), r"the answer is invalid at \$ \(type: object\)"),
        (Reply(body=b"[]"), r"invalid at \$ \(type: object\)"),
        (Reply(body=b'{"request_id": "1"}'), r"invalid at \$ \(required: \['results'\]\)"),
        (Reply(body=b'{"results": {"channels": []}}'), r"invalid at \$\.results \(required: \['utterances'\]\)"),
        (Reply(body=b'{"results": {"utterances": 5}}'), r"invalid at \$\.results\.utterances \(type: array\)"),
        (Reply(body=b'{"results": {"utterances": [], "channels": [5]}}'), r"results\.channels\[0\] \(type: object\)"),
        (Reply(body=b'{"results": {"utterances": [{"transcript": "a"}]}}'), r"utterances\[0\] \(required: "),
        (odd(words="abc"), r"utterances\[0\]\.words \(type: array\)"),
        (odd(words=[{"start": 0, "end": 0, "confidence": 0}]), r"words\[0\] \(required: \['word'\]\)"),
        (odd(start="soon"), r"utterances\[0\]\.start \(type: number\)"),
        (odd(end=int("9" * 400)), r"utterances\[0\]\.end \(type: number\)"),
        (odd(confidence=-0.5), r"utterances\[0\]\.confidence \(minimum: 0\)"),
        (odd(confidence=float("nan")), "the answer is not JSON: NaN is not a number"),
        (odd(transcript="Pour \ud800 it."), "the answer is not JSON: .*surrogates not allowed"),
        (odd(transcript=None), r"utterances\[0\]\.transcript \(type: string\)"),
    ],
)
def test_a_refusal_is_a_record_and_asked_once_a_run(
    reply: Reply, reason: str, tmp_path: Path, scripted: Script
) -> None:
    audio(tmp_path, a=3)
    server = scripted([reply, listened(SECOND)])
    failed = run(tmp_path, server.url)["a"]
    assert failed["status"] == "failed"
    assert re.search(reason, failed["reason"])
    assert len(server.requests) == 1
    assert not (tmp_path / "transcripts/answers").exists()
    assert run(tmp_path, server.url)["a"]["status"] == "present"


def test_nobody_there_is_found_by_one_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_RUN", "1")
    audio(tmp_path, a=3, b=3)
    with Server(keyed(lambda request: listened(SECOND))).running() as other:
        server = Server(lambda request: listened([]))
        server.server_close()
        records = run(tmp_path, server.url)
        assert {record["status"] for record in records.values()} == {"failed"}
        assert all("is unreachable" in record["reason"] for record in records.values())
        assert len(list((tmp_path / ".stepline/probes").glob("*.json"))) == 1
        assert {record["status"] for record in run(tmp_path, other.url).values()} == {"present"}


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("another", "the key in DEEPGRAM_API_KEY is refused: .*HTTP 401.*Invalid credentials"),
        (None, "DEEPGRAM_API_KEY is not set"),
        ("  ", "DEEPGRAM_API_KEY is not set"),
        ("two words", "DEEPGRAM_API_KEY contains spaces"),
        ("clé", "DEEPGRAM_API_KEY contains spaces or characters"),
    ],
)
def test_a_wrong_key_is_one_line(
    key: str | None, line: str, tmp_path: Path, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    audio(tmp_path, a=3)
    monkeypatch.delenv("DEEPGRAM_API_KEY") if key is None else monkeypatch.setenv("DEEPGRAM_API_KEY", key)
    server = scripted([listened([])] * 9)
    with pytest.raises(MissingError, match=line) as caught:
        run(tmp_path, server.url)
    assert not (key or "").strip() or key not in str(caught.value)
    assert len(server.requests) == (key == "another")
    assert not (tmp_path / "asr.json").exists()


def test_a_forbidden_model_is_one_line(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=3)
    said = b'{"err_code":"INSUFFICIENT_PERMISSIONS","err_msg":"Project does not have access to the requested model."}'
    with pytest.raises(MissingError, match="DEEPGRAM_API_KEY.*HTTP 403.*requested model"):
        run(tmp_path, scripted([Reply(403, body=said)]).url)


def test_a_key_with_a_line_end_is_taken_without_it(
    tmp_path: Path, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    audio(tmp_path, a=3)
    monkeypatch.setenv("DEEPGRAM_API_KEY", f"{KEY}\n")
    assert run(tmp_path, scripted([listened(SECOND)]).url)["a"]["status"] == "present"


@pytest.fixture
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut recordings into chunks of 1 to 2 s."""
    monkeypatch.setattr(chunks, "LONGEST", 2 * RATE)
    monkeypatch.setattr(chunks, "SEARCHED", RATE)


def heard(request: Request) -> Reply:
    return listened([(hashlib.sha256(pcm(request)).hexdigest(), 0.25, 0.5)])


@pytest.mark.usefixtures("short_chunks")
def test_a_failure_of_one_chunk_costs_that_chunk(tmp_path: Path) -> None:
    audio(tmp_path, a=60)
    asked: list[bytes] = []

    def reply(request: Request) -> Reply:
        asked.append(pcm(request))
        return Reply(400) if len(asked) == 12 else heard(request)

    with Server(keyed(reply)).running() as server:
        failed = run(tmp_path, server.url)["a"]
        n_chunks = len(server.requests)
        assert n_chunks >= 30
        assert failed["status"] == "failed"
        assert failed["reason"].startswith(f"1 of {n_chunks} chunks: 127.0.0.1: HTTP 400")
        assert not (tmp_path / "transcripts/a.parquet").exists()
        assert run(tmp_path, server.url)["a"]["n_sentences"] == n_chunks
    assert [pcm(request) for request in server.requests[n_chunks:]] == [asked[11]]


@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize("concurrency", [1, 3])
def test_so_many_chunks_are_asked_at_once_and_stay_in_order(concurrency: int, tmp_path: Path) -> None:
    full = threading.Event()

    def reply(request: Request) -> Reply:
        if server.at_once == concurrency:
            full.set()
        full.wait(10)
        time.sleep(0.06 * (pcm(request)[0] % 3))
        return heard(request)

    audio(tmp_path, a=20)
    with Server(keyed(reply)).running() as server:
        run(tmp_path, server.url, concurrency=concurrency)
    assert server.at_once == concurrency
    pieces = list(chunks.chunks(tmp_path / "media/a/audio.wav"))
    assert said(tmp_path / "transcripts/a.parquet") == [
        (hashlib.sha256(samples.tobytes()).hexdigest(), start / RATE + 0.25, start / RATE + 0.5)
        for start, samples in pieces
    ]


@pytest.mark.usefixtures("short_chunks")
def test_a_refused_key_ends_the_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audio(tmp_path, a=60)
    monkeypatch.setenv("DEEPGRAM_API_KEY", "another")
    with Server(keyed(heard)).running() as server, pytest.raises(MissingError, match="refused"):
        run(tmp_path, server.url)
    assert len(server.requests) <= 4


def test_a_damaged_answer_is_named(tmp_path: Path, scripted: Script) -> None:
    audio(tmp_path, a=3)
    server = scripted([listened(SECOND)])
    run(tmp_path, server.url)
    (answer,) = (tmp_path / "transcripts/answers").iterdir()
    answer.write_bytes(answer.read_bytes()[:100])
    (tmp_path / "transcripts/a.parquet").unlink()
    with pytest.raises(StoreError, match=f"{answer} is damaged .*: remove it and run the same command again"):
        run(tmp_path, server.url)


def configured(tmp_path: Path, url: str) -> None:
    """Make the test's folder one in which ``stepline transcribe demo --shard 000`` has something to do."""
    asr = {"engine": "deepgram", "deepgram": {"url": url, "concurrency": 1}}
    (tmp_path / "config.yaml").write_text(json.dumps({"asr": asr, "demo": {"transcripts": "asr"}}))
    (tmp_path / "datasets/demo").mkdir(parents=True)
    (tmp_path / "media").rename(tmp_path / "datasets/demo/media")
    (tmp_path / "datasets/demo/media/manifests").mkdir()
    (tmp_path / "media.json").rename(tmp_path / "datasets/demo/media/manifests/000.json")


COMMAND = ["--log", "logs/transcribe.log", "transcribe", "demo", "--shard", "000"]


def test_a_kill_between_chunks_never_pays_twice(tmp_path: Path) -> None:
    asked_again = threading.Event()

    def reply(request: Request) -> Reply:
        if len(pcm(request)) < 100 * RATE and not asked_again.is_set():
            asked_again.set()
            time.sleep(30)
        return listened(SECOND if len(pcm(request)) < 100 * RATE else FIRST)

    audio(tmp_path, a=603)
    with Server(keyed(reply)).running() as server:
        configured(tmp_path, server.url)
        killed = subprocess.Popen([sys.executable, "-m", "stepline", *COMMAND], start_new_session=True)
        assert asked_again.wait(60)
        os.killpg(killed.pid, signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL
        assert main(COMMAND) == 0
    long, short, again = (pcm(request) for request in server.requests)
    assert len(long) > 585 * RATE * 2 > len(short)
    assert short == again
    assert len(read(tmp_path / "datasets/demo/transcripts/deepgram/a.parquet")) == 3


def test_the_key_stands_in_no_file_and_no_output(
    tmp_path: Path, scripted: Script, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    audio(tmp_path, a=3, b=3, c=3)
    echo = f"refused: Token {KEY}".encode()
    server = scripted([listened(FIRST), Reply(400, body=echo), Reply(403, body=echo)])
    configured(tmp_path, server.url)
    assert main(COMMAND) == 2
    printed = "".join(capfd.readouterr())
    assert "error: the key in DEEPGRAM_API_KEY is refused" in printed
    assert KEY not in printed
    assert KEY not in caplog.text
    assert "HTTP Request: POST" in caplog.text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"transcribe.log", "a.parquet", "b.json"} <= {path.name for path in files}
    assert "b: failed: 127.0.0.1: HTTP 400: refused: Token ***" in (tmp_path / "logs/transcribe.log").read_text()
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_the_configuration_names_model_and_address() -> None:
    asr = validate({"asr": {"engine": "deepgram"}})["asr"]
    options = {"model": "nova-3", "url": "https://api.deepgram.com", "concurrency": 4}
    assert (asr["engine"], asr["deepgram"]) == ("deepgram", options)
    with pytest.raises(ConfigError, match="asr.deepgram.url"):
        validate({"asr": {"deepgram": {"url": "localhost:80"}}})
    with pytest.raises(ConfigError, match="asr.deepgram.key: unknown key"):
        validate({"asr": {"deepgram": {"key": KEY}}})
