import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stepline.asr.transcript import Sentence, Word, read, write
from stepline.errors import StoreError

ONE = Sentence(
    'Open the "red" bag, please.', 0.1 + 0.2, 1 / 3, 0.75,
    (Word("Open", 0.30000000000000004, 0.31, 1.0), Word("it’s", 0.31, 1 / 3)), chunk=0, engine="deepgram",
)  # fmt: skip
TWO = Sentence("Café, NA.", 2.0, 28_799.999, chunk=47, engine="pocketsphinx")


def test_what_is_written_is_read_unrounded(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [ONE, TWO])
    assert read(tmp_path / "a.parquet") == (ONE, TWO)
    write(tmp_path / "empty.parquet", [])
    assert read(tmp_path / "empty.parquet") == ()


def test_the_file_has_the_documented_columns(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [ONE])
    schema = pq.read_schema(tmp_path / "a.parquet")
    said = {"text": "string", "start_s": "double", "end_s": "double", "confidence": "double"}
    assert {f.name: str(f.type) for f in schema if f.name != "words"} == said | {"chunk": "int32", "engine": "string"}
    assert {f.name: str(f.type) for f in schema.field("words").type.value_type} == said
    assert pa.types.is_list(schema.field("words").type)


def test_equal_sentences_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.parquet", [ONE, TWO])
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"end_s": 1.9}, "times must ascend"),
        ({"start_s": 0.2}, "times must ascend"),
        ({"start_s": -0.1}, "times must ascend"),
        ({"start_s": math.nan}, "times must ascend"),
        ({"end_s": math.inf}, "times must ascend"),
        ({"words": (Word("a", 2, 3), Word("b", 1, 4))}, "times must ascend"),
        ({"words": (Word("a", 3, 2),)}, "times must ascend"),
        ({"confidence": 1.1}, "confidence must be in"),
        ({"confidence": math.nan}, "confidence must be in"),
        ({"words": (Word("a", 2, 3, -0.1),)}, "confidence must be in"),
    ],
)
def test_numbers_that_cannot_be_are_neither_written_nor_read(
    changes: dict[str, Any], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, wrong = tmp_path / "a.parquet", [ONE, replace(TWO, **changes)]
    with pytest.raises(ValueError, match=f"sentence 1: {problem}"):
        write(path, wrong)
    assert not path.exists()
    with monkeypatch.context() as context:
        context.setattr("stepline.asr.transcript._problem", lambda _: "")
        write(path, wrong)
    with pytest.raises(StoreError, match=f"a.parquet: sentence 1: {problem}.*remove it"):
        read(path)


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with pytest.raises(StoreError, match="a.parquet is absent"):
        read(path)
    write(path, [ONE, TWO])
    whole = path.read_bytes()
    for damaged in (b"", whole[:-20], b"Sentence,Global start,Global end\n"):
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match="a.parquet is damaged") as caught:
            read(path)
        assert "\n" not in str(caught.value)
    pq.write_table(pa.table({"text": ["a"], "start_s": [0.0]}), path)
    with pytest.raises(StoreError, match="a.parquet is not a transcript"):
        read(path)


def test_sentences_may_overlap(tmp_path: Path) -> None:
    sentences = (Sentence("a", 0, 9), Sentence("b", 1, 2), Sentence("c", 1, 1))
    write(tmp_path / "a.parquet", sentences)
    assert read(tmp_path / "a.parquet") == sentences
