"""The whole run on the demo study, stage by stage, against what its builder knows."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("av")
pytest.importorskip("pocketsphinx")

from stepline.io import read_json
from tests.browser import opened
from tests.conftest import DEMO, HEARD, ONE_WINDOW, SUBSET, snakemake
from tests.demo import truth as checks
from tests.workflow.runs import messages

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(demo_run: Path) -> dict[str, Any]:
    content: dict[str, Any] = read_json(demo_run / "results/demo/truth.json")
    return {**content, "videos": {video: content["videos"][video] for video in HEARD}}


@pytest.mark.parametrize("stage", ["videos", "shots", "words", "features", "steps", "samples", "table"])
def test_the_stage_finds_what_was_planted(stage: str, demo_run: Path, built: dict[str, Any]) -> None:
    getattr(checks, f"check_{stage}")(demo_run, built)


def swap(listed: list[dict[str, Any]], key: str) -> None:
    """Swap what the first two of a list's steps have."""
    values = {1: listed[1][key], 2: listed[2][key]}
    listed[1][key], listed[2][key] = values[2], values[1]


def relabel(video: dict[str, Any]) -> None:
    for each in video["labels"]:
        each["label"] = {1: 2, 2: 1}.get(each["label"], each["label"])


def later(video: dict[str, Any]) -> None:
    for sentence in video["words"]:
        sentence.update(start_s=sentence["start_s"] + 1000, end_s=sentence["end_s"] + 1000)


CHANGES: dict[str, tuple[Callable[[Any], object], str]] = {
    "videos": (lambda truth: truth["sha256"].update({"demo/videos/soup.mp4": "0" * 64}), "soup: the record's sha256"),
    "shots": (lambda truth: truth["videos"]["soup"]["shots"][1].update(start_frame=10**6), "soup: .* were not found"),
    "words": (lambda truth: later(truth["videos"]["soup"]), "soup: .* sentences were not heard"),
    "features": (lambda truth: relabel(truth["videos"]["soup"]), "soup: .* nearest to their step's preview"),
    "steps": (lambda truth: swap(truth["videos"]["soup"]["steps"], "caption"), "soup, step 1: caption"),
    "samples": (lambda truth: relabel(truth["videos"]["soup"]), "soup: sample .* has label"),
}


@pytest.mark.parametrize("stage", CHANGES)
def test_what_is_not_as_planted_is_noticed(stage: str, demo_run: Path, built: dict[str, Any]) -> None:
    change, message = CHANGES[stage]
    other = deepcopy(built)
    change(other)
    with pytest.raises(AssertionError, match=message):
        getattr(checks, f"check_{stage}")(demo_run, other)


def test_the_configuration_as_it_stands_asks_for_more_windows_and_seeds(demo_run: Path, demo_mirror: Path) -> None:
    options = "--dry-run", *DEMO, "--config", f"demo={{{SUBSET}}}", "--", "results/demo/table2.csv"
    done = snakemake(*options, folder=demo_run, STEPLINE_MIRROR=str(demo_mirror))
    assert done.returncode == 0, done.stderr
    jobs = messages(done)
    assert [job for job in jobs if job.startswith("fit ")] == [
        f"fit 2a-minilm-last-layer on demo at {context}s, seed {seed}" for context in (2, 4, 8) for seed in (0, 1, 2)
    ]
    assert {"predict 2a-tfidf-zero-shot on demo at 8s", "predict 2b-histogram-zero-shot on demo at 2s"} <= set(jobs)
    assert not [job for job in jobs if "shard 000" in job], "a stage before the windows"


def test_the_results_can_be_looked_at(demo_run: Path) -> None:
    for name in ("table2.csv", "table2.md", "report.html"):
        assert (demo_run / "results/demo" / name).stat().st_size > 1000, name


def test_snakemakes_report_opens_each_category_with_its_results(
    demo_run: Path, demo_mirror: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    options = *DEMO, "--config", f"demo={{{ONE_WINDOW}}}", "--report", str(report)
    targets = "results/demo/all", "results/demo/videos.csv"
    done = snakemake(*options, "--", *targets, folder=demo_run, STEPLINE_MIRROR=str(demo_mirror))
    assert done.returncode == 0, done.stderr
    with opened(report) as page:
        menu = page.locator("nav").first
        for category, count, one in (
            ("Pages", 2, "report.html: All tables, with pictures"),
            ("Tables", 5, "table2.csv: Step recognition; Intra-video retrieval"),
            ("Figures", 5, "table2.svg: Step recognition; Intra-video retrieval"),
        ):
            menu.get_by_text(category, exact=True).click()
            row = menu.get_by_role("row").filter(has_text=one)
            row.wait_for()
            assert menu.locator("tbody tr").count() == count, category
            row.locator("a").last.click()
            menu.get_by_text("Description").wait_for()
            page.reload()
        assert page.locator("canvas, svg").count(), "the graph of rules"
