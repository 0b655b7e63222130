"""The paper's file: numbers by release, bounds, counts, and what is wrong with a file."""

from pathlib import Path
from typing import Any

import pytest

from stepline import tables
from stepline.benchmark.words import Sees
from stepline.errors import ConfigError
from stepline.tables import Number
from tests.tables.numbers import METRICS, build, cells, number

POOL = Sees("action_pool", "the action pool")


CUT = """\
table,method,modality,setting,context_s,metric,split,release,paper,rerun,decimals,truncated,tolerance,tolerance_source,evidence,note
3,Uniform,,baseline,,soda_d,test,a,29.46,,2,true,,,,
3,Uniform,,baseline,,soda_d,test,b,36.82,,2,,,,,
3,PDVC,,,,soda_d,test,b,42.44,,2,,,,,
"""


class TestNumbersByRelease:
    @pytest.fixture
    def cut(self, tmp_path: Path) -> Path:
        path = tmp_path / "cut.csv"
        path.write_text(CUT)
        return path

    def lines(self, value: float) -> list[Number]:
        measured: dict[str, Any] = {"value": value, "sd": None, "ci": None, "seeds": []}
        return [
            number(
                table="3", title="Segmentation", method="Uniform", modality="", setting="baseline", context_s=None,
                metric="soda_d", release=release, paper_release=release, sees=(),
                score={"metrics": {"soda_d": measured}, "n_videos": 2, "n_listed": 2},
            )
            for release in ("a", "b")
        ]  # fmt: skip

    def test_each_release_has_its_own_number(self, cut: Path) -> None:
        found = build(self.lines(36.82), cut)
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
        first, second, _ = build(self.lines(value), cut)
        assert first.status == status
        assert second.status == "differs"

    def test_where_the_paper_cut_off_digits_a_mark_in_the_table_says_so(self, cut: Path, tmp_path: Path) -> None:
        found = build(self.lines(29.4667), cut)
        tables.write_markdown(found, tmp_path / "t.md", title="T")
        text = (tmp_path / "t.md").read_text()
        assert "| Uniform |  | 29.47 (29.46…) = |" in text
        assert "| Uniform |  | 29.47 (36.82) ≠ |" in text
        assert " … after a number: the paper truncates digits instead of rounding. Values in percent unless" in text
        assert "…" not in tables.legend(found[1:])
        assert [each["paper"] for each in cells(found, tmp_path)] == ["29.46", "36.82", "42.44"]

    def test_a_table_without_windows_names_metrics_alone(self, cut: Path, tmp_path: Path) -> None:
        tables.write_markdown(build(self.lines(36.82), cut), tmp_path / "t.md", title="T")
        text = (tmp_path / "t.md").read_text()
        assert "| Setting | Method | Modality | SODA-D |" in text
        assert "| Table 3: PDVC |" in text
        assert "unlimited" not in text


PLANS = """\
table,method,modality,setting,context_s,metric,split,paper,rerun,decimals,tolerance,tolerance_source,evidence,note
2,Random,,T=3,,base_sr,test,<0.01,,2,,,,
2,Random,,T=3,,novel_sr,test,<0.01,,2,,,of 122 actions,
2,Random,,T=4,,base_sr,test,<0.01,,2,,,,
2,People,,reference,,base_sr,test,<0.01,,2,,,,
8,Total,,,,videos,test,2771,,0,,,,
8,Train,,,,videos,test,1285,,0,,,,
"""


