import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyarrow import parquet

from stepline import paths
from stepline.errors import StoreError
from stepline.features.text import PART, TextStore, encode_texts, kept
from stepline.io import read_json
from stepline.spec import Spec
from tests.features.conftest import content

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


def left_over() -> set[str]:
    return {path.name for path in STORE.parent.iterdir()} - {
        f"{STORE.name}{each}" for each in ("", ".lock", ".swap.lock")
    }


def test_every_distinct_truncated_text_is_encoded_once() -> None:
    texts = ["open the hatch", "open the hatch now", "open the hatch", "close it", "", "close  it"]
    encoder = Words()
    assert encode_texts(texts, encoder, STORE, what="a") == 3
    assert len(encoder.encoded) == len(set(encoder.encoded)) == 3
    store = TextStore(STORE, WORDS)
    assert np.array_equal(store(texts), vectors(texts))
    assert store(texts).dtype == np.float32
    assert store.embeddings.shape == (3, 5)
    assert (STORE / "spec.json").read_text() == '{\n  "label": "first3",\n  "name": "words",\n  "revision": 1\n}\n'
    index = parquet.read_table(STORE / "index.parquet").to_pydict()
    assert index["text_sha256"] == sorted({hashlib.sha256(text.encode()).hexdigest() for text in texts})
    keys = dict(zip(index["row"], index["tokens_sha256"], strict=True))
    assert [keys[row] for row in range(3)] == sorted(keys.values())
    assert left_over() == set()


def test_texts_of_a_study_are_kept_in_its_folder_beside_the_spec() -> None:
    found = kept("demo", "texts/a", ["one", "two", "one"], Words())
    assert np.array_equal(found(["two", "one"]), vectors(["two", "one"]))
    assert np.array_equal(TextStore(paths.text_store("demo", "texts/a", WORDS), WORDS)(["one"]), vectors(["one"]))
    assert read_json(paths.spec_record(WORDS)) == WORDS.record()


def test_a_second_call_encodes_only_what_is_new() -> None:
    encoder = Words()
    assert encode_texts(["one", "two"], encoder, STORE, what="a") == 2
    assert encode_texts(["two", "three", "one two three four", "one"], encoder, STORE, what="a") == 2
    assert len(encoder.encoded) == 4
    before = {path: path.stat().st_mtime_ns for path in STORE.rglob("*")}
    assert encode_texts(["three", "two"], encoder, STORE, what="a") == 0
    assert {path: path.stat().st_mtime_ns for path in STORE.rglob("*")} == before
    assert np.array_equal(TextStore(STORE, WORDS)(["one", "three"]), vectors(["one", "three"]))
    assert encode_texts(["one two three five"], encoder, STORE, what="a") == 0
    assert np.array_equal(TextStore(STORE, WORDS)(["one two three five"]), vectors(["one two three"]))
    with pytest.raises(StoreError, match="^a text has no embedding: run `stepline encode`"):
        TextStore(STORE, WORDS)(["one", "never seen"])


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
    assert content(folder / "one") == content(folder / "two")


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


def process(code: str, *arguments: str, **options: int) -> "subprocess.Popen[bytes]":
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen([sys.executable, "-c", code, *arguments], env=environment, **options)


def test_a_kill_loses_at_most_a_part_and_the_bytes_are_those_of_an_undisturbed_run() -> None:
    assert PART <= 256
    encode_texts(TEXTS, Words(), Path("undisturbed"), what="a")
    for lives in (PART - 1, PART, PART + 99):
        assert process(WORKER, str(lives)).wait() == -signal.SIGKILL
    assert not STORE.exists()
    STORE.with_name(f"{STORE.name}.parts").joinpath(".0123.npz.abcd.npz").write_bytes(b"PK half written")
    encoder = Words()
    encode_texts(TEXTS, encoder, STORE, what="a")
    assert len(encoder.encoded) == PART
    assert content(STORE) == content(Path("undisturbed"))
    assert left_over() == set()


def test_another_spec_is_refused_naming_the_difference() -> None:
    encode_texts(["one"], Words(), STORE, what="a")
    before = content(STORE)
    other = replace(WORDS, revision=2, label="first4")
    with pytest.raises(
        StoreError, match=f"^{STORE} has another spec: label is 'first3', not 'first4'; revision is 1, not 2$"
    ):
        TextStore(STORE, other)
    with pytest.raises(StoreError, match="another spec"):
        encode_texts(["two"], Words(spec=other), STORE, what="a")
    assert content(STORE) == before


DAMAGED = f"^{STORE} is absent or damaged: remove it and run `stepline encode`$"


def test_an_absent_store_is_one_line_and_leaves_nothing() -> None:
    with pytest.raises(StoreError, match=DAMAGED):
        TextStore(STORE, WORDS)
    assert not Path("features").exists()


