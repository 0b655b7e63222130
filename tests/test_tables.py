"""Tables: every status by its rule, unique keys, CSV and Markdown to the byte."""

import csv
import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from stepline import tables
from stepline.errors import ConfigError, StoreError
from stepline.tables import Line, Row

PAPER = """\
table,method,modality,setting,context_s,metric,paper,rerun,decimals,tolerance,tolerance_source,evidence,note
2a,Random,,baseline,60,accuracy,4.22,,2,0.005,known,,
2a,Human,V+L,reference,,accuracy,67.0,,1,,,,
2a,MiniLM,L,zero-shot,60,accuracy,11.22,,2,1,a rerun,,
2a,MiniLM,L,zero-shot,60,map,12.17,,2,1,a rerun,,
2a,MiniLM,L,zero-shot,180,accuracy,12.39,,2,,,,
2a,Broken,L,zero-shot,60,accuracy,99.00,,2,,,more than all,
3b,MiniLM,V,last-layer,60,accuracy,9.4,9.81,2,0.5,a rerun,,copied by hand
3b,MiniLM,V,zero-shot,60,accuracy,,7.84,2,,,,later only
3b,MiniLM,V,zero-shot,180,accuracy,,,,,,,damaged
3b,People,V,reference,,accuracy,50.0,51.0,1,,,,
"""


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    path = tmp_path / "paper.csv"
    path.write_text(PAPER)
    return path


def score(accuracy: float | None = 11.22, **more: Any) -> dict[str, Any]:
    measured = {
        "value": accuracy, "sd": None, "ci": [8.0, 14.0], "seeds": [0], "per_seed": [accuracy], "per_video": {"a": 8.0},
    }  # fmt: skip
    base = {
        "metrics": {"accuracy": measured, "map": {**measured, "value": 12.0}}, "n_videos": 6,
        "n_listed": 6, "n_samples": 12000, "n_queries": None, "pool_used": None, "pool_listed": None,
        "selection": "", "status": "present", "needs": [],
    }  # fmt: skip
    return base | more


def line(**changes: Any) -> Line:
    base: dict[str, Any] = {
        "table": "2a", "title": "Step recognition", "entry": "minilm", "method": "MiniLM", "modality": "L",
        "setting": "zero-shot",
        "context_s": 60.0, "metric": "accuracy", "release": "v0", "split": "test", "inputs": ("window",),
        "spec": "1a2b3c4d", "score": score(),
    }  # fmt: skip
    return Line(**(base | changes))


def row(paper: Path | None, **changes: Any) -> Row:
    asked = line(**changes)
    return next(r for r in tables.build([asked], paper) if r.entry == "minilm" and r.metric == asked.metric)


def cells(rows: list[Row], tmp_path: Path) -> list[dict[str, str]]:
    tables.write_csv(rows, tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("value", [11.22, 11.2249, 11.2151, 11.215])
def test_a_value_that_rounds_to_the_printed_digits_is_exact(paper: Path, value: float) -> None:
    found = row(paper, score=score(value))
    assert found.status == "exact"
    assert found.difference == pytest.approx(value - 11.22)


@pytest.mark.parametrize(
    ("value", "status"),
    [(12.22, "within"), (10.22, "within"), (11.2251, "within"), (12.23, "differs"), (10.21, "differs")],
)
def test_the_tolerance_decides_between_within_and_differs(paper: Path, value: float, status: str) -> None:
    found = row(paper, score=score(value))
    assert found.status == status
    assert "±1: a rerun" in found.note


def test_a_number_without_a_tolerance_differs(paper: Path) -> None:
    found = row(paper, context_s=180.0, score=score(12.40))
    assert (found.status, round(found.difference or 0, 2)) == ("differs", 0.01)


def test_a_value_without_a_number_of_the_paper_is_ours(paper: Path) -> None:
    found = row(paper, context_s=30.0)
    assert (found.status, found.paper, found.difference) == ("ours", None, None)


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"release": "v1"}, "release v1, the paper's numbers were made on v0"),
        ({"subset": "2 videos"}, "subset: 2 videos"),
        ({"score": score(n_videos=5)}, "videos: 5 of 6 evaluated"),
        ({"score": score(pool_used=9, pool_listed=10)}, "pool: 9 of 10 evaluated"),
        ({"protocol": "beyond"}, "protocol beyond the paper's"),
        (
            {"options": {"transcripts": "asr", "k": 1}, "paper_options": {"transcripts": "released"}},
            "transcripts=asr (published: released)",
        ),
    ],
)
def test_what_is_not_comparable_says_why_and_has_no_difference(paper: Path, changes: Any, note: str) -> None:
    found = row(paper, **changes)
    assert (found.status, found.difference) == ("not comparable", None)
    assert found.paper == 11.22
    assert note in found.note


