from pathlib import Path

import pytest

from stepline import cli
from stepline.errors import ConfigError
from stepline.io import read_json, write_sealed
from stepline.runs.accept import accept
from stepline.runs.explain import explain
from stepline.runs.verbs import Verbs
from tests.benchmark.tiny import Tiny, tiny, write_releases

RECORD = Path("results/tiny/predictions/first/three/all.json")


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """The benchmark with predictions, and a change of the source of all its kinds since."""
    made = tiny(tmp_path / "tiny", entries={"drawn": {"seeds": [1]}})
    write_releases()
    for release, entry in (("first", "three"), ("second", "three"), ("first", "four"), ("first", "drawn")):
        Verbs(made).predict(release, entry, "all")
    assert list(made.stale()) == []
    monkeypatch.setattr(type(made), "source", classmethod(lambda cls, kind: "5" * 8))
    return made


def test_accepted_predictions_are_not_named_again_and_keep_what_made_them(
    changed: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_json(RECORD)
    assert accept(type(changed), "tiny", "constant") == 3
    assert read_json(RECORD)["method"] == before["method"] | {"accepted": "5" * 8}
    (left,) = changed.stale()
    assert "with other source of drawn: " in left
    Verbs(changed).score("first", "three", "all")
    Verbs(changed).table("table1")
    assert f"source {before['method']['source']}, the same as 55555555" in explain(
        Path("results/tiny/table1.csv"), "three", "all", "first"
    )
    monkeypatch.setattr(type(changed), "source", classmethod(lambda cls, kind: "6" * 8))
    assert "of constant, drawn: " in next(changed.stale())


def test_what_is_of_the_source_at_hand_needs_no_acceptance_and_accepted_scores_keep_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tiny(tmp_path / "tiny")
    write_releases()
    Verbs(made).predict("first", "three", "all")
    Verbs(made).score("first", "three", "all")
    score = Path("results/tiny/scores/first/three/all.json")
    before, time = read_json(score), score.stat().st_mtime_ns
    assert accept(type(made), "tiny", "constant") == accept(type(made), "tiny", "scores") == 0
    assert "accepted" not in read_json(RECORD)["method"]
    monkeypatch.setattr(type(made), "scoring_source", classmethod(lambda cls: "5" * 8))
    assert len(list(made.stale())) == 1
    assert accept(type(made), "tiny", "scores") == 1
    assert (read_json(score), score.stat().st_mtime_ns) == (before | {"accepted": "5" * 8}, time)
    assert list(made.stale()) == []
    write_sealed(score, {key: each for key, each in before.items() if key != "source"})
    assert accept(type(made), "tiny", "scores") == 0, "its source is not on record"


def test_all_kinds_and_scores_are_accepted_at_once(changed: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    Verbs(changed).score("first", "three", "all")
    monkeypatch.setattr(type(changed), "scoring_source", classmethod(lambda cls: "5" * 8))
    assert len(list(changed.stale())) == 1
    assert accept(type(changed), "tiny") == 5
    assert list(changed.stale()) == []


def test_a_kind_of_which_nothing_is_predicted_is_one_line(changed: Tiny) -> None:
    for kind in ("people", "konstant"):
        with pytest.raises(ConfigError, match=f"^kind '{kind}' of tiny is not known; choose from constant, drawn, fit"):
            accept(type(changed), "tiny", kind)


def test_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    Path("config.yaml").write_text("pss: {}\n")
    Path("results/pss/predictions").mkdir(parents=True)
    assert cli.main(["accept", "pss", "uniform"]) == 0
    assert cli.main(["accept"]) == 0
    assert capsys.readouterr().out == "pss: 0 files accepted\n" * 2
    assert cli.main(["accept", "ps", "uniform"]) == 2
    assert capsys.readouterr().err.startswith("error: study 'ps' is not known; choose from ")
