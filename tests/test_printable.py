import pytest

from stepline.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;TITLE\x07\x1b[2J", r"\x1b]0;TITLE\x07\x1b[2J"),
        ("a\nmade:\r\tb\x0b\x0c\x1c\x85\u2028\u2029c", r"a\nmade:\r\tb\x0b\x0c\x1c\x85\u2028\u2029c"),
        ("\x00\x7f\x9b31m", r"\x00\x7f\x9b31m"),
        ("\u202egpj.\u2066exe\u200e\ufeff\u00ad", r"\u202egpj.\u2066exe\u200e\ufeff\xad"),
        ("\udcff\ud800", r"\udcff\ud800"),
    ],
)
def test_what_breaks_or_reorders_a_line_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(f"😀{text}") == f"😀{shown}"


@pytest.mark.parametrize(
    "text", ["", "naïve", "e\u0301", "お湯\u3000を", "👩\u200d🍳 1\ufe0f", "می\u200cخواهم", "क\u094dष", "a\u00a0b"]
)
def test_text_of_any_script_stays(text: str) -> None:
    assert printable(text) == text
