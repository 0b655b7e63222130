"""Pairs of entries: the same recordings on both sides, what is missing, and what makes them again."""

import csv
from pathlib import Path
from typing import Any

import pytest
from stepline.benchmarks.spacewalk.entries import declared_pairs, load_entries
from stepline.benchmarks.spacewalk.pairs import FEW, write_pairs
from stepline.benchmarks.spacewalk.plan import Plan

from stepline import paths
from stepline.benchmarks.spacewalk import entries, presentation
from stepline.config import validate
from stepline.io import write_json

TFIDF, LINEAR, RANK = "2a-tfidf-zero-shot", "2a-linear-in-time", "2a-sample-rank"
SETTINGS: dict[str, Any] = {"text_encoders": ["tfidf"], "releases": ["v2"]}
WITHIN = {"accuracy": {"a": 20.0, "b": 30.0, "c": 10.0}, "map": {"a": 1.0, "b": 2.0}}


def planned(monkeypatch: pytest.MonkeyPatch, *pairs: Any, **changes: Any) -> Plan:
    monkeypatch.setattr(presentation, "declared_pairs", lambda: list(pairs))
    return Plan.of(validate({"spacewalk": SETTINGS | changes}), "spacewalk")


def write_score(entry: str, context: str, metrics: dict[str, dict[str, float]], needs: list[str] | None = None) -> None:
    found = {metric: {"per_video": values} for metric, values in metrics.items()}
    write_json(paths.scores("spacewalk", "v2", entry, context), {"metrics": found, "needs": needs or []})


def lines() -> list[dict[str, str]]:
    with open("results/spacewalk/pairs.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_difference_is_over_the_recordings_that_both_have(monkeypatch: pytest.MonkeyPatch) -> None:
    write_score(TFIDF, "300s", WITHIN)
    write_score(LINEAR, "all", {"accuracy": {"b": 25.0, "c": 13.0, "d": 90.0}})
    write_pairs(planned(monkeypatch, (TFIDF, 300, LINEAR, None)))
    (found,) = lines()
    assert (found["difference"], found["n_videos"], found["ahead"]) == ("1.0000", "2", "1")
    assert (found["ci_low"], found["ci_high"]) == ("-3.0000", "5.0000")
    assert (found["metric"], found["first_context_s"], found["second_context_s"]) == ("accuracy", "300", "")
    text = Path("results/spacewalk/pairs.md").read_text()
    row = "| TF-IDF, zero-shot, 5 min | Linear in time, baseline * | Acc | +1.00 | -3.00 to 5.00 |"
    assert row in text
    assert FEW in text
    assert "missing" not in text


def test_one_entry_is_compared_with_itself_at_another_window_by_every_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    write_score(TFIDF, "300s", WITHIN)
    write_score(TFIDF, "60s", {"accuracy": {"a": 25.0, "b": 35.0, "c": 15.0}, "map": {"a": 1.0, "b": 2.0}})
    write_pairs(planned(monkeypatch, (TFIDF, 300, TFIDF, 60)))
    assert [(each["metric"], each["difference"], each["share_above"], each["ahead"]) for each in lines()] == [
        ("accuracy", "-5.0000", "0.0000", "0"),
        ("map", "0.0000", "0.0000", "0"),
    ]


def test_a_pair_without_a_value_says_what_it_needs_and_has_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    write_score(TFIDF, "180s", {}, needs=["videos:spacewalk"])
    made = planned(monkeypatch, (TFIDF, 180, "2a-senttransformer-zero-shot", 180))
    write_pairs(made)
    assert {each["needs"] for each in lines()} == {
        "videos:spacewalk;config:spacewalk.text_encoders=mpnet;weights:mpnet"
    }
    assert [each["difference"] for each in lines()] == ["", ""]
    assert all("results/spacewalk/pairs.csv" in each["command"] for each in lines())
    text = Path("results/spacewalk/pairs.md").read_text()
    assert "No pair has values." in text
    assert text.count("| TF-IDF, zero-shot, 3 min, less SentTransformer, zero-shot, 3 min |") == 1
    assert presentation.pair_files(made) == [paths.scores("spacewalk", "v2", TFIDF, "180s")]


def test_a_pair_stands_only_where_both_are_listed_at_those_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = ("2a-minilm-zero-shot", 180, TFIDF, 180), (TFIDF, 7, LINEAR, None), (TFIDF, 60, LINEAR, None)
    made = planned(monkeypatch, *pairs)
    assert [(one.entry.id, one.context, other.context) for one, other in presentation.pairs(made)] == [
        (TFIDF, "60s", "all")
    ]
    releases = [one.release for one, _ in presentation.pairs(planned(monkeypatch, pairs[-1], releases=["v0", "v2"]))]
    assert releases == ["v0", "v2"]


def test_pairs_are_made_again_for_scoring_options_and_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = (TFIDF, 300, "2a-senttransformer-zero-shot", 300)
    before = presentation.pair_params(planned(monkeypatch, pairs))
    assert before == presentation.pair_params(planned(monkeypatch, pairs, last_layer={"epochs": 3}))
    assert before != presentation.pair_params(planned(monkeypatch, pairs, metrics={"bootstrap_seed": 9}))
    assert before != presentation.pair_params(planned(monkeypatch, pairs, text_encoders=["tfidf", "mpnet"]))


def test_declared_pairs_are_of_declared_entries_of_one_table() -> None:
    config = validate({"spacewalk": {}})["spacewalk"]
    known = {entry.id: entry for entry in load_entries("spacewalk", config)}
    for first, first_s, second, second_s in declared_pairs():
        assert known[first].table == known[second].table
        assert (first, first_s) != (second, second_s)
        assert first_s in known[first].windows(config)
        assert second_s in known[second].windows(config)
    assert len(set(declared_pairs())) == len(entries._declared()["pairs"])
