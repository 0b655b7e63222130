"""A bit of a cached file is another one: whoever reads it gets what was written, or one line that names the file."""

import atexit
import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, chdir
from dataclasses import asdict, dataclass
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from stepline.asr import transcript
from stepline.asr.engine import Engine, Heard
from stepline.asr.transcribe import recognise
from stepline.asr.transcript import Sentence, Word
from stepline.availability import Record, read_availability, write_availability
from stepline.benchmark.method import Prediction
from stepline.benchmark.plan import read_score
from stepline.errors import SteplineError
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.text import TextStore, encode_texts
from stepline.io import read_arrays, read_table, write_arrays, write_sealed, write_table, write_tensors
from stepline.llm import ask
from stepline.models.training import loaded
from stepline.runs.predictions import read_predictions, write_predictions
from stepline.service import Conversation, Service
from stepline.spec import Spec
from tests.asr.wav import write_wav
from tests.llm_answers import completion
from tests.server import Server

TEXTS = ["open the door", "pour the water", "turn on the light"]
ROWS = {"a": np.arange(40, dtype=np.float32).reshape(10, 4), "b": np.ones((3, 4), np.float32)}


@dataclass(frozen=True, kw_only=True)
class Described(Spec):
    """What describes nothing."""

    dimension: int = 4
    dtype: str = "float32"


@dataclass(frozen=True, kw_only=True)
class Found(Prediction):
    """A prediction with all that one may have."""

    start_s: float
    words: tuple[str, ...]
    values: NDArray[np.float32]


class Counting:
    """An encoder of texts by their lengths."""

    spec = Described(name="counting", label="test", revision=1)

    def tokens(self, text: str) -> list[int]:
        return list(text.encode())

    def encode(self, tokens: list[int]) -> NDArray[np.float32]:
        return np.float32([len(tokens), *tokens[:3]])


class Repeating(Engine):
    """A recogniser that repeats its first answer."""

    concurrency = 1
    parameters = {"engine": "repeating"}

    def answer(self, samples: NDArray[np.int16]) -> bytes:
        return b'{"said": "pour the water"}'

    def heard(self, answer: bytes) -> Heard:
        return Heard([Sentence(json.loads(answer)["said"], 0, 1)])


@dataclass(frozen=True)
class Cache:
    """What writes files into the working folder, and what reads them again, as a value to compare."""

    make: Callable[[], object]
    read: Callable[[], object]


SPEC = Described(name="described", label="test", revision=1)
SENTENCES = [
    Sentence("pour the water", 0.5, 1.25, 0.5, (Word("pour", 0.5, 0.75), Word("water", 1, 1.25, 0.25)), 0, "x")
]
TENSORS = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3), "loss": np.float64([0.5, 0.25])}
TABLE = {"shot": [0, 1, 2], "start_s": [0.0, 1.5, 2.25], "end_s": [1.5, 2.25, 7.0]}
SCORE = {"metrics": {"iou": {"value": 61.9, "per_video": {"a": 60.5, "b": 63.3}}}, "needs": [], "status": "present"}
PREDICTED = [Found(seed=0, split="test", video=v, start_s=1.5, words=("a", v), values=np.float32([1, 2])) for v in "ab"]


def _score() -> object:
    return read_score(Path("60s.json"))


def _fit() -> object:
    with loaded(Path("0.safetensors")) as tensors:
        return {name: tensor.tolist() for name, tensor in tensors.items()}


def _predictions() -> object:
    made, about = read_predictions(Path("all.parquet"), Found, "12345678")
    return [asdict(each) | {"values": each.values.tolist()} for each in made], about


def _bank() -> object:
    bank = Bank.open([Path("000")], SPEC)
    return {video: (bank[video].tolist(), asdict(bank.blocks[video][0])) for video in bank}


def _said() -> object:
    return recognise(_wav(), Repeating(), Path("answers"))[0]


@cache
def _wav() -> Path:
    folder = _kept.enter_context(TemporaryDirectory())
    return write_wav(Path(folder, "a.wav"), np.full(16_000, 100))