def test_an_option_of_which_the_paper_says_nothing_stays_comparable(paper: Path) -> None:
    found = row(paper, options={"normalise": "block", "b": True}, paper_options={"b": True})
    assert (found.status, found.options) == ("exact", "b=true;normalise=block")


def test_a_subset_stands_in_the_note_of_our_own_numbers_too(paper: Path) -> None:
    assert row(paper, context_s=30.0, subset="0.5 of the videos").note == "subset: 0.5 of the videos"


@pytest.mark.parametrize("absent", [None, score(None, metrics={}, status="needs", needs=["weights:x", "videos:y"])])
def test_a_line_without_a_value_needs_something_and_names_the_command(paper: Path, absent: Any) -> None:
    found = row(paper, score=absent, needs=("weights:x", "videos:y"), command="stepline fetch weights/x")
    assert (found.status, found.value, found.difference) == ("needs", None, None)
    assert (found.note, found.command) == ("needs weights:x;videos:y", "stepline fetch weights/x")


def test_our_own_line_without_a_value_stays_with_what_it_needs(paper: Path) -> None:
    absent = score(None, metrics={}, status="needs", needs=["videos:y"])
    found = row(paper, context_s=30.0, score=absent, needs=("videos:y",), command="stepline fetch y/videos")
    assert (found.status, found.printed, found.needs, found.seeds) == ("needs", "", ("videos:y",), ())


def test_a_line_with_a_value_has_no_command(paper: Path) -> None:
    assert row(paper, command="stepline fetch weights/x").command == ""


def test_a_reference_is_copied_on_every_release(paper: Path) -> None:
    rows = [r for r in tables.build([line(), line(release="v2")], paper) if r.method == "Human"]
    assert [(r.release, r.status, r.value, r.paper, r.difference) for r in rows] == [
        ("v0", "reference", 67.0, 67.0, None),
        ("v2", "reference", 67.0, 67.0, None),
    ]
    assert "made on v0" in rows[1].note


def test_a_line_that_can_have_no_number_is_left_out(paper: Path) -> None:
    accuracy = {"accuracy": score()["metrics"]["accuracy"]}
    asked = [
        line(),
        line(
            entry="people",
            method="Human",
            modality="V+L",
            setting="reference",
            metric="map",
            reference=True,
            score=None,
        ),
        line(entry="guess", method="Guess", metric="map", score=score(metrics=accuracy)),
    ]
    assert {r.entry for r in tables.build(asked, paper)} == {"", "minilm"}


def test_what_a_method_sees_is_an_oracle_beyond_recordings_and_training_labels() -> None:
    seen = [("window", "train"), (), ("recording",), ("sample_list",), ("window", "annotated_span")]
    asked = [line(method=str(number), inputs=inputs) for number, inputs in enumerate(seen)]
    rows = tables.build(asked, None)
    assert [tables.is_oracle(r) for r in rows] == [False, False, False, True, True]
    assert [tables.sees(r) for r in rows][:2] == ["its window, the training recordings", "nothing"]


def test_a_number_that_cannot_be_right_is_inconsistent_with_its_evidence(paper: Path) -> None:
    found = row(paper, method="Broken", score=score(99.0))
    assert (found.status, found.difference) == ("inconsistent", None)
    assert "more than all" in found.note


