"""Texts of steps, as Table 3 has them."""

from dataclasses import replace

import pytest

from stepline.benchmarks.htstep import texts
from stepline.benchmarks.htstep.kinds import INPUTS
from stepline.benchmarks.htstep.texts import MOST_SENTENCES, sentences, whole, words
from stepline.datasets.htstep import Step
from tests.benchmarks.htstep.conftest import plan


def step(
    headline: str = "Boil water", paragraph: str = "Fill a pot. Then, heat it!", activity: str = "Make Tea"
) -> Step:
    return Step(id=3, activity=activity, variation="", index=1, headline=headline, paragraph=paragraph)


@pytest.mark.parametrize(
    ("made_of", "text", "listed"),
    [
        ("headline", "Boil water", ["Boil water"]),
        (
            "headline_paragraph",
            "Boil water. Fill a pot. Then, heat it!",
            ["Boil water", "Fill a pot.", "Then, heat it!"],
        ),
        ("activity_headline", "Make Tea: Boil water", ["Make Tea: Boil water"]),
        (
            "activity_headline_paragraph",
            "Make Tea: Boil water. Fill a pot. Then, heat it!",
            ["Make Tea: Boil water", "Make Tea: Fill a pot.", "Make Tea: Then, heat it!"],
        ),
        ("paragraph", "Fill a pot. Then, heat it!", ["Fill a pot.", "Then, heat it!"]),
        (
            "activity_paragraph",
            "Make Tea: Fill a pot. Then, heat it!",
            ["Make Tea: Fill a pot.", "Make Tea: Then, heat it!"],
        ),
    ],
)
def test_texts_of_table_3(made_of: str, text: str, listed: list[str]) -> None:
    assert whole(step(), made_of) == text
    assert sentences(step(), made_of) == listed


def test_a_headline_with_a_full_stop_keeps_it() -> None:
    assert whole(step("Boil water."), "headline") == "Boil water."
    assert whole(step("Boil water."), "headline_paragraph") == "Boil water. Fill a pot. Then, heat it!"
    for asked in ("Ready?", "Wait!"):
        assert whole(step(asked), "headline_paragraph").startswith(f"{asked} Fill")


@pytest.mark.parametrize("made_of", INPUTS)
def test_without_a_paragraph_there_is_the_headline(made_of: str) -> None:
    prefix = "Make Tea: " if "activity" in made_of else ""
    assert whole(step(paragraph=""), made_of) == f"{prefix}Boil water"
    assert sentences(step(paragraph=""), made_of) == [f"{prefix}Boil water"]


@pytest.mark.parametrize("made_of", INPUTS)
def test_what_is_said_is_of_no_activity(made_of: str) -> None:
    said = step("pour it in", "", "")
    assert whole(said, made_of) == "pour it in"
    assert sentences(said, made_of) == ["pour it in"]


def test_sentences_end_with_a_mark_before_a_space_and_are_28_at_most() -> None:
    assert sentences(step(paragraph="Use 1.5 l; stir.\nWait!"), "paragraph") == ["Use 1.5 l;", "stir.", "Wait!"]
    many = " ".join(f"Do {n}." for n in range(40))
    for made_of in ("paragraph", "headline_paragraph"):
        assert len(sentences(step(paragraph=many), made_of)) == MOST_SENTENCES == 28
    assert sentences(step(paragraph=many), "headline_paragraph")[:2] == ["Boil water", "Do 0."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Don't over-boil, it!", ["don't", "over", "boil", "it"]), ("...", ["..."]), ("", [""])],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.usefixtures("releases")
def test_a_tower_is_recorded_with_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "with_weights", lambda tower: replace(tower, weights_sha256=(("w", "0a"),)))
    assert texts.spec(plan(), "mpnet").weights_sha256 == (("w", "0a"),)