def truncate(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def with_index(**columns: list[object]) -> None:
    """Write the index anew with some other columns; those of the value [] are left out."""
    index = parquet.read_table(STORE / "index.parquet").to_pydict() | columns
    parquet.write_table(
        pyarrow.table({name: values for name, values in index.items() if values}), STORE / "index.parquet"
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda: truncate(STORE / "index.parquet", 0),
        lambda: truncate(STORE / "index.parquet", 100),
        lambda: (STORE / "index.parquet").unlink(),
        lambda: with_index(other=[1, 2]),
        lambda: with_index(row=[]),
        lambda: with_index(row=["0", "1"]),
        lambda: with_index(row=[0, 2]),
        lambda: with_index(row=[0, 0]),
        lambda: (STORE / "spec.json").unlink(),
        lambda: truncate(STORE / "spec.json", 20),
        lambda: (STORE / "spec.json").write_text("[1]"),
        lambda: (STORE / "embeddings/zarr.json").unlink(),
        lambda: (STORE / "embeddings/zarr.json").write_text("{}"),
        lambda: (STORE / "embeddings/c/0/0").unlink(),
        lambda: truncate(STORE / "embeddings/c/0/0", 0),
        lambda: truncate(STORE / "embeddings/c/0/0", 20),
        lambda: flip(STORE / "embeddings/c/0/0"),
    ],
)
def test_damage_is_one_line(damage: Callable[[], object]) -> None:
    encode_texts(["one", "two"], Words(), STORE, what="a")
    damage()
    with pytest.raises(StoreError, match=DAMAGED):
        TextStore(STORE, WORDS)
    with pytest.raises(StoreError, match=DAMAGED):
        encode_texts(["three"], Words(), STORE, what="a")
    shutil.rmtree(STORE)
    assert encode_texts(["one", "two"], Words(), STORE, what="a") == 2


def test_vectors_of_zeros_are_no_damage() -> None:
    class Zeros(Words):
        def encode(self, tokens: list[int]) -> NDArray[np.float32]:
            return 0 * super().encode(tokens)

    encode_texts(["one"], Zeros(), STORE, what="a")
    assert TextStore(STORE, WORDS)(["one"]).tolist() == [[0] * 5]


def test_two_at_once_leave_one_whole_store() -> None:
    workers = [process(WORKER, str(len(TEXTS))) for _ in range(2)]
    assert [each.wait() for each in workers] == [0, 0]
    assert Path("encoded").stat().st_size == len(TEXTS)
    assert np.array_equal(TextStore(STORE, WORDS)(TEXTS), vectors(TEXTS))


GROWING = """
from tests.features.test_text import STORE, TEXTS, Words, encode_texts
for n in range(2, 40):
    encode_texts(TEXTS[:n], Words(), STORE, what="a")
"""


def test_a_reader_never_sees_the_rows_of_another_index() -> None:
    encode_texts(TEXTS[:1], Words(), STORE, what="a")
    wanted, sizes = vectors(TEXTS), set()
    with process(GROWING) as encoding:
        while encoding.poll() is None:
            store = TextStore(STORE, WORDS)
            sizes.add(len(store.rows))
            assert np.array_equal(store(TEXTS[: len(store.rows)]), wanted[: len(store.rows)])
            time.sleep(0.02)  # the encoder asks for its turn now and then
    assert encoding.returncode == 0
    assert len(sizes) > 10


STUCK = """
import sys
from tests.features.test_text import STORE, Words, encode_texts
class Stuck(Words):
    def encode(self, tokens):
        print("encoding", flush=True)
        sys.stdin.read()
        return super().encode(tokens)
encode_texts(["two"], Stuck(), STORE, what="a")
"""


def test_a_reader_does_not_wait_until_all_is_encoded() -> None:
    encode_texts(["one"], Words(), STORE, what="a")
    with process(STUCK, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as encoding:
        assert encoding.stdout is not None
        assert encoding.stdout.readline() == b"encoding\n"
        assert np.array_equal(TextStore(STORE, WORDS)(["one"]), vectors(["one"]))
        assert encoding.poll() is None
    assert encoding.returncode == 0
    assert np.array_equal(TextStore(STORE, WORDS)(["one", "two"]), vectors(["one", "two"]))


@pytest.fixture
def nobody() -> Iterator[None]:
    """Be an account that may write nothing that the encoder wrote, also where the tests are run by root."""
    root = os.geteuid() == 0
    Path.cwd().chmod(0o755)
    if root:
        os.seteuid(65534)
    yield
    if root:
        os.seteuid(0)


@pytest.mark.parametrize("locked", [True, False])
def test_a_read_only_folder_is_read(request: pytest.FixtureRequest, locked: bool) -> None:
    encode_texts(["one"], Words(), STORE, what="a")
    lock = STORE.with_name(f"{STORE.name}.swap.lock")
    if locked:
        lock.chmod(0o444)
    else:
        lock.unlink()
    STORE.parent.chmod(0o555)
    request.getfixturevalue("nobody")
    with pytest.raises(PermissionError):
        STORE.with_name("b").touch()
    assert np.array_equal(TextStore(STORE, WORDS)(["one"]), vectors(["one"]))
    assert lock.exists() == locked