class TestPlans:
    @pytest.fixture
    def plans(self, tmp_path: Path) -> Path:
        path = tmp_path / "plans.csv"
        path.write_text(PLANS)
        return path

    def lines(self, base: float | None, **own: Any) -> list[Number]:
        measured: dict[str, Any] = {"value": base, "sd": None, "ci": None, "seeds": []}
        metrics = {"base_sr": measured | own, "novel_sr": measured | {"value": 0.5, "n_videos": 733, "n_listed": 733}}
        content = {"metrics": metrics, "n_videos": 5, "n_listed": 5, "n_samples": 9}
        return [
            number(
                table="2", title="Plans", entry="random", method="Random", modality="", setting="T=3", context_s=None,
                metric=metric, sees=(POOL,), score=None if base is None else content,
            )
            for metric in metrics
        ]  # fmt: skip

    def counted(self, **values: float) -> list[Number]:
        return [
            number(
                table="8", title="Counts", entry=name, method=name, modality="", setting="", context_s=None,
                metric="videos", score={"metrics": {"videos": {"value": value}}},
            )
            for name, value in values.items()
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("value", "status"), [(0.0, "within"), (0.00999, "within"), (0.01, "differs"), (0.09, "differs")]
    )
    def test_a_value_is_below_a_bound_or_differs(self, plans: Path, value: float, status: str) -> None:
        first = build(self.lines(value), plans)[0]
        assert (first.status, first.printed, first.paper, first.difference) == (status, "<0.01", None, None)

    def test_a_bound_with_evidence_is_inconsistent_and_one_of_a_part_not_comparable(self, plans: Path) -> None:
        whole, novel = build(self.lines(0.0), plans)[:2]
        assert (whole.status, novel.status) == ("within", "inconsistent")
        assert whole.note == "the paper prints only a bound"
        part = build(self.lines(0.0, n_videos=4), plans)[0]
        assert (part.status, part.note) == ("not comparable", "videos: 4 of 5 evaluated")

    def test_a_bound_stands_as_printed_in_every_file(self, plans: Path, tmp_path: Path) -> None:
        rows = build(self.lines(0.0), plans)
        assert [c["paper"] for c in cells(rows, tmp_path)] == ["<0.01"] * 4
        tables.write_markdown(rows, tmp_path / "t.md", title="T")
        text = (tmp_path / "t.md").read_text()
        assert "| T=3 | Random |  | 0.00 (&lt;0.01) ≈ | 0.50 (&lt;0.01) ‡ |" in text
        assert "| T=4 | Random |  | needs (&lt;0.01) |  |" in text
        assert "| reference | People |  | &lt;0.01 ref |  |" in text

    def test_a_metric_has_its_own_videos_and_the_facts_name_it(self, plans: Path, tmp_path: Path) -> None:
        rows = build(self.lines(0.0, n_samples=1138), plans)
        assert [(r.n_videos, r.n_listed, r.n_samples) for r in rows[:2]] == [(5, 5, 1138), (733, 733, 9)]
        tables.write_markdown(rows, tmp_path / "t.md", title="T")
        text = (tmp_path / "t.md").read_text()
        assert "listed**: 5 / 5: Base SR; 733 / 733: Novel SR\n" in text
        assert "- **Samples**: 1138: Base SR; 9: Novel SR\n" in text
        assert "- **Input of a method**: the action pool\n" in text

    def test_counts_are_whole_numbers_everywhere(self, plans: Path, tmp_path: Path) -> None:
        rows = build(self.counted(Total=2771.0, Train=1284), plans)
        assert [(r.status, r.difference) for r in rows] == [("exact", 0.0), ("differs", -1.0)]
        assert [(c["value"], c["paper"], c["difference"]) for c in cells(rows, tmp_path)] == [
            ("2771", "2771", "0"),
            ("1284", "1285", "-1"),
        ]
        tables.write_markdown(rows, tmp_path / "t.md", title="T")
        text = (tmp_path / "t.md").read_text()
        assert "|  | Total |  | 2771 (2771) = |" in text
        assert "| Train |  |  | Videos | 1285 | 1284 | -1 | differs |" in text
        assert "Values in percent unless a column says otherwise, counts as whole numbers. Bold:" in text
        tables.write_markdown(build(self.lines(0.0), plans), tmp_path / "t.md", title="T")
        assert "Values in percent unless a column says otherwise. Bold:" in (tmp_path / "t.md").read_text()


HEAD = (
    "table,method,modality,setting,context_s,metric,split,paper,rerun,decimals,tolerance,tolerance_source,evidence,note"
)
RIGHT = "2a,Random,,baseline,60,accuracy,test,4.22,,2,,,,"


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([HEAD, RIGHT, RIGHT.replace(",60,", ",60.0,")], "lines 2 and 3: duplicate key (2a, Random, "),
        ([HEAD, RIGHT.replace("accuracy", "acuracy")], "line 2: 'acuracy' is not a metric of this benchmark"),
        ([HEAD.replace("decimals", "digits"), RIGHT], "line 2: column 'decimals' is missing"),
        ([HEAD, RIGHT, RIGHT.replace(",60,", ",1 min,")], "line 3: could not convert string to float: '1 min'"),
        ([HEAD, RIGHT.replace("4.22", "4,22")], "line 2: it has 15 cells, but the first line has 14"),
        ([HEAD, RIGHT.replace("4.22", "about 4")], "line 2: could not convert string to float: 'about 4'"),
        ([HEAD, RIGHT.replace("4.22", "<")], "line 2: could not convert string to float: ''"),
        ([HEAD, RIGHT.replace(",2,", ",two,")], "line 2: invalid literal for int()"),
    ],
)
def test_what_is_wrong_with_a_file_is_an_error_of_one_line(tmp_path: Path, lines: list[str], error: str) -> None:
    path = tmp_path / "paper.csv"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ConfigError) as caught:
        tables.read_paper(path, METRICS)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert error in text
    assert "\n" not in text


def test_numbers_of_several_splits_are_told_by_it(tmp_path: Path) -> None:
    path = tmp_path / "paper.csv"
    path.write_text(f"{HEAD}\n{RIGHT}\n{RIGHT.replace('test,4.22', 'val,9.00')}\n")
    of = {"method": "Random", "modality": "", "setting": "baseline", "score": {"metrics": {"accuracy": {"value": 9.0}}}}
    (ours, theirs) = build([number(**of, split="val")], path)
    assert (ours.split, ours.printed, ours.status) == ("val", "9.00", "exact")
    assert (theirs.split, theirs.printed, theirs.status, theirs.entry) == ("test", "4.22", "needs", "")
    assert [row.status for row in build([number(**of, split="val"), number(**of)], path)] == ["exact", "differs"]
    (pooled, _) = build([number(**of, split="val+test")], path)
    assert (pooled.printed, pooled.status, pooled.difference) == ("4.22", "not comparable", None)
