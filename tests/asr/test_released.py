from pathlib import Path

import pytest

from stepline.asr.released import read
from stepline.asr.transcript import Sentence
from stepline.errors import ReleaseError


def test_released_files_are_cp1252_with_crlf(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("Sentence,Global start,Global end\r\nIt’s on.,20.61,21.25\r\n".encode("cp1252"))
    assert read(path) == (Sentence("It’s on.", 20.61, 21.25, engine="released"),)
    path.write_bytes(b"Sentence,Global start,Global end\r\n\x81,1,2\r\n")
    with pytest.raises(ReleaseError, match=r"a.csv: not cp1252 \(byte 34\)"):
        read(path)


@pytest.mark.parametrize("content", ["", "text,start,end\n", '"Sentence,Global start'])
def test_other_files_are_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(ReleaseError, match="a.csv.*remove it"):
        read(path)


@pytest.mark.parametrize(
    "line",
    [
        "A,1",
        '"A,1,2',
        'A,1,"2',
        f'"{"A" * 200_000}',
        "A,one,2",
        "A,2,1",
        "A,-1,2",
        "A,nan,2",
        "A,1,inf",
        "A,5,6\nB,4,7",
    ],
    ids=lambda line: line[:20],
)
def test_a_line_that_is_no_sentence_is_named_in_one_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"Sentence,Global start,Global end\n{line}\n")
    with pytest.raises(ReleaseError, match=r"a.csv, line [23]: .*remove it") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_sentences_may_overlap(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Sentence,Global start,Global end\na,0,9\nb,1,2\nc,1,1\n")
    assert [(s.text, s.start_s, s.end_s) for s in read(path)] == [("a", 0, 9), ("b", 1, 2), ("c", 1, 1)]
