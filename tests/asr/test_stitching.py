"""Long recordings: what is said stands in the transcript once, in order and in time, wherever chunks are cut."""

import json
import os
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepline.asr import chunks
from stepline.asr.engine import Heard
from stepline.asr.pocketsphinx import PocketSphinx
from stepline.asr.transcribe import recognise
from stepline.asr.transcript import Sentence, Word
from stepline.media.audio import RATE
from tests.asr.speech import speech
from tests.asr.wav import write_wav

FIRST, LAST = 30_000, 31_000
"""Samples that stand nowhere but at a word's two ends."""
GAP = chunks.QUIET


def word(number: int, length: int) -> np.ndarray:
    """Return noise of ``length`` samples that `Decoder` knows as this number."""
    samples = np.random.default_rng(number).integers(-8000, 8000, length, np.int16)
    samples[:2] = FIRST, number
    samples[-1] = LAST
    return samples


class Decoder:
    """Recognises the words of `word`, exactly. A word that is cut is none that it knows."""

    def __init__(self, concurrency: int) -> None:
        self.parameters = {"engine": "exact"}
        self.concurrency = concurrency

    def answer(self, samples: np.ndarray) -> bytes:
        starts, ends = np.flatnonzero(samples == FIRST).tolist(), (np.flatnonzero(samples == LAST) + 1).tolist()
        assert len(starts) == len(ends), "a word is cut"
        return json.dumps(
            [[int(samples[a + 1]), a / RATE, b / RATE] for a, b in zip(starts, ends, strict=True)]
        ).encode()

    def heard(self, answer: bytes) -> Heard:
        return Heard([Sentence(str(n), a, b, words=(Word(str(n), a, b),)) for n, a, b in json.loads(answer)])


def planted(gaps_and_lengths: list[tuple[int, int]]) -> tuple[np.ndarray, list[tuple[str, int, int]]]:
    """Return samples of words after gaps, and each word's number, first sample and end."""
    parts, said, at = [], [], 0
    for number, (gap, length) in enumerate(gaps_and_lengths):
        parts += [np.zeros(gap, np.int16), word(number, length)]
        said.append((str(number), at + gap, at + gap + length))
        at += gap + length
    return np.concatenate([*parts, np.zeros(GAP, np.int16)]), said


def in_samples(sentences: list[Sentence]) -> list[tuple[str, int, int]]:
    spans = [(s.text, s.start_s * RATE, s.end_s * RATE) for s in sentences]
    assert all(abs(t - round(t)) < 1e-3 for _, *times in spans for t in times)
    return [(text, round(start), round(end)) for text, start, end in spans]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(GAP, 2 * GAP), st.integers(3, RATE // 2)), min_size=1, max_size=40),
    st.integers(1, 3),
)
def test_no_word_is_lost_or_doubled_where_there_is_a_pause_to_cut_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gaps_and_lengths: list[tuple[int, int]], concurrency: int
) -> None:
    samples, said = planted(gaps_and_lengths)
    with monkeypatch.context() as shorter:
        shorter.setattr(chunks, "LONGEST", 3 * RATE)
        shorter.setattr(chunks, "SEARCHED", 2 * RATE)
        path = write_wav(tmp_path / "a.wav", samples)
        cuts = [start for start, _ in chunks.chunks(path)]
        heard = recognise(path, Decoder(concurrency), tmp_path / "answers")[0]
    assert in_samples(heard) == said
    assert [s.words[0] for s in heard] == [Word(s.text, s.start_s, s.end_s) for s in heard]
    assert [s.chunk for s in heard] == [sum(cut <= start for cut in cuts) - 1 for _, start, _ in said]


def test_no_word_of_half_an_hour_is_lost_or_doubled(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    each = [(int(rng.integers(GAP, 10 * RATE)), int(rng.integers(RATE // 10, 10 * RATE))) for _ in range(180)]
    samples, said = planted(each)
    assert len(samples) > 1800 * RATE
    heard = recognise(write_wav(tmp_path / "a.wav", samples), Decoder(4), tmp_path / "answers")[0]
    assert in_samples(heard) == said
    assert {s.chunk for s in heard} == set(range(len(list(chunks.chunks(tmp_path / "a.wav")))))


@pytest.mark.slow
def test_pocketsphinx_hears_every_sentence_on_both_sides_of_a_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "LONGEST", 10 * RATE)
    monkeypatch.setattr(chunks, "SEARCHED", 5 * RATE)
    clip = speech()
    path = write_wav(tmp_path / "a.wav", np.concatenate([clip] * 2))
    (_, (cut, _)) = chunks.chunks(path)
    assert 5 * RATE < cut < 10 * RATE
    heard = recognise(path, PocketSphinx(), tmp_path / "answers")[0]
    starts = [5.999 * k for k in range(2)]
    assert [s.text.split()[-4:] for s in heard] == 2 * [
        ["turn", "on", "the", "light"],
        ["water", "on", "the", "table"],
    ]
    assert [s.start_s for s in heard] == pytest.approx([t + each for t in starts for each in (1.0, 4.0)], abs=0.1)
    assert [s.chunk for s in heard] == [int(s.start_s * RATE >= cut) for s in heard]


@pytest.mark.slow
@pytest.mark.parametrize(("concurrency", "limit_mb"), [(1, 60), (4, 240)])
def test_three_hours_are_never_held_at_once(
    tmp_path: Path, concurrency: int, limit_mb: int, sparse_wav: Callable[[float], Path]
) -> None:
    path = sparse_wav(3 * 3600)
    tracemalloc.start()
    try:
        assert recognise(path, Decoder(concurrency), tmp_path / "answers") == ([], [])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit_mb * 2**20


@pytest.fixture
def sparse_wav(tmp_path: Path) -> Callable[[float], Path]:
    """Make a silent recording of so many seconds that takes no room."""

    def make(seconds: float) -> Path:
        size, path = int(seconds * RATE) * 2, tmp_path / "long.wav"
        form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, RATE, RATE * 2, 2, 16)
        path.write_bytes(struct.pack("<4sI4s", b"RIFF", size + 36, b"WAVE") + form + struct.pack("<4sI", b"data", size))
        os.truncate(path, 44 + size)
        return path

    return make


def test_digital_silence_is_not_asked_for(tmp_path: Path) -> None:
    asked = []

    class Listed(Decoder):
        def answer(self, samples: np.ndarray) -> bytes:
            asked.append(samples.any())
            return super().answer(samples)

    said = word(1, 4000)
    silence = np.zeros(3 * chunks.LONGEST, np.int16)
    write_wav(tmp_path / "a.wav", np.concatenate([silence, said, silence]))
    sentences = recognise(tmp_path / "a.wav", Listed(1), tmp_path / "answers")[0]
    assert asked == [True]
    start = len(silence)
    assert in_samples(sentences) == [("1", start, start + len(said))]
