"""What is computed again after a change: all that it concerns, and nothing else."""

import json
from pathlib import Path

import pytest

from tests.workflow.runs import SMALL, TABLE, rows, run, spacewalk

pytestmark = pytest.mark.slow
TFIDF = "2a-tfidf-zero-shot on v2 at 60s"


def test_another_order_of_keys_does_nothing(small: Path, real_data: Path) -> None:
    other = json.dumps(dict(reversed(SMALL.items())))
    assert other != json.dumps(SMALL)
    assert run(TABLE, "--config", f"spacewalk={other}", folder=small, mirror=real_data) == []


def test_an_entrys_setting_concerns_the_entry_and_the_table(small: Path, real_data: Path) -> None:
    changed = spacewalk(entries={"2a-tfidf-zero-shot": {"settings": {"fit": "train"}}})
    assert run(TABLE, *changed, folder=small, mirror=real_data) == [f"predict {TFIDF}", TABLE, f"score {TFIDF}"]
    own, train = (
        [row["value"] for row in rows(small) if row["method"] == method] for method in ("TF-IDF", "TF-IDF (train)")
    )
    assert own == train


def test_a_metrics_option_scores_again_and_predicts_nothing(small: Path, real_data: Path) -> None:
    predictions = {
        path: path.stat().st_mtime_ns for path in (small / "results/spacewalk/predictions").rglob("*.parquet")
    }
    before = {row["method"]: row["value"] for row in rows(small) if row["metric"] == "map"}
    jobs = run(TABLE, *spacewalk(metrics={"average_precision": "uninterpolated"}), folder=small, mirror=real_data)
    assert len(jobs) == len(predictions) + 1 == 8
    assert all(job == TABLE or job.startswith("score ") for job in jobs)
    assert {path: path.stat().st_mtime_ns for path in predictions} == predictions
    after = [row for row in rows(small) if row["metric"] == "map" and row["value"]]
    assert all(float(row["value"]) < float(before[row["method"]]) for row in after)
    assert all("average_precision=uninterpolated" in row["options"].split(";") for row in after)


def test_a_prediction_that_was_removed_is_made_again_where_it_is_asked_for(small: Path, real_data: Path) -> None:
    path = small / "results/spacewalk/predictions/v2/2a-tfidf-zero-shot/60s.parquet"
    before = path.read_bytes()
    path.unlink()
    target = str(path.relative_to(small))
    assert run(target, *spacewalk(), folder=small, mirror=real_data) == [f"predict {TFIDF}"]
    assert path.read_bytes() == before
    assert run(TABLE, *spacewalk(), folder=small, mirror=real_data) == []


def test_a_subset_is_marked_and_never_exact(small: Path) -> None:
    computed = [row for row in rows(small) if row["value"] and row["status"] != "reference"]
    assert {row["status"] for row in computed} == {"ours", "not comparable"}
    for row in computed:
        assert "3 named videos" in row["note"]
        assert (row["n_videos"], row["n_listed"]) == ("1", "6"), row["method"]
        assert row["difference"] == ""
    assert "3 named videos" in (small / TABLE).with_suffix(".md").read_text()
