"""Differences between entries: the same videos on both sides, what is missing, and what few videos can say."""

import csv
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.io import write_json
from stepline.needs import Need
from stepline.runs.pairs import write_pairs
from tests.benchmark.tiny import Tiny, declared, tiny, write_releases

THREE, DRAWN, FITTED = ["three", None], ["drawn", None], ["fitted", None]
WITHIN = {"error": {"a": 20.0, "b": 30.0, "c": 10.0}, "near": {"a": 1.0, "b": 2.0}}
VIDEOS = "abcdefgh"


def planned(folder: Path, *asked: list[Any], **options: Any) -> Tiny:
    write_releases()
    return tiny(folder, declared(pairs=list(asked)), **{"releases": ["first"], **options})


def write_score(
    entry: str, metrics: dict[str, dict[str, float]], needs: tuple[str, ...] = (), **weights: float
) -> None:
    found = {
        metric: {"per_video": values, "weights": {video: weights.get(video, 1.0) for video in values}}
        for metric, values in metrics.items()
    }
    write_json(paths.scores("tiny", "first", entry, "all"), {"metrics": found, "needs": list(needs)})


def lines() -> list[dict[str, str]]:
    with open("results/tiny/pairs.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def text() -> str:
    return Path("results/tiny/pairs.md").read_text(encoding="utf-8")


def test_a_difference_is_over_the_videos_that_both_have(tmp_path: Path) -> None:
    write_score("three", {"error": WITHIN["error"]})
    write_score("drawn", {"error": {"b": 25.0, "c": 13.0, "d": 90.0}, "near": {"b": 1.0}})
    write_pairs(planned(tmp_path, THREE + DRAWN))
    (found,) = lines()
    assert (found["table"], found["release"], found["metric"]) == ("1", "first", "error")
    assert (found["difference"], found["n_videos"], found["ahead"]) == ("1.0000", "2", "1")
    assert (found["ci_low"], found["ci_high"]) == ("-3.0000", "5.0000")
    assert "## Table 1, release first\n" in text()
    share = float(found["share_above"])
    assert share == pytest.approx(0.75, abs=0.05), "of two videos with the differences 5 and -3"
    assert f"| Three, baseline | Drawn | Error | +1.00 | -3.00 to 5.00 | {100 * share:.2f} % | 1 of 2 |" in text()
    assert "missing" not in text()


def test_a_window_stands_beside_the_method_and_a_star_beside_one_that_sees_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tiny, "contexts", lambda self, table, line: [(180.0, 180.0), (60.0, 60.0)])
    for entry in ("three", "four"):
        for context, value in (("60s", 1.0), ("180s", 3.0)):
            found = {"per_video": {"a": value}, "weights": {"a": 1.0}}
            write_json(paths.scores("tiny", "first", entry, context), {"metrics": {"error": found}, "needs": []})
    write_pairs(planned(tmp_path, ["three", 180, "four", 60]))
    (line,) = lines()
    assert (line["table"], line["first_context_s"], line["second_context_s"]) == ("1", "180", "60")
    assert "| Three, baseline, 3 min | Four, 1 min * | Error | +2.00 |  |  | 1 of 1 |" in text()


def test_a_pair_is_compared_by_every_metric_that_both_can_have(tmp_path: Path) -> None:
    write_score("drawn", WITHIN)
    write_score("fitted", {"error": {video: value + 5 for video, value in WITHIN["error"].items()}, "near": {"a": 1.0}})
    write_score("three", WITHIN)
    made = planned(tmp_path, DRAWN + FITTED, THREE + DRAWN)
    vars(made)["_missing"] = {("fitted", "first"): ()}
    write_pairs(made)
    assert [(each["first"], each["metric"], each["difference"], each["ahead"]) for each in lines()] == [
        ("drawn", "error", "-5.0000", "0"),
        ("drawn", "near", "0.0000", "0"),
        ("three", "error", "0.0000", "0"),
    ]


