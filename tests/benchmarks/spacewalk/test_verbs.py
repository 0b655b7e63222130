"""The verbs that show results of studies in Spacewalk-18's form."""

from pathlib import Path

import pytest

from stepline.cli import main

VERBS = ("figures", "durations", "pairs", "examples", "results")


@pytest.mark.parametrize(
    ("verb", "study", "line"),
    [
        *((verb, "nothing", "study 'nothing' is not known; choose from spacewalk, demo") for verb in VERBS),
        *((verb, "pss", "study 'pss' is not known; choose from spacewalk, demo") for verb in VERBS[:2]),
        ("examples", "oepp", "oepp has no page of examples"),
    ],
)
def test_a_study_that_does_not_have_it_is_one_line(
    verb: str, study: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("config.yaml").write_text("demo: {}\npss: {}\noepp: {}\n")
    assert main([verb, study]) == 2
    assert capsys.readouterr().err.startswith(f"error: {line}")


def test_a_release_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("config.yaml").write_text("demo: {text_encoders: [tfidf], video_encoders: []}\n")
    assert main(["--configfile", "config.yaml", "durations", "demo"]) == 2
    assert capsys.readouterr().err.startswith("error: ")
