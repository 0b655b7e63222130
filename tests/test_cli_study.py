"""The verbs that show a study's results."""

from pathlib import Path

import pytest

from stepline.cli import main


@pytest.mark.parametrize("verb", ["pairs", "figures", "examples", "durations"])
def test_a_study_that_is_not_known_is_one_line(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("config.yaml").write_text("demo: {}\n")
    assert main([verb, "nothing"]) == 2
    assert "study 'nothing' is not configured" in capsys.readouterr().err


def test_pairs_of_a_study_that_has_none_say_so() -> None:
    Path("config.yaml").write_text("demo: {text_encoders: [], video_encoders: []}\n")
    assert main(["--configfile", "config.yaml", "pairs", "demo"]) == 0
    assert "No pair has values." in Path("results/demo/pairs.md").read_text()
    assert len(Path("results/demo/pairs.csv").read_text().splitlines()) == 1


def test_a_release_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("config.yaml").write_text("demo: {text_encoders: [tfidf], video_encoders: []}\n")
    assert main(["--configfile", "config.yaml", "durations", "demo"]) == 2
    assert capsys.readouterr().err.startswith("error: ")