@cache
def _service() -> Service:
    """Return a language model that never says the same twice."""
    numbers = count()
    server = _kept.enter_context(Server(lambda _: completion(f"answer {next(numbers)}")).running())
    return Service(url=server.url, model="small", max_tokens=1, concurrency=1)


def _asked() -> object:
    questions: list[Conversation] = [[{"role": "user", "content": text}] for text in TEXTS]
    return ask(_service(), questions, Path("llm.sqlite"), what="questions")


_kept = ExitStack()
atexit.register(_kept.close)  # before the threads that serve are gone
CACHES = {
    "features": Cache(lambda: store.write(Path("000"), SPEC, ROWS, 1.0, sources={"a": "1", "b": "2"}), _bank),
    "texts": Cache(
        lambda: encode_texts(TEXTS, Counting(), Path("texts"), what="texts"),
        lambda: TextStore(Path("texts"), Counting.spec)(TEXTS).tolist(),
    ),
    "staged rows": Cache(
        lambda: write_arrays("a.npz", rows=ROWS["a"], k=np.arange(10)),
        lambda: {name: array.tolist() for name, array in read_arrays("a.npz").items()},
    ),
    "transcript": Cache(
        lambda: transcript.write("a.parquet", SENTENCES),
        lambda: transcript.read("a.parquet"),
    ),
    "table": Cache(
        lambda: write_table("a.parquet", _table()),
        lambda: (read_table("a.parquet").to_pydict(), read_table("a.parquet").schema.metadata[b"time_base"]),
    ),
    "recogniser's answers": Cache(_said, _said),
    "language model's answers": Cache(_asked, _asked),
    "predictions": Cache(
        lambda: write_predictions(Path("all.parquet"), Found, PREDICTED, spec="12345678", needs=(), selection="first"),
        _predictions,
    ),
    "fit": Cache(lambda: write_tensors("0.safetensors", TENSORS, save_file), _fit),
    "score": Cache(lambda: write_sealed("60s.json", SCORE), _score),
    "records": Cache(
        lambda: write_availability("000.json", [Record(video="a", status="present", duration_s=12.5, sha256="1")]),
        lambda: read_availability("000.json"),
    ),
}


def _table() -> Any:
    import pyarrow as pa

    return pa.table(TABLE).replace_schema_metadata({"time_base": "1/90000"})


def flip(name: str, path: str, at: int, bit: int) -> str:
    """Flip a bit of a file of a cache, and return what became of reading it: ``same`` or ``named``.

    Raises AssertionError where it is anything else.
    """
    files, expected = _made(name)
    content = bytearray(files[path])
    content[at] ^= 1 << bit
    case = f"{name}: bit {bit} of byte {at} of {path}"
    with TemporaryDirectory() as folder, chdir(folder):
        for other, whole in files.items():
            Path(other).parent.mkdir(parents=True, exist_ok=True)
            Path(other).write_bytes(bytes(content) if other == path else whole)
        try:
            read = CACHES[name].read()
        except SteplineError as error:
            line = str(error)
            top = Path(path).parts[0]
            assert "\n" not in line, f"{case}: {line}"
            assert top in line, f"{case}: {line} does not name {top}"
            return "named"
        except Exception as error:
            raise AssertionError(f"{case}: {type(error).__name__}: {error}") from error
        assert read == expected, f"{case}: {read}"
        return "same"


@cache
def _made(name: str) -> tuple[dict[str, bytes], object]:
    """Return the files of a cache, and what reading them gives."""
    with TemporaryDirectory() as folder, chdir(folder):
        CACHES[name].make()
        files = {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}
        return {path: content for path, content in files.items() if content}, CACHES[name].read()


def campaign(seed: int, n: int) -> dict[str, int]:
    """Do the cases of the seeds from ``seed`` on."""
    counts: Counter[str] = Counter()
    for each in range(seed, seed + n):
        draw = random.Random(each)
        name = draw.choice([*CACHES])
        files, _ = _made(name)
        path = draw.choice([*files])
        counts[f"{name}: {flip(name, path, draw.randrange(len(files[path])), draw.randrange(8))}"] += 1
    return dict(counts)
