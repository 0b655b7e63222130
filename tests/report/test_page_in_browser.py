"""The page of a data set in headless Chromium."""

from pathlib import Path

import pytest

from stepline.asr.transcript import Sentence
from stepline.availability import Record, read_availability, read_manifest, write_availability, write_manifest
from stepline.paths import availability, manifest, media
from stepline.pipeline import Pipeline
from stepline.report.page import write_page
from tests.browser import PHONE, opened
from tests.report.timeline.video import made_up


@pytest.fixture
def page_file() -> Path:
    """The page of three videos: one that was read, and two that failed."""
    pipeline = made_up(duration_s=10, shots=5, sentences=[Sentence("stir", 1.0, 2.0)])
    broken = {"b10": 5.0, "b9": 7.0}
    for video in broken:
        Path(f"clips/{video}.mp4").write_bytes(b"x")
    records = [Record(video=v, status="failed", reason=f"{v} is broken", duration_s=s) for v, s in broken.items()]
    write_availability(
        availability("mine", "000"), [*read_availability(availability("mine", "000")).values(), *records]
    )
    failed = {each.video: {"status": "failed", "reason": each.reason} for each in records}
    write_manifest(manifest(media("mine"), "000"), read_manifest(manifest(media("mine"), "000")) | failed)
    page = Path("results/mine/report.html")
    write_page(Pipeline.of(pipeline.config, "mine"), page)
    return page


def test_videos_are_filtered_sorted_and_opened(page_file: Path) -> None:
    with opened(page_file) as page:
        names = page.locator("tbody tr:visible th")
        assert [name.split("\n")[0] for name in names.all_inner_texts()] == ["a", "b10", "b9"]
        page.get_by_label("Filter").fill("broken 9")
        assert [name.split("\n")[0] for name in names.all_inner_texts()] == ["b9"]
        assert page.locator(".tools output").inner_text() == "1 of 3 rows"
        page.get_by_label("Filter").fill("")
        for order in (["a", "b9", "b10"], ["b10", "b9", "a"]):
            page.get_by_role("button", name="video").click()
            assert [name.split("\n")[0] for name in names.all_inner_texts()] == order
        assert page.locator("[aria-sort=descending]").inner_text().startswith("video")
        page.get_by_role("link", name="a", exact=True).click()
        page.wait_for_function("window.timeline")


def test_on_a_phone_nothing_is_cut_off(page_file: Path) -> None:
    with opened(page_file, **PHONE) as page:
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.get_by_text("b9 is broken").is_visible()
        assert page.evaluate(
            "[...document.querySelectorAll('td, th')].every(each => each.getBoundingClientRect().right <= innerWidth)"
        )
