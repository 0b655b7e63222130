"""Tables as files: CSV and Markdown to the byte."""

import re
from dataclasses import replace
from pathlib import Path

from stepline import tables
from stepline.benchmark.words import Option, Sees
from stepline.needs import Need
from stepline.tables import Number
from tests.tables.numbers import METRICS, SAMPLE_LIST, WINDOW, build, cells, number, score


def test_the_csv_has_the_columns_in_order_and_empty_unknowns(paper: Path, tmp_path: Path) -> None:
    seeds = score(11.50123, selection="val loss")
    seeds["metrics"]["accuracy"] |= {"seeds": [0, 1, 2], "sd": 0.25}
    asked = [
        number(score=seeds, sees=(WINDOW, Sees("recording", "the whole recording"))),
        number(entry="r", method="Random", modality="-"),
    ]
    found = cells(build(asked, paper), tmp_path)
    assert tuple(found[0]) == tables.COLUMNS
    minilm = next(c for c in found if c["method"] == "MiniLM" and c["value"])
    assert minilm == {
        "table": "2a", "entry": "minilm", "method": "MiniLM", "modality": "L", "setting": "zero-shot",
        "context_s": "60", "metric": "accuracy", "value": "11.5012", "paper": "11.22", "rerun": "",
        "difference": "0.2812", "release": "v0", "split": "test", "protocol": "paper", "inputs": "window;recording",
        "options": "", "value_sd": "0.2500",
        "ci_low": "8.0000", "ci_high": "14.0000", "n_videos": "6", "n_listed": "6", "n_in_part": "",
            "n_samples": "12000",
        "n_queries": "", "pool_used": "", "pool_listed": "", "seeds": "0;1;2", "spec": "1a2b3c4d",
        "status": "within", "note": "tolerance ±1: a rerun; selection: val loss", "command": "",
    }  # fmt: skip
    assert [c["entry"] for c in found if c["method"] == "Human"] == [""]
    assert not [c for record in found for c in record.values() if c in ("-", "None", "nan")]
    found = cells(build([number(score=score(11.21999999))], paper), tmp_path)
    assert [c["difference"] for c in found if c["difference"]] == ["0.0000"], "not minus zero"


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

| Needs | Numbers | Methods | Command |
| --- | --- | --- | --- |
| no configured entry computes it | 1 | Table 2a: Random (baseline) | `add its encoder or context to \
config.yaml, or an entry to tables.yaml` |

## Table 2a, release v0: how to read it

- **Release**: v0
- **Split**: test
- **Protocol**: paper
- **Input of a method**: its window: MiniLM (zero-shot), Broken (zero-shot), MiniLM (last-layer); \
THE SAMPLE LIST: Sample rank (baseline)
- **Oracles**: Sample rank (baseline)
- **Videos evaluated / listed**: 6 / 6
- **Samples**: 12000
- **Seeds**: 0
- **Intervals**: 95 %, by bootstrap
- **Subset**: none: the full split