def test_every_number_of_the_paper_is_a_line_on_every_release(paper: Path) -> None:
    rows = tables.build([line(), line(release="v1")], paper)
    for release in ("v0", "v1"):
        keys = {(r.method, r.context_s, r.metric) for r in rows if r.release == release and r.printed}
        assert keys == {(k[1], k[4], k[5]) for k in tables.read_paper(paper) if k[0] == "2a"}
    added = next(r for r in rows if r.method == "Random")
    assert (added.status, added.command) == ("needs", tables.UNDECLARED)


def test_a_release_without_the_task_gets_no_lines_of_its_table(paper: Path) -> None:
    rows = tables.build([line(), line(table="2b", release="v2")], paper)
    assert not [r for r in rows if r.table == "2a" and r.release == "v2"]


def test_equal_keys_are_an_error_that_names_both_entries(paper: Path) -> None:
    with pytest.raises(ConfigError, match=r"'minilm' and 'other' give the same line \(2a, MiniLM, L, zero-shot, 60"):
        tables.build([line(), line(entry="other")], paper)
    assert tables.build([line(), line(entry="other", options={"k": 2})], paper)


def test_a_score_without_the_metric_is_an_error_that_names_it(paper: Path) -> None:
    with pytest.raises(StoreError, match="'minilm' on v0 hold no 'map'"):
        tables.build([line(metric="map", score=score(metrics={}))], paper)


def test_rows_are_in_the_papers_order_then_ours(paper: Path) -> None:
    asked = [line(entry="own", method="TF-IDF"), line(context_s=180.0), line(), line(metric="map")]
    assert [(r.method, r.context_s, r.metric) for r in tables.build(asked, paper)] == [
        ("Random", 60.0, "accuracy"),
        ("Human", None, "accuracy"),
        ("MiniLM", 60.0, "accuracy"),
        ("MiniLM", 60.0, "map"),
        ("MiniLM", 180.0, "accuracy"),
        ("Broken", 60.0, "accuracy"),
        ("TF-IDF", 60.0, "accuracy"),
    ]


def test_an_unlimited_context_comes_after_all_others(paper: Path) -> None:
    rows = tables.build([line(context_s=None), line(context_s=600.0), line()], None)
    assert [r.context_s for r in rows] == [60.0, 600.0, None]


def test_seeds_are_those_of_the_metric(paper: Path) -> None:
    drawn = score()
    drawn["metrics"]["map"] |= {"seeds": [3, 4], "sd": 0.1}
    assert (row(paper, score=drawn).seeds, row(paper, score=drawn, metric="map").seeds) == ((0,), (3, 4))


def test_the_csv_has_the_columns_in_order_and_empty_unknowns(paper: Path, tmp_path: Path) -> None:
    seeds = score(11.5, selection="val loss")
    seeds["metrics"]["accuracy"] |= {"seeds": [0, 1, 2], "sd": 0.25}
    asked = [line(score=seeds, inputs=("window", "recording")), line(entry="r", method="Random", modality="-")]
    found = cells(tables.build(asked, paper), tmp_path)
    assert tuple(found[0]) == tables.COLUMNS
    assert {name.name for name in dataclasses.fields(Row)} >= set(tables.COLUMNS)
    minilm = next(c for c in found if c["method"] == "MiniLM" and c["value"])
    assert minilm == {
        "table": "2a", "method": "MiniLM", "modality": "L", "setting": "zero-shot", "context_s": "60",
        "metric": "accuracy", "value": "11.5000", "paper": "11.22", "rerun": "", "difference": "0.2800",
        "release": "v0", "split": "test", "protocol": "paper", "inputs": "window;recording", "options": "",
        "value_sd": "0.2500",
        "ci_low": "8.0000", "ci_high": "14.0000", "n_videos": "6", "n_listed": "6", "n_samples": "12000",
        "n_queries": "", "pool_used": "", "pool_listed": "", "seeds": "0;1;2", "spec": "1a2b3c4d",
        "status": "within", "note": "tolerance ±1: a rerun; selection: val loss", "command": "",
    }  # fmt: skip
    assert not [c for record in found for c in record.values() if c in ("-", "None", "nan")]


