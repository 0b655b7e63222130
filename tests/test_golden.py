import json
import math
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.golden import GROUPS, WITH_TORCH, compare, main

ROOT = Path(__file__).parents[1]
COUNTS = {
    "oepp/golden_metrics.json": {"metric_cases": 15, "loss_and_readout_cases": 3, "frame_selection_cases_M3": 3},
    "oepp/golden_windows.json": {"splits": 16},
    "pss/golden_metrics.json": {
        "segment_cases": 15,
        "soda_c_given_scores": 5,
        "soft_soda_cases": 4,
        "paper_fig4": 2,
        "feature_resize_nearest": 13,
    },
    "hirest/golden_metrics.json": {"cases": 36, "many": 1, "real_annotations": 17},
    "htstep/golden_metrics.json": {"cases": 24},
}
OEPP, WINDOWS, PSS, HIREST, HTSTEP = COUNTS


@pytest.fixture(autouse=True)
def _released(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))


def part(real_data: Path, name: str, key: str) -> Any:
    """Return a file with one group of cases and what they need, and without what describes them."""
    if key in WITH_TORCH:
        pytest.importorskip("torch")
    content = json.loads((real_data / name).read_text())
    needed = {"soda_c_given_scores": ["segment_cases"]}.get(key, ["taxonomy"])
    return {each: content[each] for each in (key, *needed) if each in content}


@pytest.mark.parametrize("name", COUNTS)
def test_all_that_is_expected_is_found(real_data: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    content, counts = json.loads((real_data / name).read_text()), COUNTS[name]
    if find_spec("torch") is None:
        content, counts = ({key: each[key] for key in each if key not in WITH_TORCH} for each in (content, counts))
    Path("golden.json").write_text(json.dumps(content))
    assert main(["golden.json"]) == 0
    *groups, total = capsys.readouterr().out.splitlines()
    number = r"worst difference \d\.\de[-+]\d\d"
    for line, (key, count) in zip(groups, counts.items(), strict=True):
        assert re.fullmatch(rf"{key}: {count} cases, {number}", line)
    assert re.fullmatch(rf"{sum(counts.values())} cases, {number}", total)
    assert float(total.split()[-1]) < 3e-7


def test_no_group_is_forgotten() -> None:
    assert {key for counts in COUNTS.values() for key in counts} == GROUPS.keys()


CHANGED = [
    (OEPP, "metric_cases", 3, "expected_percent", "acc_last_step"),
    (OEPP, "loss_and_readout_cases", 0, "expected", "ce_single_softmax_temp1"),
    (OEPP, "frame_selection_cases_M3", 1, "end_rows", 0, 2),
    (WINDOWS, "splits", "val", "3", "n_padded"),
    (PSS, "segment_cases", 2, "expected", "matched_iou_sum"),
    (PSS, "segment_cases", 2, "expected", "tiou_detection", "0.3", "recall"),
    (PSS, "soda_c_given_scores", 0, "expected", "sum"),
    (PSS, "soft_soda_cases", 1, "expected_table_end", "gamma_gamma0.1"),
    (PSS, "paper_fig4", "fig4_example2", "iou", 0, 1),
    (PSS, "feature_resize_nearest", 3, "picked_rows", 7),
    (HIREST, "cases", 2, "expected", "per_item", "query 2-1", "first_gt_rank"),
    (HIREST, "cases", 2, "expected", "per_category", "all", "R@10"),
    (HIREST, "cases", 8, "expected", "per_item", "87C4B9-E_Cc.mp4", "hit", "0.7"),
    (HIREST, "cases", 8, "expected", "per_category", "Home", "total_videos"),
    (HIREST, "cases", 16, "expected", "without_preprocess", "per_category", "Food", "precision", "0.7"),
    (HIREST, "many", 0, "expected", "with_preprocess", "per_item", "61f9-5-377E.mp4", "bounds_after", 5, 1),
    (HIREST, "real_annotations", 2, "expected", "Family Life", "R@0.7"),
    (HIREST, "real_annotations", -1, "with_preprocess", "recall", "0.5"),
    (HTSTEP, "cases", -2, "expected_if_ties_in_input_row_order", "per_activity_ap", "Make Tea", 1),
    (HTSTEP, "cases", 0, "expected", "mAP"),
]


@pytest.mark.parametrize("path", CHANGED, ids=lambda path: ".".join(map(str, path)))
def test_one_changed_number_is_seen(real_data: Path, path: tuple[Any, ...]) -> None:
    name, key, *between, last = path
    content = part(real_data, name, key)
    if name == WINDOWS:
        content[key] = {between[0]: content[key][between[0]]}
    where = content[key]
    for each in between:
        where = where[each]
    where[last] += 1 if isinstance(where[last], int) else 1e-3
    (group,) = (each for each in compare(content) if each.name == key)
    assert len(group.differences) == 1
    assert group.worst > 1e-6


def test_a_difference_is_named_and_exits_with_1(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads((real_data / HTSTEP).read_text())
    content["cases"][3]["expected"]["mAP"] = 0.7
    del content["cases"][-1]["expected"]["per_activity_ap"]
    content["cases"][1]["expected"]["of_a_later_version"] = 1
    content["cases"][5]["predictions"][0][4] = float("nan")
    Path("changed.json").write_text(json.dumps(content))
    assert main(["changed.json"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "one_label_for_both of_a_later_version: nothing instead of 1 (inf)",
        "top_score_no_overlap mAP: 0.6666666666666666 instead of 0.7 (3.3e-02)",
        "iou_exact_03: a prediction has the score NaN (inf)",
        "cases: 24 cases, worst difference inf",
        "24 cases, worst difference inf",
    ]


def test_an_error_that_is_expected_must_come(real_data: Path) -> None:
    content = part(real_data, HTSTEP, "cases")
    (case,) = (case for case in content["cases"] if case["name"] == "prediction_outside_split")
    case["predictions"].pop()
    (group,) = compare(content | {"cases": [case]})
    assert group.worst == math.inf


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "JSONDecodeError: Expecting property name"),
        ("[1]", "ValueError: it has no key of a known benchmark"),
        ("{}", "ValueError: it has no key of a known benchmark"),
        ('{"cases": []}', "ValueError: it has no key of a known benchmark"),
        ('{"cases": [{}]}', "KeyError: 'expected'"),
        ('{"cases": [{"task": "cooking", "expected": {}}]}', "KeyError: 'cooking'"),
        ('{"metric_cases": [{"expected_percent": {}}]}', "KeyError: 'pred'"),
        ('{"metric_cases": [{}], "other_cases": [{"expected": 1}]}', "ValueError: its key 'other_cases' is not known"),
        ("", "No such file"),
    ],
)
def test_another_file_is_one_line(text: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    if text:
        Path("other.json").write_text(text)
    assert main(["other.json"]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"other.json cannot be compared: .*{re.escape(reason)}.*\n", error)


def test_it_is_a_program(real_data: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden", real_data / HTSTEP], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("cases: 24 cases")
    assert subprocess.run([sys.executable, "-m", "tests.golden"], cwd=ROOT, capture_output=True).returncode == 2