| Method | Setting | Context | Metric | Paper | Ours | Difference | Status | 95 % interval | Seeds | Input | Note |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| MiniLM, L | zero-shot | 1 min | Acc | 11.22 | 11.22 | 0.00 | exact | 8.00 to 14.00 | 1 | its window |  |
| MiniLM, L | zero-shot | 1 min | mAP | 12.17 | 12.00 | -0.17 | within | 8.00 to 14.00 | 1 | its window | \
tolerance ±1: a rerun |
| MiniLM, L | zero-shot | 3 min | Acc | 12.39 | 13.00 | +0.61 | differs | 8.00 to 14.00 | 1 | its window |  |
| Broken, L | zero-shot | 1 min | Acc | 99.00 | 98.00 |  | inconsistent | 8.00 to 14.00 | 1 | its window | \
the paper's number cannot be right: more than all |
| MiniLM, L | last-layer | 2.5 s | Acc |  | 50.00 |  | ours | 8.00 to 14.00 | 1 | its window |  |
| Sample rank | baseline | unlimited | Acc |  | 67.32 |  | ours | 8.00 to 14.00 | 1 | THE SAMPLE LIST |  |
"""


def golden_lines() -> list[Number]:
    return [
        number(),
        number(metric="map"),
        number(context_s=180.0, score=score(13.0)),
        number(entry="broken", method="Broken", score=score(98.0)),
        number(entry="own", setting="last-layer", context_s=2.5, score=score(50.0)),
        number(
            entry="rank", method="Sample rank", modality="-", setting="baseline", context_s=None,
            sees=(SAMPLE_LIST,), score=score(67.32),
        ),
    ]  # fmt: skip


def test_the_markdown_is_laid_out_as_in_the_paper(paper: Path, tmp_path: Path) -> None:
    tables.write_markdown(build(golden_lines(), paper), tmp_path / "table.md", title="A study")
    head, body = re.split(r"\n\n(?=## )", (tmp_path / "table.md").read_text(), maxsplit=1)
    assert head.startswith("# A study\n\nEach cell: ours (the paper's [another run by its authors, see below]) and")
    assert re.findall(r"^\| (.*?) \| ([a-z]+) \| (.*) \|$", head, re.MULTILINE) == [
        (tables.MARKS[status], status, tables.MEANINGS[status])
        for status in ("exact", "within", "differs", "inconsistent", "reference", "needs", "ours")
    ]
    assert body == GOLDEN


def modality_lines() -> list[Number]:
    ours = {"table": "3b", "modality": "V"}
    return [
        number(**ours, setting="last-layer", score=score(9.404)),
        number(**ours, score=score(9.0)),
        number(**ours, context_s=180.0, score=score(8.0)),
    ]


def test_a_later_number_stands_in_brackets_and_the_facts_say_what_it_is(paper: Path, tmp_path: Path) -> None:
    rows = build(modality_lines(), paper)
    tables.write_markdown(rows, tmp_path / "table.md", title="A study")
    text = (tmp_path / "table.md").read_text()
    assert "| reference | People | V |  |  | 50.0 [51.0] ref |" in text
    assert "| last-layer | MiniLM | V | 9.40 (9.4 [9.81]) = |  |  |" in text
    assert "| zero-shot | MiniLM | V | 9.00 ([7.84]) | 8.00 |  |" in text
    assert "- **[Re-run]**: the number of the same cell in the paper's later edition" in text
    assert "additional methods" not in text
    assert [c["rerun"] for c in cells(rows, tmp_path)] == ["9.81", "7.84", "", "51.0"]
    tables.write_markdown(build([number()], paper), tmp_path / "table.md", title="A study")
    assert "[Re-run]" not in (tmp_path / "table.md").read_text()
    lacking = number(table="3b", modality="V", score=None)
    assert "[Re-run]" in dict(tables.facts(build([lacking], paper))[0][2]), "also if none of them is computed"


def test_variants_of_a_method_are_told_apart_by_their_entry(paper: Path) -> None:
    asked = [
        number(entry="a", context_s=30.0),
        number(entry="b", context_s=30.0, options={"k": Option(2, 2)}, score=score(9.0)),
    ]
    panel = tables.panels(build(asked, None))[0]
    assert [(each.method, each.cells[0].text) for each in panel.lines] == [
        ("MiniLM (a)", "11.22"),
        ("MiniLM (b)", "9.00"),
    ]
    panel = tables.panels(build([replace(each, context_s=60.0) for each in asked], paper))[0]
    cells = {line.method: [cell.text for cell in line.cells] for line in panel.lines}
    assert {method: cells[method] for method in ("MiniLM (a)", "MiniLM (b)")} == {
        "MiniLM (a)": ["11.22 (11.22) =", "needs (12.17)", "needs (12.39)", ""],
        "MiniLM (b)": ["9.00 (11.22) ≠", "", "", ""],
    }, "what no entry computes stands with the first"


def test_a_line_is_an_oracles_if_the_paper_has_it_at_a_shorter_window_too(paper: Path) -> None:
    panel = tables.panels(build([number(context_s=180.0, sees=(WINDOW, SAMPLE_LIST))], paper))[0]
    assert {line.method: (line.sees, line.oracle) for line in panel.lines if line.oracle} == {
        "MiniLM": ("its window, THE SAMPLE LIST", True)
    }


def test_settings_are_in_the_given_order_and_others_follow() -> None:
    asked = [number(setting=setting) for setting in ("own", "baseline", "zero-shot")]
    rows = tables.build(asked, None, METRICS, settings=("zero-shot", "baseline"))
    assert [line.setting for line in tables.panels(rows)[0].lines] == ["zero-shot", "baseline", "own"]


def test_windows_are_in_minutes_if_these_are_whole() -> None:
    assert [tables.context_name(context_s) for context_s in (None, 10, 59.5, 60, 90, 180)] == [
        "unlimited", "10 s", "59.5 s", "1 min", "90 s", "3 min"
    ]  # fmt: skip


def test_facts_name_methods_or_metrics_or_both_where_they_differ() -> None:
    def facts(*asked: Number) -> dict[str, str]:
        return dict(tables.facts(build([*asked], None))[0][2])

    other = number(entry="b", method="B", setting="", score=score(n_videos=5, n_in_part=1, absent_s=2.0))
    found = facts(number(), other)
    assert found["Videos evaluated / listed"] == "6 / 6: MiniLM (zero-shot); 5 / 6, 1 in part: B"
    assert (found["Samples"], found["Seeds"], found["Subset"]) == ("12000", "0", "none: the full split")
    assert (found["Oracles"], found.get("Options")) == ("none", None)
    options = {"k": Option(2, 2), "b": Option(True, True)}
    found = facts(number(options=options, sees=(SAMPLE_LIST,)), number(entry="b", method="B"))
    assert (found["Oracles"], found["Options"]) == ("MiniLM (zero-shot)", "b=true, k=2: MiniLM (zero-shot)")
    own = score()
    own["metrics"]["map"] |= {"n_samples": 9, "seeds": [3, 4]}
    found = facts(number(score=own), number(score=own, metric="map"), other)
    assert found["Samples"] == "12000: Acc; 9: MiniLM (zero-shot) (mAP)"
    lacking = number(score=None, needs=(Need("java"),), entry="b", method="B", protocol="beyond")
    assert facts(number(), lacking)["Protocol"] == "paper", "of numbers that are computed"
    found = facts(number(score=None, needs=(Need("java"),), subset="0.5", sees=(SAMPLE_LIST,)))
    assert (found["Subset"], found["Split"]) == ("0.5", "test"), "also of numbers that are missing"
    assert found["Oracles"] == "none", "of numbers that are missing"
    ranked = score(n_samples=None, n_queries=7, pool_used=3, pool_listed=4, n_in_part=2, absent_s=2.0)
    found = facts(number(score=ranked, subset="0.5"), other)
    assert (found["Samples"], found["Queries"]) == ("12000: B", "7: MiniLM (zero-shot)")
    assert (found["Pool used / listed"], found["Subset"]) == (
        "3 / 4, 2 in part: MiniLM (zero-shot)",
        "0.5: MiniLM (zero-shot)",
    )
    several = score(selection="val loss")
    several["metrics"]["accuracy"] |= {"seeds": [3, 4], "sd": 0.5}
    found = facts(number(score=several), other)
    assert found["Selection"] == "val loss: MiniLM (zero-shot)"
    assert (found["Seeds"], found["± after a value"]) == (
        "3;4: MiniLM (zero-shot); 0: B",
        "standard deviation over the seeds",
    )


def test_columns_are_in_the_order_of_metrics_and_a_cell_may_have_several_splits(paper: Path) -> None:
    measured = {"value": 1.0, "seeds": []}
    asked = [
        number(metric=metric, split=split, context_s=None, score={"metrics": {metric: measured | {"value": value}}})
        for metric, split, value in (("base_sr", "test", 1.0), ("soda_d", "val", 2.0), ("soda_d", "test", 3.0))
    ]
    panel = tables.panels(build(asked, None))[0]
    assert panel.columns == ("SODA-D", "Base SR")
    assert [cell.text for cell in panel.lines[0].cells] == ["2.00 / 3.00", "1.00"]
    panel = tables.panels(build([number(), number(split="val")], paper))[0]
    [cell] = [line.cells[0] for line in panel.lines if line.method == "MiniLM"]
    assert (cell.text, cell.status) == ("11.22 (11.22) = / 11.22 (11.22) †", "exact")


def test_a_number_that_is_neither_a_percentage_nor_a_count_has_decimals(tmp_path: Path) -> None:
    rows = build([number(metric="duration", score={"metrics": {"duration": {"value": 73.456}}})], None)
    assert (cells(rows, tmp_path)[0]["value"], tables.panels(rows)[0].lines[0].cells[0].text) == ("73.4560", "73.46")


def test_the_legend_names_counts_if_any_number_is_one() -> None:
    count = number(metric="videos", score={"metrics": {"videos": {"value": 7}}})
    one, both = (tables.legend(build(asked, None)) for asked in ([number()], [number(), count]))
    assert [", counts as whole numbers" in said for said in (one, both)] == [False, True]


def test_a_line_has_a_command_or_says_what_to_declare(paper: Path) -> None:
    lacking = number(score=None, needs=(Need("java"),), command="apt install java")
    found = {line.row.entry or line.method: line for line in tables.lines(build([lacking], paper))}
    assert (found["minilm"].note, found["minilm"].command) == ("needs java", "apt install java")
    assert (found["Random"].note, found["Random"].command) == (
        f"no configured entry computes it; {tables.UNDECLARED}",
        "",
    )
    unseeded = score()
    unseeded["metrics"]["accuracy"] |= {"seeds": [], "sd": 0.5}
    seen = [(line.oracle, line.sees) for line in tables.lines(build([number(), number(sees=(SAMPLE_LIST,))], None))]
    assert seen == [(False, "its window"), (True, "THE SAMPLE LIST")]
    (line,) = tables.computed(build([number(score=unseeded)], None))
    assert (line[5], line[9]) == ("11.22 ± 0.50", "")
    unseeded["metrics"]["accuracy"]["sd"] = 0.0
    (line,) = tables.computed(build([number(score=unseeded)], None))
    assert line[5] == "11.22 ± 0.00"


def test_tables_and_releases_are_in_order_each_with_its_facts_and_numbers(tmp_path: Path) -> None:
    places = [("1", "v0", 4.0), ("2a", "v0", 1.0), ("2a", "v2", 2.0), ("2a", "v1", 3.0)]
    asked = [number(table=table, release=release, score=score(value)) for table, release, value in places]
    tables.write_markdown(build(asked[1:] + asked[:1], None), tmp_path / "table.md", title="A study")
    text = (tmp_path / "table.md").read_text()
    panels = re.findall(r"## Table (\w+): Step recognition, release (\w+)\n.*?\| L \| ([\d.]+) \|\n", text, re.DOTALL)
    numbers = re.findall(r"## Table (\w+), release (\w+): how .*?\| Acc \|  \| ([\d.]+) \|", text, re.DOTALL)
    assert panels == numbers == [(table, release, f"{value:.2f}") for table, release, value in places]


def test_what_is_missing_is_in_the_order_of_the_rows() -> None:
    lacking = {"score": None, "needs": (Need("weights", "x"),)}
    asked = [number(table="1", **lacking), number(table="3b", score=None, needs=(Need("java"),)), number(**lacking)]
    asked += [number(method="Own", setting="", **lacking)]
    assert [(gap.needs, gap.methods, gap.count) for gap in tables.missing(build(asked, None))] == [
        ("weights:x", ("Table 1: MiniLM (zero-shot)", "Table 2a: MiniLM (zero-shot), Own"), 3),
        ("java", ("Table 3b: MiniLM (zero-shot)",), 1),
    ]


def test_a_study_without_a_paper_is_one_table(tmp_path: Path) -> None:
    rows = build([number(release="demo", context_s=2.5, paper_release="")], None)
    tables.write_markdown(rows, tmp_path / "table.md", title="Demo")
    text = (tmp_path / "table.md").read_text()
    assert "## Table 2a: Step recognition, release demo\n" in text
    assert "## What is missing\n\nNothing." in text
    lacking = number(release="demo", score=None, needs=(Need("samples", "demo/x/val"),))
    tables.write_markdown(build([lacking, replace(lacking, metric="map")], None), tmp_path / "table.md", title="Demo")
    assert "| samples:demo/x/val | 2 | Table 2a: MiniLM (zero-shot) |  |\n" in (tmp_path / "table.md").read_text()


def test_a_hostile_name_does_not_break_the_markdown(tmp_path: Path) -> None:
    tables.write_markdown(build([number(method="a|b\n<script>")], None), tmp_path / "table.md", title="Demo")
    assert "| zero-shot | a\\|b &lt;script> | L |" in (tmp_path / "table.md").read_text()


def test_the_same_rows_give_the_same_bytes(paper: Path, tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        rows = build(golden_lines(), paper)
        tables.write_csv(rows, tmp_path / f"{name}.csv")
        tables.write_markdown(rows, tmp_path / f"{name}.md", title="A study")
        contents.append([(tmp_path / f"{name}.{kind}").read_bytes() for kind in ("csv", "md")])
    assert contents[0] == contents[1]
