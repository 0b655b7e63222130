"""HiREST on a small release: predictions, fits, scores, tables and the page, and what runs again."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.hirest.synthetic import CONFIG, QUERIES, recordings, write_bank, write_releases
from tests.benchmarks.tower import BACKBONES
from tests.workflow.runs import Study, by_entry

pytestmark = pytest.mark.slow
NAMES = ("table2", "table3", "table4", "table4b", "table5", "table6")
ABSENT = (
    *("eva-clip-1", "eva-clip-4", "eva-clip-10", "eva-clip-20"),
    *("minilm-moments", "minilm-segments", "uniform-1", "ssim-85"),
)
"""Each has a line more of its kind, which is computed."""
SMALL: dict[str, Any] = CONFIG | {
    "features": {"eva_clip": CONFIG["features"]["eva_clip"]},
    "entries": {name: {"kind": "files", "settings": {}} for name in ABSENT},
    "joint": {"init": "random", "epochs": 1, "layers": 1, "hidden": 48, "beam": 1, "seeds": [0]},
    "metrics": {"bootstrap_samples": 100, "meteor": False},
    "files": {"bmt-fine-tuned": "predictions", "swinbert": "predictions", "clip-fine-tuned-20": "predictions"},
}
"""Of two CLIPs the rows of one, and some predictions of the user's."""
STUDY = Study("hirest", SMALL, {"backbones": BACKBONES})
TABLES = STUDY.results(*(f"{name}.csv" for name in NAMES))
PAGE = "results/hirest/report.html"


def write_predictions() -> None:
    """Write what is true as predictions, of rankings the query's first video before all others."""
    folder = Path("predictions")
    folder.mkdir()
    known = [each for each in recordings() if each.split != "train" and each.clip]
    moments: dict[str, Any] = {}
    for each in known:
        moments.setdefault(each.query, {})[f"{each.video}.mp4"] = {"bounds": list(each.bounds)}
    segments = {f"{each.video}.mp4": {"bounds": [step[:2] for step in each.steps]} for each in known}
    captions = {f"{each.video}.mp4": {"captions": [{"sentence": step[2]} for step in each.steps]} for each in known}
    videos = [f"{each.video}.mp4" for each in recordings() if each.split == "test"]
    ranked = {
        query: {"videos": videos, "scores": [float(video == f"test-{place}-0.mp4") for video in videos]}
        for place, query in enumerate(QUERIES["test"])
    }
    for name, content in {
        "moment_retrieval": moments,
        "moment_segmentation": segments,
        "step_captioning": captions,
        "video_retrieval": ranked,
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def write(folder: Path) -> None:
    """Write the releases, predictions, and planted features."""
    write_releases()
    write_predictions()
    write_bank(folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder in which the small study's tables and page are made."""
    return STUDY.whole(tmp_path_factory, write, *TABLES, PAGE, "results/hirest/all")


def numbers(folder: Path, table: str) -> dict[tuple[str, str], dict[str, str]]:
    return by_entry(folder, *STUDY.results(f"{table}.csv"))


def test_every_line_has_a_number_or_says_what_it_needs(whole: Path) -> None:
    for name in NAMES:
        for (entry, metric), row in numbers(whole, name).items():
            if not row["value"]:
                assert row["status"] == "needs", (entry, metric)
                assert row["command"], (entry, metric)
    assert STUDY.fits(whole) == ["joint", "joint-silent"]
    found = numbers(whole, "table3")
    assert found["joint", "val_r_05"]["status"] == "ours"
    assert found["joint", "test_r_05"]["note"].startswith("needs release:hirest/labels")
    assert "weights:hirest-joint" in found["joint-released", "val_r_05"]["note"]
    assert found["bmt", "val_r_05"]["note"] == "no method here; needs predictions:bmt"


def test_what_is_planted_is_found(whole: Path) -> None:
    retrieved, moments, captions = (numbers(whole, name) for name in ("table2", "table3", "table5"))
    assert float(retrieved["eva-clip-32", "r1"]["value"]) > 80 > float(retrieved["random", "r1"]["value"])
    assert float(moments["eva-clip-drop", "val_r_07"]["value"]) > 80 > float(moments["whole", "val_r_07"]["value"])
    assert {moments["bmt-fine-tuned", f"{split}_r_07"]["value"] for split in ("val", "test_507")} == {"100.0000"}
    assert float(captions["swinbert", "val_rouge_l"]["value"]) == 100
    assert float(captions["frequent", "val_rouge_l"]["value"]) < 60


def test_an_incomplete_pool_is_counted(whole: Path) -> None:
    row = numbers(whole, "table2")["tfidf-retrieval", "r1"]
    assert (row["pool_used"], row["pool_listed"], row["n_queries"]) == ("21", "23", "6")
    assert "pool: 21 of 23 evaluated" in row["note"]


def test_the_page_has_steps_over_time(whole: Path) -> None:
    page = (whole / PAGE).read_text()
    assert "Moment segmentation" in page
    assert "Segments of val-0-0 over time: annotated" in page


def test_only_what_depends_on_a_change_runs_again(copied: Path) -> None:
    assert STUDY.run(copied, *TABLES, PAGE) == []
    scored = STUDY.run(copied, *TABLES, dry=True, metrics=SMALL["metrics"] | {"preprocess_moment_bounds": False})
    kinds = {job.split()[1] for job in scored if job.startswith("score ")}
    assert {"uniform-7", "truth", "joint"} <= kinds
    assert not kinds & {"frequent", "middle-70", "random"}
    assert not [job for job in scored if job.startswith(("fit ", "predict "))]
    (copied / "predictions/step_captioning.json").write_text("{}")
    assert {job.split()[1] for job in STUDY.run(copied, *TABLES, dry=True) if job.startswith("predict ")} == {
        "bmt-fine-tuned",
        "swinbert",
    }
    heard = STUDY.run(copied, *TABLES, dry=True, joint=SMALL["joint"] | {"fusion": "sum"})
    assert {job.split()[1] for job in heard if job.startswith("fit ")} == {"joint", "joint-silent"}