def test_a_tiny_negative_difference_is_not_minus_zero(paper: Path, tmp_path: Path) -> None:
    found = cells(tables.build([line(score=score(11.21999999))], paper), tmp_path)
    assert [c["difference"] for c in found if c["difference"]] == ["0.0000"]


GOLDEN = """\
## Table 2a: Step recognition, release v0: the paper's methods

| Setting | Method | Modality | w=1 min Acc | w=1 min mAP | w=3 min Acc | unlimited Acc |
| --- | --- | --- | --- | --- | --- | --- |
| baseline | Random |  | needs (4.22) |  |  |  |
| reference | Human | V+L |  |  |  | 67.0 ref |
| zero-shot | MiniLM | L | 11.22 (11.22) = | 12.00 (12.17) ≈ | 13.00 (12.39) ≠ |  |
| zero-shot | Broken | L | 98.00 (99.00) ‡ |  |  |  |

## Table 2a: Step recognition, release v0: additional methods

| Setting | Method | Modality | w=2.5 s | unlimited |
| --- | --- | --- | --- | --- |
| baseline | **Sample rank: sees THE SAMPLE LIST** |  |  | 67.32 |
| last-layer | MiniLM | L | 50.00 |  |

## What is missing

| Needs | Numbers | Of | Filled by |
| --- | --- | --- | --- |
| nothing that is configured computes it | 1 | Random, baseline (2a) | `add its encoder or context to \
config.yaml, or an entry to tables.yaml` |

## Table 2a, release v0: how to read it

- **Release**: v0
- **Split**: test
- **Protocol**: paper
- **What a method may see**: its window: MiniLM (zero-shot), Broken (zero-shot), MiniLM (last-layer); \
THE SAMPLE LIST: Sample rank (baseline)
- **Oracles**: Sample rank (baseline)
- **Videos evaluated / listed**: 6 / 6
- **Samples**: 12000
- **Seeds**: 0
- **Intervals**: 95 %, bootstrap over the videos
- **Subset**: none: the whole split

| Method | Setting | Context | Metric | Value | 95 % interval | Seeds | It may see | Status |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| MiniLM, L | zero-shot | 1 min | Acc | 11.22 | 8.00 to 14.00 | 1 | its window | exact |
| MiniLM, L | zero-shot | 1 min | mAP | 12.00 | 8.00 to 14.00 | 1 | its window | within |
| MiniLM, L | zero-shot | 3 min | Acc | 13.00 | 8.00 to 14.00 | 1 | its window | differs |
| Broken, L | zero-shot | 1 min | Acc | 98.00 | 8.00 to 14.00 | 1 | its window | inconsistent |
| MiniLM, L | last-layer | 2.5 s | Acc | 50.00 | 8.00 to 14.00 | 1 | its window | ours |
| Sample rank | baseline | unlimited | Acc | 67.32 | 8.00 to 14.00 | 1 | THE SAMPLE LIST | ours |
"""


def golden_lines() -> list[Line]:
    return [
        line(),
        line(metric="map"),
        line(context_s=180.0, score=score(13.0)),
        line(entry="broken", method="Broken", score=score(98.0)),
        line(entry="own", setting="last-layer", context_s=2.5, score=score(50.0)),
        line(
            entry="rank", method="Sample rank", modality="-", setting="baseline", context_s=None,
            inputs=("sample_list",), score=score(67.32),
        ),
    ]  # fmt: skip


def test_the_markdown_is_laid_out_as_in_the_paper(paper: Path, tmp_path: Path) -> None:
    tables.write_markdown(tables.build(golden_lines(), paper), tmp_path / "table.md", title="A study")
    head, body = re.split(r"\n\n(?=## )", (tmp_path / "table.md").read_text(), maxsplit=1)
    assert head.startswith(
        "# A study\n\nEach cell: ours (the paper's [its authors' later re-run, on another release]). ="
    )
    assert body == GOLDEN


