import json
from pathlib import Path

import pytest

from stepline.errors import StoreError
from stepline.io import read_json, write_json, write_sealed
from stepline.seal import KEY, sealed_below, unsealed


def test_each_byte_counts_and_the_value_comes_back() -> None:
    value = {"value": 61.9, "of": ["a", "b"]}
    write_sealed("score.json", value)
    assert read_json("score.json") == value
    whole = Path("score.json").read_bytes()
    assert json.loads(whole)[KEY]
    for at in range(len(whole)):
        Path("score.json").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            assert read_json("score.json") == value
        except StoreError as error:
            assert str(error).startswith("score.json is ")  # noqa: PT017


def test_a_digit_that_changes_is_found() -> None:
    write_sealed("score.json", {"value": 61.9})
    Path("score.json").write_text(Path("score.json").read_text().replace("61.9", "71.9"))
    with pytest.raises(StoreError, match=r"score.json is damaged .*: remove it and run the same command again"):
        read_json("score.json")


def test_a_file_of_an_earlier_version_is_read() -> None:
    write_json("score.json", {"value": 61.9})
    assert read_json("score.json") == {"value": 61.9}
    assert unsealed(b'{"a": 1}\n') == b'{"a": 1}\n'


def test_bytes_come_back_from_above_their_seal() -> None:
    for content in (b"", b"a", b"a\n", b"a\nb"):
        assert unsealed(sealed_below(content)) == content
    with pytest.raises(ValueError, match="have changed since it was written"):
        unsealed(sealed_below(b"abc").replace(b"b", b"c", 1))
