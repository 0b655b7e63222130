from pathlib import Path

import pytest

from stepline.asr.transcript import Sentence, read, write
from stepline.errors import StoreError


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    sentences = (Sentence('Open the "red" bag, please.', 0.5, 1.25), Sentence("Café, NA.", 2.0, 3.999))
    write(tmp_path / "a.csv", sentences)
    content = (tmp_path / "a.csv").read_bytes()
    assert content.startswith(b"Sentence,Global start,Global end\n")
    assert b"\r" not in content
    assert read(tmp_path / "a.csv") == (sentences[0], Sentence("Café, NA.", 2.0, 4.0))


def test_released_files_are_cp1252_with_crlf(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("Sentence,Global start,Global end\r\nIt’s on.,20.61,21.25\r\n".encode("cp1252"))
    assert read(path, encoding="cp1252") == (Sentence("It’s on.", 20.61, 21.25),)
    with pytest.raises(StoreError, match="not utf-8"):
        read(path)


@pytest.mark.parametrize("content", ["", "text,start,end\n", '"Sentence,Global start'])
def test_other_files_are_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(StoreError, match="a.csv.*remove it"):
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
    with pytest.raises(StoreError, match=r"a.csv, line [23]: .*remove it") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_sentences_may_overlap(tmp_path: Path) -> None:
    sentences = (Sentence("a", 0, 9), Sentence("b", 1, 2), Sentence("c", 1, 1))
    write(tmp_path / "a.csv", sentences)
    assert read(tmp_path / "a.csv") == sentences