def modality_lines() -> list[Line]:
    ours = {"table": "3b", "modality": "V"}
    return [
        line(**ours, setting="last-layer", score=score(9.404)),
        line(**ours, score=score(9.0)),
        line(**ours, context_s=180.0, score=score(8.0)),
    ]


def test_a_table_that_leaves_out_last_zeros_is_held_to_its_decimals(paper: Path) -> None:
    asked = {"table": "3b", "modality": "V", "setting": "last-layer"}
    assert row(paper, **asked, score=score(9.404)).status == "exact"
    found = row(paper, **asked, score=score(9.41))
    assert (found.status, found.rerun) == ("within", "9.81")
    assert found.note == "tolerance ±0.5: a rerun; copied by hand"


def test_a_number_of_the_later_edition_alone_is_a_line_without_a_comparison(paper: Path) -> None:
    asked = {"table": "3b", "modality": "V"}
    found = row(paper, **asked, score=score(7.84))
    assert (found.status, found.paper, found.printed, found.rerun, found.difference) == ("ours", None, "", "7.84", None)
    added = [r for r in tables.build([line(**asked, context_s=30.0)], paper) if not r.entry]
    assert [(r.method, r.setting, r.context_s, r.rerun, r.status) for r in added] == [
        ("MiniLM", "last-layer", 60.0, "9.81", "needs"),
        ("MiniLM", "zero-shot", 60.0, "7.84", "needs"),
        ("People", "reference", None, "51.0", "reference"),
    ]


def test_what_is_noted_of_a_number_that_is_not_known_stands_beside_ours(paper: Path) -> None:
    found = row(paper, table="3b", modality="V", context_s=180.0, score=score(8.0))
    assert (found.status, found.note) == ("ours", "damaged")


def test_a_later_number_stands_in_brackets_and_the_facts_say_what_it_is(paper: Path, tmp_path: Path) -> None:
    rows = tables.build(modality_lines(), paper)
    tables.write_markdown(rows, tmp_path / "table.md", title="A study")
    text = (tmp_path / "table.md").read_text()
    assert "| reference | People | V |  |  | 50.0 [51.0] ref |" in text
    assert "| last-layer | MiniLM | V | 9.40 (9.4 [9.81]) = |  |  |" in text
    assert "| zero-shot | MiniLM | V | 9.00 ([7.84]) | 8.00 |  |" in text
    assert "- **[Re-run]**: the number of the same cell in the paper's later edition" in text
    assert "additional methods" not in text
    assert [c["rerun"] for c in cells(rows, tmp_path)] == ["9.81", "7.84", "", "51.0"]
    tables.write_markdown(tables.build([line()], paper), tmp_path / "table.md", title="A study")
    assert "[Re-run]" not in (tmp_path / "table.md").read_text()


def test_variants_of_a_method_are_told_apart_by_their_entry(paper: Path) -> None:
    asked = [line(entry="a", context_s=30.0), line(entry="b", context_s=30.0, options={"k": 2}, score=score(9.0))]
    panel = tables.panels(tables.build(asked, None))[0]
    assert [(each.method, each.cells[0].text) for each in panel.lines] == [
        ("MiniLM (a)", "11.22"),
        ("MiniLM (b)", "9.00"),
    ]


def test_a_study_without_a_paper_is_one_table(tmp_path: Path) -> None:
    rows = tables.build([line(release="demo", context_s=2.5, paper_release="")], None)
    tables.write_markdown(rows, tmp_path / "table.md", title="Demo")
    text = (tmp_path / "table.md").read_text()
    assert "## Table 2a: Step recognition, release demo\n" in text
    assert "## What is missing\n\nNothing." in text


def test_a_hostile_name_does_not_break_the_markdown(tmp_path: Path) -> None:
    tables.write_markdown(tables.build([line(method="a|b\n<script>")], None), tmp_path / "table.md", title="Demo")
    assert "| zero-shot | a\\|b &lt;script> | L |" in (tmp_path / "table.md").read_text()