def test_of_sides_in_two_tables_the_metrics_of_the_first_are_compared(tmp_path: Path) -> None:
    for entry in ("drawn", "fitted"):
        write_score(entry, WITHIN)
    write_releases()
    line = {"title": "Others", "metrics": ["error"], "lines": [{"entry": "fitted", "method": "Fitted"}]}
    content = declared(pairs=[DRAWN + FITTED, FITTED + DRAWN], tables={"table2": line})
    del content["tables"]["table1"]["lines"][2]
    made = tiny(tmp_path, content, releases=["first"])
    vars(made)["_missing"] = {("fitted", "first"): ()}
    write_pairs(made)
    assert [(each["table"], each["metric"]) for each in lines()] == [("1", "error"), ("1", "near"), ("2", "error")]


def test_videos_count_as_they_do_in_the_score(tmp_path: Path) -> None:
    for entry, value, weight in (("three", 10.0, 3.0), ("drawn", 6.0, 1.0)):
        write_score(entry, {"error": {"a": value, "b": 6.0}}, a=weight)
    write_pairs(planned(tmp_path, THREE + DRAWN))
    assert lines()[0]["difference"] == "3.0000", "as in the score of the first side"


def test_the_interval_is_drawn_as_configured(tmp_path: Path) -> None:
    write_score("three", {"error": {video: place**2 for place, video in enumerate(VIDEOS)}})
    write_score("drawn", {"error": dict.fromkeys(VIDEOS, 0.0)})
    found = []
    for changed in ({}, {"bootstrap_seed": 1}, {"bootstrap_samples": 100}):
        write_pairs(planned(tmp_path, THREE + DRAWN, metrics=changed))
        found += [tuple(lines()[0].values())]
    assert len({*found}) == 3


def test_a_pair_without_a_value_says_what_it_needs_and_has_no_difference(tmp_path: Path) -> None:
    write_score("drawn", {}, needs=("videos:first",))
    write_pairs(planned(tmp_path, DRAWN + FITTED))
    assert {each["needs"] for each in lines()} == {"videos:first;features:net/first"}
    assert [each["difference"] for each in lines()] == ["", ""]
    assert all("results/tiny/pairs.csv" in each["command"] for each in lines())
    assert "No pair has values." in text()
    assert text().count("| Drawn, minus Fitted | videos:first, features:net/first | `stepline fetch first/videos") == 1


def test_a_metric_that_is_missing_something_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = [Need("java")]
    monkeypatch.setattr(Tiny, "missing_of", lambda self, metric: needs if metric == "near" else [])
    for entry in ("drawn", "fitted", "three"):
        write_score(entry, WITHIN)
    made = planned(tmp_path, DRAWN + FITTED, DRAWN + THREE)
    vars(made)["_missing"] = {("fitted", "first"): ()}
    write_pairs(made)
    assert [(each["second"], each["metric"], each["difference"], each["needs"]) for each in lines()] == [
        ("fitted", "error", "0.0000", ""),
        ("fitted", "near", "", "java"),
        ("three", "error", "0.0000", ""),
    ], "a metric that one side cannot have needs nothing"


@pytest.mark.parametrize(("n", "least"), [(2, "2/4 = 0.500"), (6, "2/64 = 0.031"), (7, None)])
def test_few_videos_are_no_test(tmp_path: Path, n: int, least: str | None) -> None:
    for entry in ("three", "drawn"):
        write_score(entry, {"error": dict.fromkeys(VIDEOS[:n], 1.0)})
    write_score("four", {"error": {"a": 1.0}})
    write_pairs(planned(tmp_path, [*THREE, "four", None], THREE + DRAWN))
    assert ("too few videos for significance tests" in text()) == (least is not None)
    assert "| Three, baseline | Drawn | Error | 0.00 | 0.00 to 0.00 |" in text()
    assert least is None or f"videos had the same sign, a two-sided sign test would give p = {least}" in text()


def test_a_benchmark_without_pairs_says_so_and_a_score_that_came_later_is_waited_for(tmp_path: Path) -> None:
    write_pairs(planned(tmp_path / "none"))
    assert lines() == []
    assert "No pair has values." in text()
    write_score("three", WITHIN)
    write_pairs(planned(tmp_path / "one", THREE + DRAWN))
    assert [each["needs"] for each in lines()] == ["score:drawn"]
