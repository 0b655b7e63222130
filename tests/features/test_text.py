import hashlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stepline.errors import StoreError
from stepline.features.text import PART, TextStore, encode_texts
from stepline.spec import Spec

STORE = Path("features/words/first3/demo/texts/a")
WORDS = Spec(name="words", label="first3", revision=1)


@dataclass
class Words:
    """A small encoder: it sees the first three words; each counts for its number."""

    spec: Spec = WORDS
    encoded: list[tuple[int, ...]] = field(default_factory=list)

    def tokens(self, text: str) -> list[int]:
        return [int.from_bytes(hashlib.sha256(word.encode()).digest()[:3], "big") for word in text.split()[:3]]

    def encode(self, tokens: list[int]) -> NDArray[np.float32]:
        self.encoded.append(tuple(tokens))
        return np.random.default_rng(tokens).random(5, np.float32)


def vectors(texts: list[str]) -> NDArray[np.float32]:
    encoder = Words()
    return np.stack([encoder.encode(encoder.tokens(text)) for text in texts])


def store_bytes(folder: Path = STORE) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def left_over(folder: Path = STORE) -> set[str]:
    return {path.name for path in folder.parent.iterdir()} - {folder.name, f"{folder.name}.lock"}


def test_every_distinct_truncated_text_is_encoded_once() -> None:
    texts = ["open the hatch", "open the hatch now", "open the hatch", "close it", "", "close  it"]
    encoder = Words()
    assert encode_texts(texts, encoder, STORE, what="a") == 3
    assert len(encoder.encoded) == len(set(encoder.encoded)) == 3
    store = TextStore(STORE, WORDS)
    assert np.array_equal(store(texts), vectors(texts))
    assert store(texts).dtype == np.float32
    assert store.embeddings.shape == (3, 5)
    assert left_over() == set()


def test_a_second_call_encodes_only_what_is_new() -> None:
    encoder = Words()
    assert encode_texts(["one", "two"], encoder, STORE, what="a") == 2
    assert encode_texts(["two", "three", "one two three four", "one"], encoder, STORE, what="a") == 2
    assert len(encoder.encoded) == 4
    before = {path: path.stat().st_mtime_ns for path in STORE.rglob("*")}
    assert encode_texts(["three", "two"], encoder, STORE, what="a") == 0
    assert {path: path.stat().st_mtime_ns for path in STORE.rglob("*")} == before
    assert np.array_equal(TextStore(STORE, WORDS)(["one", "three"]), vectors(["one", "three"]))


def test_a_text_that_adds_no_vector_is_found_later() -> None:
    encode_texts(["one two three"], Words(), STORE, what="a")
    assert encode_texts(["one two three four"], Words(), STORE, what="a") == 0
    assert np.array_equal(TextStore(STORE, WORDS)(["one two three four"]), vectors(["one two three"]))


@settings(max_examples=15)
@given(
    st.lists(st.sampled_from([f"{a} {b} {c} {d}" for a in "ab" for b in "ab" for c in "ab" for d in "ab"]), min_size=1),
    st.randoms(use_true_random=False),
    st.integers(0, 20),
)
def test_neither_order_nor_history_changes_the_bytes(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], random: object, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("history")
    encode_texts(texts, Words(), folder / "one", what="a")
    shuffled = texts[:]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    if shuffled[:cut]:
        encode_texts(shuffled[:cut], Words(), folder / "two", what="a")
    encode_texts(shuffled, Words(), folder / "two", what="a")
    assert store_bytes(folder / "one") == store_bytes(folder / "two")


def test_an_error_of_the_encoder_loses_at_most_a_part() -> None:
    texts = [f"text {i}" for i in range(2 * PART + 10)]

    @dataclass
    class Failing(Words):
        left: int = 0

        def encode(self, tokens: list[int]) -> NDArray[np.float32]:
            if not self.left:
                raise RuntimeError
            self.left -= 1
            return super().encode(tokens)

    with pytest.raises(RuntimeError):
        encode_texts(texts, Failing(left=2 * PART + 5), STORE, what="a")
    encoder = Words()
    assert encode_texts(texts, encoder, STORE, what="a") == len(encoder.encoded) == 10


TEXTS = [f"text {i}" for i in range(3 * PART)]
WORKER = """
import os, signal, sys
from tests.features.test_text import STORE, TEXTS, Words, encode_texts

class Mortal(Words):
    def encode(self, tokens):
        if len(self.encoded) == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
        with open("encoded", "a") as file:
            file.write("x")
        return super().encode(tokens)

encode_texts(TEXTS, Mortal(), STORE, what="a")
"""


def worker(lives: int) -> "subprocess.Popen[bytes]":
    """Start a process that encodes ``TEXTS`` and kills itself after ``lives`` of them."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen([sys.executable, "-c", WORKER, str(lives)], env=environment)


def test_a_kill_loses_at_most_a_part_and_the_bytes_are_those_of_an_undisturbed_run() -> None:
    assert PART <= 256
    encode_texts(TEXTS, Words(), Path("undisturbed"), what="a")
    for lives in (PART - 1, PART, PART + 99):
        assert worker(lives).wait() == -signal.SIGKILL
    assert not STORE.exists()
    encoder = Words()
    encode_texts(TEXTS, encoder, STORE, what="a")
    assert len(encoder.encoded) == PART
    assert store_bytes() == store_bytes(Path("undisturbed"))
    assert left_over() == set()


def test_another_spec_is_refused_naming_the_difference() -> None:
    encode_texts(["one"], Words(), STORE, what="a")
    before = store_bytes()
    other = replace(WORDS, revision=2, label="first4")
    with pytest.raises(StoreError, match=f"^{STORE} was made by another spec: label, revision differ$"):
        TextStore(STORE, other)
    with pytest.raises(StoreError, match="label, revision differ"):
        encode_texts(["two"], Words(spec=other), STORE, what="a")
    assert store_bytes() == before


def test_an_absent_store_is_one_line() -> None:
    with pytest.raises(StoreError, match=f"^{STORE} holds no text embeddings: run `stepline encode`$"):
        TextStore(STORE, WORDS)


def test_a_text_without_embedding_is_one_line() -> None:
    encode_texts(["one"], Words(), STORE, what="a")
    with pytest.raises(StoreError, match="^a text has no embedding: run `stepline encode`"):
        TextStore(STORE, WORDS)(["one", "never seen"])


@pytest.mark.parametrize("keep", [0, 100])
def test_a_damaged_index_is_one_line(keep: int) -> None:
    encode_texts(["one"], Words(), STORE, what="a")
    path = STORE / "index.parquet"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(StoreError, match=f"^{path} is damaged "):
        TextStore(STORE, WORDS)


def test_the_spec_stands_beside_its_vectors() -> None:
    encode_texts(["one"], Words(), STORE, what="a")
    assert (STORE / "spec.json").read_text() == '{\n  "label": "first3",\n  "name": "words",\n  "revision": 1\n}\n'


def test_two_at_once_leave_one_whole_store() -> None:
    workers = [worker(len(TEXTS)) for _ in range(2)]
    assert [each.wait() for each in workers] == [0, 0]
    assert Path("encoded").stat().st_size == len(TEXTS)
    assert np.array_equal(TextStore(STORE, WORDS)(TEXTS), vectors(TEXTS))
