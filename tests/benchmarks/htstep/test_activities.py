"""Table 7: activities of scores that are made up, beside the paper's."""

import csv
from pathlib import Path
from typing import Any

import pytest

from stepline.benchmark import Job
from stepline.benchmarks.htstep.activities import HEADER, write_activities
from stepline.benchmarks.htstep.benchmark import Htstep
from tests.benchmarks.htstep.conftest import plan
from tests.benchmarks.htstep.synthetic import write_releases

pytestmark = pytest.mark.usefixtures("banks")


def written(
    monkeypatch: pytest.MonkeyPatch, scores: dict[str, dict[str, float]], *others: str, **changes: Any
) -> list[dict[str, str]]:
    """Return the lines that are written where entries have these average precisions of activities on val_seen.

    others: splits with the same numbers.

    Those per query are half of them.
    """

    def read_score(self: Htstep, job: Job) -> dict[str, Any]:
        per_video = scores.get(job.entry.id)
        if not per_video:
            return {"metrics": {}, "needs": []}
        metric = {"value": 42.0, "per_video": per_video}
        query = {"value": 21.0, "per_video": {activity: value / 2 for activity, value in per_video.items()}}
        metrics = {"val_seen_map": metric, "val_seen_map_03": metric, "val_seen_query_map": query}
        metrics |= {f"{split}_{name}": metric for split in others for name in ("map", "query_map")}
        return {"metrics": metrics, "needs": []}

    monkeypatch.setattr(Htstep, "read_score", read_score)
    write_activities(plan(changes))
    with Path("results/htstep/table7.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_line_of_each_activity_reading_and_split_beside_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = written(monkeypatch, {"place": {"Make Tea": 12.34567, "Clean Flounder": 1.0}, "aft": {"Make Tea": 0.0}})
    assert tuple(lines[0]) == HEADER
    ours = [line for line in lines if line["value"]]
    assert {line["split"] for line in ours} == {"val_seen"}
    assert {(line["activity"], line["entry"], line["reading"]): line["value"] for line in ours} == {
        ("Make Tea", "place", "official"): "12.3457",
        ("Make Tea", "place", "per query"): "6.1728",
        ("Make Tea", "aft", "official"): "0.0000",
        ("Make Tea", "aft", "per query"): "0.0000",
        ("Clean Flounder", "place", "official"): "1.0000",
        ("Clean Flounder", "place", "per query"): "0.5000",
        ("mAP", "place", "official"): "42.0000",
        ("mAP", "place", "per query"): "21.0000",
        ("mAP", "aft", "official"): "42.0000",
        ("mAP", "aft", "per query"): "21.0000",
    }
    names = [*dict.fromkeys(line["activity"] for line in lines)]
    assert (len(names), names[-2:]) == (52, ["Make Tea", "mAP"])
    shown = [line.split(" | ")[0].strip("| ") for line in Path("results/htstep/table7.md").read_text().splitlines()]
    assert [shown.count(name) for name in names] == [1] * len(names)
    printed = [line for line in lines if line["paper"]]
    assert {(line["entry"], line["reading"], line["split"], line["value"]) for line in printed} == {
        (entry, "official", "test_seen", "") for entry in ("actionformer", "mt-bce-vina")
    }


def test_the_markdown_shows_three_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    written(monkeypatch, {"place": {"Make Tea": 12.34567}, "aft": {"Make Tea": 5.0}}, "test_unseen", "test_seen")
    text = Path("results/htstep/table7.md").read_text()
    assert "12.35" in next(line for line in text.splitlines() if "Make Tea" in line)
    columns = (
        "place, val_seen | place, test_seen | place, test_unseen | actionformer, test_seen | mt-bce-vina, test_seen"
    )
    assert f"| activity | {columns} |" in text
    assert "| mAP | 42.00 | 42.00 | 42.00 | (25.4) | (29.8) |" in text
    assert "aft," not in text


def test_the_paper_s_numbers_are_by_the_official_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = written(monkeypatch, {"actionformer": {"Deep Fry a Turkey": 5.0}}, "test_seen")
    found = [line for line in lines if (line["activity"], line["entry"]) == ("Deep Fry a Turkey", "actionformer")]
    assert {(line["split"], line["reading"]): line["paper"] for line in found} == {
        ("val_seen", "official"): "",
        ("val_seen", "per query"): "",
        ("test_seen", "official"): "51.56",
        ("test_seen", "per query"): "",
    }


def test_a_number_of_the_paper_says_what_its_own_entry_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("datasets/htstep/narrations/release.json").unlink()
    lines = written(monkeypatch, {})
    assert {(line["entry"], line["note"]) for line in lines} == {
        ("actionformer", "needs labels:htstep/test_seen"),
        ("mt-bce-vina", "needs release:htstep/narrations, labels:htstep/test_seen"),
    }


def test_only_entries_of_the_configured_tables_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = written(monkeypatch, {"aft": {"Make Tea": 5.0}}, tables=["table6"])
    assert not [line for line in lines if line["value"]]


def test_numbers_of_made_up_annotation_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Htstep, "made_up", True)
    lines = written(monkeypatch, {"place": {"Make Tea": 12.34567}})
    assert {line["note"] for line in lines if line["value"]} == {"the annotation is made up: no result"}
    assert {line["note"] for line in lines if not line["value"]} == {"needs labels:htstep/test_seen"}
    assert "made up: no result" in Path("results/htstep/table7.md").read_text()
    write_releases("val_unseen")
    assert {line["note"] for line in written(monkeypatch, {})} == {""}