def test_the_same_rows_give_the_same_bytes(paper: Path, tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        rows = tables.build(golden_lines(), paper)
        tables.write_csv(rows, tmp_path / f"{name}.csv")
        tables.write_markdown(rows, tmp_path / f"{name}.md", title="A study")
        contents.append([(tmp_path / f"{name}.{kind}").read_bytes() for kind in ("csv", "md")])
    assert contents[0] == contents[1]


def test_halves_are_rounded_up_also_where_the_float_lies_below() -> None:
    assert tables.percent(12.975) == "12.98"
    assert tables.percent(12.974999999999998) == "12.98"
    assert tables.percent(12.974999) == "12.97"
    assert tables.percent(100 * 0.12975) == "12.98"


CUT = """\
table,method,modality,setting,context_s,metric,release,paper,rerun,decimals,truncated,tolerance,tolerance_source,evidence,note
3,Uniform,,baseline,,soda_d,a,29.46,,2,true,,,,
3,Uniform,,baseline,,soda_d,b,36.82,,2,,,,,
3,PDVC,,,,soda_d,b,42.44,,2,,,,,
"""


class TestNumbersByRelease:
    @pytest.fixture
    def cut(self, tmp_path: Path) -> Path:
        path = tmp_path / "cut.csv"
        path.write_text(CUT)
        return path

    def lines(self, value: float) -> list[Line]:
        measured = {"value": value, "sd": None, "ci": None, "seeds": []}
        return [
            line(
                table="3", title="Segmentation", method="Uniform", modality="", setting="baseline", context_s=None,
                metric="soda_d", release=release, paper_release=release, inputs=("duration",),
                score={"metrics": {"soda_d": measured}, "n_videos": 2, "n_listed": 2},
            )
            for release in ("a", "b")
        ]  # fmt: skip

    def test_each_release_has_its_own_number(self, cut: Path) -> None:
        found = tables.build(self.lines(36.82), cut)
        assert [(row.release, row.method, row.printed, row.status) for row in found] == [
            ("a", "Uniform", "29.46", "differs"),
            ("b", "Uniform", "36.82", "exact"),
            ("b", "PDVC", "42.44", "needs"),
        ]
        assert found[2].title == "Segmentation"

    @pytest.mark.parametrize(
        ("value", "status"),
        [(29.4699, "exact"), (29.46, "exact"), (29.4599, "exact"), (29.4701, "differs"), (29.454, "differs")],
    )
    def test_digits_may_be_cut_off_where_the_paper_did(self, cut: Path, value: float, status: str) -> None:
        first, second, _ = tables.build(self.lines(value), cut)
        assert first.status == status
        assert second.status == "differs"

    def test_a_table_without_windows_names_metrics_alone(self, cut: Path, tmp_path: Path) -> None:
        tables.write_markdown(tables.build(self.lines(36.82), cut), tmp_path / "t.md", title="T")
        text = (tmp_path / "t.md").read_text()
        assert "| Setting | Method | Modality | SODA-D |" in text
        assert "| PDVC, (3) |" not in text
        assert "| PDVC (3) |" in text
        assert "unlimited" not in text


PLANS = """\
table,method,modality,setting,context_s,metric,paper,rerun,decimals,tolerance,tolerance_source,evidence,note
2,Random,,T=3,,base_sr,<0.01,,2,,,,
2,Random,,T=3,,novel_sr,<0.01,,2,,,of 122 actions,
2,Random,,T=4,,base_sr,<0.01,,2,,,,
2,People,,reference,,base_sr,<0.01,,2,,,,
8,Total,,,,videos,2771,,0,,,,
8,Train,,,,videos,1285,,0,,,,
"""


class TestPlans:
    @pytest.fixture
    def plans(self, tmp_path: Path) -> Path:
        path = tmp_path / "plans.csv"
        path.write_text(PLANS)
        return path

    def lines(self, base: float | None, **own: Any) -> list[Line]:
        measured = {"value": base, "sd": None, "ci": None, "seeds": []}
        metrics = {"base_sr": measured | own, "novel_sr": measured | {"value": 0.5, "n_videos": 733, "n_listed": 733}}
        content = {"metrics": metrics, "n_videos": 5, "n_listed": 5, "n_samples": 9}
        return [
            line(
                table="2", title="Plans", entry="random", method="Random", modality="", setting="T=3", context_s=None,
                metric=metric, inputs=("action_pool",), score=None if base is None else content,
            )
            for metric in metrics
        ]  # fmt: skip

    def counted(self, **values: float) -> list[Line]:
        return [
            line(
                table="8", title="Counts", entry=name, method=name, modality="", setting="", context_s=None,
                metric="videos", score={"metrics": {"videos": {"value": value}}},
            )
            for name, value in values.items()
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("value", "status"), [(0.0, "exact"), (0.00999, "exact"), (0.01, "differs"), (0.09, "differs")]
    )
    def test_a_value_is_below_a_bound_or_differs(self, plans: Path, value: float, status: str) -> None:
        first = tables.build(self.lines(value), plans)[0]
        assert (first.status, first.printed, first.paper, first.difference) == (status, "<0.01", None, None)

    def test_a_bound_with_evidence_is_inconsistent_and_one_of_a_part_not_comparable(self, plans: Path) -> None:
        whole, novel = tables.build(self.lines(0.0), plans)[:2]
        assert (whole.status, novel.status) == ("exact", "inconsistent")
        part = tables.build(self.lines(0.0, n_videos=4), plans)[0]
        assert (part.status, part.note) == ("not comparable", "videos: 4 of 5 evaluated")

    def test_a_bound_stands_as_printed_in_every_file(self, plans: Path, tmp_path: Path) -> None:
        rows = tables.build(self.lines(0.0), plans)
        assert [c["paper"] for c in cells(rows, tmp_path)] == ["<0.01"] * 4
        tables.write_markdown(rows, tmp_path / "t.md", title="T")
        text = (tmp_path / "t.md").read_text()
        assert "| T=3 | Random |  | 0.00 (&lt;0.01) = | 0.50 (&lt;0.01) ‡ |" in text
        assert "| T=4 | Random |  | needs (&lt;0.01) |  |" in text
        assert "| reference | People |  | &lt;0.01 ref |  |" in text

    def test_a_metric_has_its_own_videos_and_the_facts_name_it(self, plans: Path, tmp_path: Path) -> None:
        rows = tables.build(self.lines(0.0, n_samples=1138), plans)
        assert [(r.n_videos, r.n_listed, r.n_samples) for r in rows[:2]] == [(5, 5, 1138), (733, 733, 9)]
        tables.write_markdown(rows, tmp_path / "t.md", title="T")
        text = (tmp_path / "t.md").read_text()
        assert "listed**: 5 / 5: Base SR; 733 / 733: Novel SR\n" in text
        assert "- **Samples**: 1138: Base SR; 9: Novel SR\n" in text
        assert "- **What a method may see**: the action pool\n" in text

    def test_counts_are_whole_numbers_everywhere(self, plans: Path, tmp_path: Path) -> None:
        rows = tables.build(self.counted(Total=2771.0, Train=1284), plans)
        assert [(r.status, r.difference) for r in rows] == [("exact", 0.0), ("differs", -1.0)]
        assert [(c["value"], c["paper"], c["difference"]) for c in cells(rows, tmp_path)] == [
            ("2771", "2771", "0"),
            ("1284", "1285", "-1"),
        ]
        tables.write_markdown(rows, tmp_path / "t.md", title="T")
        text = (tmp_path / "t.md").read_text()
        assert "|  | Total |  | 2771 (2771) = |" in text
        assert "| Train |  |  | Videos | 1284 |" in text
        assert "Values in percent, counts as whole numbers. Bold:" in text
        tables.write_markdown(tables.build(self.lines(0.0), plans), tmp_path / "t.md", title="T")
        assert "Values in percent. Bold:" in (tmp_path / "t.md").read_text()

    def test_planners_see_no_more_than_a_system_would_have(self) -> None:
        (row,) = tables.build([line(inputs=("observations", "action_pool", "train", "val"))], None)
        assert not tables.is_oracle(row)
        assert tables.sees(row) == (
            "the start and end observations, the action pool, the training recordings, the validation recordings"
        )
