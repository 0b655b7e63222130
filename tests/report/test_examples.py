"""The page of examples: marked words, escaped text, nothing from the network."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from stepline.report.examples import Answer, Clip, Example, Examples, Shown, marked, words, write_examples

HOSTILE = "<script>alert('x')</script> & \"co\""


def page(note: str = "") -> Examples:
    clip = Clip(
        title="The window",
        said=marked(f"Release the bolt {HOSTILE}", {"bolt"}, {"release", "script"}),
        pictures=[("data:image/jpeg;base64,AA==", "1:02")],
        note=HOSTILE,
        verdict=HOSTILE,
    )
    silent = Clip(title="Candidate 1", said=[])
    answer = Answer(title="1: step 2", caption=marked(HOSTILE, ()), narration=[], score="0.5", right=True)
    example = Example(title=HOSTILE, margin=HOSTILE, clips=[clip, silent], answers=[answer], command=HOSTILE)
    methods = [
        Shown(title=HOSTILE, anchor="a", facts=HOSTILE, successes=[example]),
        Shown(title="None", anchor="b", facts="", reason="no scores"),
    ]
    return Examples(title=HOSTILE, note=note, tasks=[("Steps", HOSTILE, methods)], missing=[(HOSTILE, "x:y", HOSTILE)])


def written(made: Examples) -> str:
    write_examples(made, "examples.html")
    return Path("examples.html").read_text(encoding="utf-8")


def test_all_text_is_escaped_and_nothing_comes_from_the_network() -> None:
    text = written(page(note=HOSTILE))
    assert "<script>alert" not in text
    assert text.count("&lt;script&gt;") >= 13
    assert '&lt;<mark class="false">script</mark>&gt;' in text
    assert not re.findall(r'(?:src|href)="(?!data:image/|#)', text)
    assert "url(" not in text
    assert all(re.search(r'alt="[^"]+"', tag) for tag in re.findall(r"<img [^>]*>", text))


def test_successes_and_failures_silence_and_reasons_are_said() -> None:
    text = written(page())
    assert text.count('<article class="success">') == 1
    assert '<article class="failure">' not in text
    assert "<h4>Failures</h4>" not in text
    assert "No speech." in text
    assert '<th scope="row">1: step 2, true</th><td class="number">0.5</td>' in text
    assert '<h3 id="b">None</h3>' in text
    assert "no scores" in text
    assert text.count('<p class="facts">Timeline: <code class="command">') == 1


def test_the_same_page_gives_the_same_bytes_and_parts_that_are_not_there_are_left_out() -> None:
    assert written(page()) == written(page())
    empty = written(Examples(title="x", note="", tasks=[]))
    assert "missing" not in empty


def test_words_are_those_that_say_something() -> None:
    assert words("The EV-2 isn't at a Bolt, I'm told: P6.") == {"ev", "isn", "bolt", "told", "p6"}


def test_a_word_is_marked_by_what_it_is_shared_with() -> None:
    assert marked("Bolts, bolt the Arm", {"bolt", "arm"}, {"arm", "the"}) == [
        ("Bolts, ", ""),
        ("bolt", "true"),
        (" ", ""),
        ("the", "false"),
        (" ", ""),
        ("Arm", "both"),
    ]
    assert marked("", {"bolt"}) == []


@given(st.text(alphabet="ab '.<é\n", max_size=40), st.sets(st.sampled_from(["a", "ab", "b", "é"])))
def test_the_pieces_are_the_text_and_only_the_words_are_marked(text: str, true: set[str]) -> None:
    pieces = marked(text, true)
    assert "".join(piece for piece, _ in pieces) == text
    assert {piece.lower() for piece, kind in pieces if kind} <= true
    assert all(piece for piece, _ in pieces)
