"""Rows: which there are, in what order, each once."""

from pathlib import Path

import pytest

from stepline import tables
from stepline.benchmark.words import Sees
from stepline.errors import StoreError
from tests.tables.numbers import METRICS, PAPER, SAMPLE_LIST, WINDOW, build, number, row, score


def test_a_reference_is_copied_on_every_release(paper: Path) -> None:
    rows = [r for r in build([number(), number(release="v2")], paper) if r.method == "Human"]
    assert [(r.release, r.status, r.value, r.paper, r.difference) for r in rows] == [
        ("v0", "reference", 67.0, 67.0, None),
        ("v2", "reference", 67.0, 67.0, None),
    ]
    assert [r.note for r in rows] == ["copied from the paper", "copied from the paper, computed on v0"]


def test_a_line_that_can_have_no_number_is_left_out(paper: Path) -> None:
    accuracy = {"accuracy": score()["metrics"]["accuracy"]}
    asked = [
        number(),
        number(
            entry="people",
            method="Human",
            modality="V+L",
            setting="reference",
            metric="map",
            reference=True,
            score=None,
        ),
        number(entry="guess", method="Guess", metric="map", score=score(metrics=accuracy)),
    ]
    assert {r.entry for r in build(asked, paper)} == {"", "minilm"}


def test_what_a_method_sees_is_an_oracle_where_a_word_is() -> None:
    seen = [(WINDOW, Sees("train", "the training recordings")), (), (WINDOW, SAMPLE_LIST)]
    rows = build([number(method=str(place), sees=words) for place, words in enumerate(seen)], None)
    assert [tables.is_oracle(r.sees) for r in rows] == [False, False, True]
    assert [tables.sees_text(r.sees) for r in rows] == [
        "its window, the training recordings",
        "nothing",
        "its window, THE SAMPLE LIST",
    ]
    assert rows[2].inputs == ("window", "sample_list")


def test_every_number_of_the_paper_is_a_line_on_every_release(paper: Path) -> None:
    rows = build([number(), number(release="v1")], paper)
    for release in ("v0", "v1"):
        keys = {(r.method, r.context_s, r.metric) for r in rows if r.release == release and r.printed}
        assert keys == {(k.method, k.context_s, k.metric) for k in tables.read_paper(paper, METRICS) if k.table == "2a"}
    added = next(r for r in rows if r.method == "Random")
    assert (added.status, added.command, added.entry) == ("needs", tables.UNDECLARED, "")


def test_a_release_without_the_task_gets_no_lines_of_its_table(paper: Path) -> None:
    rows = build([number(), number(table="2b", release="v2")], paper)
    assert not [r for r in rows if r.table == "2a" and r.release == "v2"]


def test_a_score_without_the_metric_is_an_error_that_names_it(paper: Path) -> None:
    with pytest.raises(StoreError, match="'minilm' on v0 have no 'map'"):
        build([number(metric="map", score=score(metrics={}))], paper)


def test_rows_are_in_the_papers_order_then_ours(paper: Path) -> None:
    asked = [number(entry="own", method="TF-IDF"), number(context_s=180.0), number(), number(metric="map")]
    assert [(r.method, r.context_s, r.metric) for r in build(asked, paper)] == [
        ("Random", 60.0, "accuracy"),
        ("Human", None, "accuracy"),
        ("MiniLM", 60.0, "accuracy"),
        ("MiniLM", 60.0, "map"),
        ("MiniLM", 180.0, "accuracy"),
        ("Broken", 60.0, "accuracy"),
        ("TF-IDF", 60.0, "accuracy"),
    ]


def test_an_unlimited_context_comes_after_all_others(paper: Path) -> None:
    rows = build([number(context_s=None), number(context_s=600.0), number()], None)
    assert [r.context_s for r in rows] == [60.0, 600.0, None]


def test_metrics_are_in_the_order_of_their_names() -> None:
    measured = {"metrics": {name: {"value": 1.0, "seeds": []} for name in ("soda_d", "base_sr")}}
    rows = build([number(metric=metric, score=measured) for metric in ("soda_d", "base_sr")], None)
    assert [r.metric for r in rows] == ["base_sr", "soda_d"]


def test_seeds_are_those_of_the_metric(paper: Path) -> None:
    drawn = score()
    drawn["metrics"]["map"] |= {"seeds": [3, 4], "sd": 0.1}
    assert (row(paper, score=drawn).seeds, row(paper, score=drawn, metric="map").seeds) == ((0,), (3, 4))


def test_a_number_of_the_later_edition_alone_is_a_line_without_a_comparison(paper: Path) -> None:
    asked = {"table": "3b", "modality": "V"}
    found = row(paper, **asked, score=score(7.84))
    assert (found.status, found.paper, found.printed, found.rerun, found.difference) == ("ours", None, "", "7.84", None)
    added = [r for r in build([number(**asked, context_s=30.0)], paper) if not r.entry]
    assert [(r.method, r.setting, r.context_s, r.rerun, r.status) for r in added] == [
        ("MiniLM", "last-layer", 60.0, "9.81", "needs"),
        ("MiniLM", "zero-shot", 60.0, "7.84", "needs"),
        ("People", "reference", None, "51.0", "reference"),
    ]
    paper.write_text(PAPER.replace("50.0,51.0,1", ",51.0,1"))
    assert [(r.rerun, r.note) for r in build([number(**asked)], paper) if r.method == "People"] == [("51.0", "")]
