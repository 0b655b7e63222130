"""Files that are no tokenizers."""

from pathlib import Path

import pytest

from stepline.backbones import tokens
from stepline.errors import StoreError
from tests.backbones.models import small_tokenizer


@pytest.mark.parametrize("content", [b"", b"<html>", b"{}", b'{"model": {"type": "BPE"}}', b"\xff"])
def test_a_file_that_is_no_tokenizer_is_one_line(content: bytes) -> None:
    path = Path("tokenizer.json")
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"^tokenizer.json is not a tokenizer: .*: remove it$"):
        tokens.read(path, 9)


def test_a_tokenizer_cuts_texts() -> None:
    small_tokenizer().save("tokenizer.json")
    assert tokens.read(Path("tokenizer.json"), 4).encode("an an an an").ids == [298, 1, 1, 299]
