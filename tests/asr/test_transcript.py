from pathlib import Path

import pytest

from stepline.asr.transcript import Sentence, read, text_between, write
from stepline.errors import ReleaseError


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
    with pytest.raises(ReleaseError, match="not utf-8"):
        read(path)


@pytest.mark.parametrize("content", ["", "text,start,end\n", "Sentence,Global start,Global end\nA,1\n"])
def test_other_files_are_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(ReleaseError, match="a.csv"):
        read(path)


def test_text_between_keeps_whole_sentences_and_drops_those_that_only_touch() -> None:
    sentences = (Sentence("a", 0, 2), Sentence("b", 2, 4), Sentence("c", 4, 6))
    assert text_between(sentences, 2, 4) == "b"
    assert text_between(sentences, 1.9, 4.1) == "a b c"
    assert text_between(sentences, 10, 20) == ""
