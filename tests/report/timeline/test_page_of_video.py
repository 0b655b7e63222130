"""The timeline in headless Chromium: what a reader sees and does."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from stepline.asr.transcript import Sentence
from stepline.benchmark.timed import Timed, judge
from stepline.report.timeline.track import Track
from tests.browser import PHONE
from tests.media.clips import make
from tests.report.conftest import Opening
from tests.report.timeline.video import made_up, timeline

HOSTILE = "</script><img src=x onerror=alert(1)>"
SAID = [Sentence(f"first we {HOSTILE} now", 1.0, 3.0), Sentence("then stir", 4.0, 6.5)]
SEGMENTS = "video,start_s,end_s,label\na,0,4,cut\na,5,9,stir\n"
TRUE = (Timed(0, 4, "cut"), Timed(5, 9, "stir"))
GUESSED = (Timed(0, 4, "cut"), Timed(5, 8, "cut"), Timed(9.2, 9.9, "stir"))
TRACKS = (
    Track(name="True steps", spans=TRUE),
    Track(name="guess", spans=judge(TRUE, GUESSED, labelled=True).predicted, rule="a rule", predicted=True),
)


@pytest.fixture(scope="module")
def shown(opening: Opening) -> Opening:
    @contextmanager
    def drawn(page: Path, **context: Any) -> Iterator[Any]:
        """Open a timeline and wait until it is drawn."""
        with opening(page, **context) as it:
            it.wait_for_function("window.timeline && timeline.view.width > 1")
            yield it

    return drawn


@pytest.fixture(scope="module")
def playable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten seconds of a video that browsers play."""
    with chdir(tmp_path_factory.mktemp("playable")):
        Path("clips").mkdir()
        make(Path("clips/a.mp4"), [Fraction(n, 25) for n in range(250)])
        pipeline = made_up(duration_s=10, shots=5, sentences=SAID, segments=SEGMENTS, gaps=[(9.5, 10, "x")])
        return timeline(pipeline, *TRACKS).absolute()


def at(page: Any) -> float:
    """Return the time of the player."""
    page.wait_for_function("!document.getElementById('video').seeking")
    return float(page.evaluate("document.getElementById('video').currentTime"))


def x_of(page: Any, time_s: float) -> float:
    """Return where a time is on the screen."""
    box = page.locator("#lanes").bounding_box()
    start, end = page.evaluate("[timeline.view.start, timeline.view.end]")
    return float(box["x"] + 1 + (time_s - start) / (end - start) * (box["width"] - 2))


def test_a_click_and_a_drag_seek_the_player(playable: Path, shown: Opening) -> None:
    with shown(playable) as page:
        page.wait_for_function("document.getElementById('video').readyState > 0")
        y = page.locator("#scale").bounding_box()["y"] + 10
        page.mouse.click(x_of(page, 7), y)
        assert at(page) == pytest.approx(7, abs=0.1)
        page.mouse.move(x_of(page, 2), y)
        page.mouse.down()
        page.mouse.move(x_of(page, 3), y)
        page.mouse.move(x_of(page, 4.5), y)
        page.mouse.up()
        assert at(page) == pytest.approx(4.5, abs=0.1)
        assert page.locator("#time").inner_text() == "0:04.5"


def test_keys_step_through_shots_sentences_segments_and_errors(playable: Path, shown: Opening) -> None:
    with shown(playable) as page:
        for keys, time_s in (
            ("s", 2), ("s", 4), ("Shift+S", 2), ("t", 4), ("g", 5), ("Shift+G", 0), ("e", 5), ("e", 9.2),
            ("ArrowLeft", 8.2), ("Shift+ArrowLeft", 0), ("Alt+ArrowRight", 0.1),
        ):  # fmt: skip
            page.keyboard.press(keys)
            assert page.evaluate("timeline.now()") == pytest.approx(time_s, abs=0.05), keys
        assert page.locator("#lanes").get_attribute("aria-valuetext").startswith("0:00. Shots: shot 1")
        page.keyboard.press(" ")
        page.wait_for_function("timeline.now() > 0.4")
        page.keyboard.press(" ")
        assert page.evaluate("document.getElementById('video').paused")


def test_wheel_keys_and_buttons_zoom_to_a_second_around_the_pointer(playable: Path, shown: Opening) -> None:
    with shown(playable) as page:
        page.mouse.move(x_of(page, 5), page.locator("#scale").bounding_box()["y"] + 10)
        for _ in range(12):
            page.mouse.wheel(0, -200)
        page.wait_for_function("timeline.view.end - timeline.view.start < 1.01")
        assert page.evaluate("(timeline.view.start + timeline.view.end) / 2") == pytest.approx(5, abs=0.5)
        page.keyboard.press("]")
        assert page.evaluate("timeline.view.start") > 4.9
        page.keyboard.press("0")
        assert page.evaluate("[timeline.view.start, timeline.view.end]") == [0, 10]
        page.get_by_role("button", name="Zoom in").click()
        assert page.evaluate("timeline.view.end - timeline.view.start") == 5


def test_two_fingers_zoom_and_one_seeks(playable: Path, shown: Opening) -> None:
    with shown(playable, **PHONE) as page:
        page.locator("#scale").scroll_into_view_if_needed()
        touch = page.context.new_cdp_session(page)
        y = page.locator("#scale").bounding_box()["y"] + 10

        def fingers(kind: str, *at: float) -> None:
            points = [{"x": x, "y": y, "id": finger} for finger, x in enumerate(at)]
            touch.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})

        fingers("Start", x_of(page, 5))
        fingers("End")
        assert page.evaluate("timeline.now()") == pytest.approx(5, abs=0.2)
        fingers("Start", 175, 215)
        for apart in (30, 40, 60, 80):
            fingers("Move", 195 - apart, 195 + apart)
        fingers("End")
        page.wait_for_function("timeline.view.end - timeline.view.start < 4")
        assert page.evaluate("(timeline.view.start + timeline.view.end) / 2") == pytest.approx(5, abs=1)


def test_under_the_pointer_the_moment_is_described(playable: Path, shown: Opening) -> None:
    with shown(playable) as page:
        page.mouse.move(x_of(page, 6), page.locator("#scale").bounding_box()["y"] + 10)
        text = page.locator("#hover").inner_text()
        for part in ("0:06.0", "shot 4", "then stir", "≠ wrong label: cut", "Segments: stir", "histogram"):
            assert part in text
        assert page.locator("#hover img").count() == 1


def test_a_step_is_filtered_and_stepping_follows(playable: Path, shown: Opening) -> None:
    with shown(playable) as page:
        before = page.locator("#lanes").screenshot()
        page.locator("#label").select_option("stir")
        page.wait_for_timeout(200)
        assert page.locator("#lanes").screenshot() != before
        page.keyboard.press("g")
        assert page.evaluate("timeline.now()") == pytest.approx(5, abs=0.05)


def test_what_is_said_ends_no_script(playable: Path) -> None:
    assert HOSTILE not in playable.read_text()


def test_what_is_said_is_text_and_comes_as_subtitles(playable: Path, shown: Opening) -> None:
    assert HOSTILE not in playable.read_text()
    with shown(playable) as page:
        assert page.locator("img[src=x]").count() == 0
        assert json.loads(page.locator("#data").inner_text())["lanes"][2]["spans"][0][2] == f"first we {HOSTILE} now"
        with page.expect_download() as download:
            page.get_by_role("link", name="SRT").click()
        assert download.value.suggested_filename == "a.srt"
        text = Path(download.value.path()).read_text()
        assert text.startswith(f"1\n00:00:01,000 --> 00:00:03,000\nfirst we {HOSTILE} now\n")


def test_lists_seek_an_address_opens_at_its_time_and_the_time_is_copied(playable: Path, shown: Opening) -> None:
    with shown(playable, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.locator("section[aria-label=Lists]").get_by_role("link", name="0:05", exact=True).first.click()
        assert page.evaluate("timeline.now()") == pytest.approx(5, abs=0.01)
        assert page.url.endswith("#t=5")
        page.reload()
        page.wait_for_function("window.timeline && timeline.now() === 5")
        page.evaluate("timeline.seek(7.5)")
        page.get_by_role("button", name="Copy time").click()
        page.wait_for_function("document.getElementById('copied').textContent.includes('0:07.5')")


@pytest.mark.parametrize("context", [{}, PHONE])
def test_nothing_is_cut_off_and_the_lanes_are_drawn(playable: Path, context: dict[str, Any], shown: Opening) -> None:
    with shown(playable, **context) as page:
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.wait_for_timeout(300)
        shades = page.evaluate(
            """[...document.querySelectorAll('#lanes canvas')].map(each => {
              const pixels = each.getContext('2d').getImageData(0, 0, each.width, each.height).data;
              return new Set(new Uint32Array(pixels.buffer)).size;
            })"""
        )
        assert len(shades) == 10
        assert min(shades) > 1


def test_print_and_a_page_without_script_show_overview_and_lists(
    playable: Path, shown: Opening, opening: Opening
) -> None:
    with shown(playable) as page:
        assert page.locator("section.static").is_hidden()
        page.emulate_media(media="print")
        assert page.locator("section.static svg").count() == 6
        assert page.locator("section.static").is_visible()
        assert page.locator("#lanes").is_hidden()
    with opening(playable, java_script_enabled=False) as page:
        assert page.locator("section.static").is_visible()
        assert page.locator("#lanes").is_hidden()
        assert "wrong label" in page.content()


def test_a_file_that_browsers_do_not_play_has_pictures_that_follow(tmp_path: Path, shown: Opening) -> None:
    page_file = timeline(made_up(duration_s=10, shots=5, sentences=SAID, path="other/old video.avi", codec="mpeg4"))
    with shown(page_file) as page:
        warning = page.locator("#unplayed").inner_text()
        assert "browsers do not play AVI (mpeg4)" in warning
        assert "ffmpeg -i 'other/old video.avi' -c:v libx264" in warning
        before = page.locator("#poster").get_attribute("src")
        page.keyboard.press("s")
        page.wait_for_function("before => document.getElementById('poster').src !== before", arg=before)
        page.get_by_role("button", name="Play").click()
        page.wait_for_function("timeline.now() > 2.2")
        page.get_by_role("button", name="Pause").click()
    shutil.copyfile("other/old video.avi", page_file.with_suffix(".mp4"))
    assert '<video id="video" src="a.mp4"' in timeline(made_up(duration_s=9, shots=3, sentences=SAID)).read_text()


def test_a_file_that_this_browser_cannot_read_says_so(tmp_path: Path, shown: Opening) -> None:
    with shown(timeline(made_up(duration_s=10, shots=5, sentences=()))) as page:
        page.wait_for_function("!document.getElementById('unplayed').hidden")
        assert "This browser cannot play the file" in page.locator("#unplayed").inner_text()
        assert page.locator("#poster").is_visible()


def test_an_address_is_opened_at_the_moment(tmp_path: Path, shown: Opening) -> None:
    pipeline = made_up(
        duration_s=100, shots=5, sentences=SAID, path="other/a.avi", url="https://www.youtube.com/watch?v=xxxxxxxxxxx"
    )
    with shown(timeline(pipeline)) as page:
        page.evaluate("timeline.seek(61.5)")
        link = page.get_by_role("link", name="Open at this moment").get_attribute("href")
        assert link == "https://www.youtube.com/watch?v=xxxxxxxxxxx&t=61s"


@pytest.mark.slow
def test_two_hours_stay_fluid(tmp_path: Path, shown: Opening) -> None:
    said = [Sentence(f"sentence {n} says what is done now", 4.0 * n, 4.0 * n + 3.5) for n in range(1800)]
    lines = [f"a,{30 * n},{30 * n + 24},step {n % 20}" for n in range(240)]
    segments = "\n".join(["video,start_s,end_s,label", *lines, ""])
    page_file = timeline(made_up(duration_s=7200, shots=240, sentences=said, segments=segments))
    text = page_file.read_text()
    assert text.count("data:image/jpeg") == 240
    assert not re.search("of 240 shots", text)
    with shown(page_file) as page:
        took_ms = page.evaluate(
            """async () => {
              const took = [];
              for (let frame = 0; frame < 60; frame++) {
                timeline.zoom(frame < 30 ? .75 : 1 / .75, 3600);
                await new Promise(requestAnimationFrame);
                const before = performance.now();
                timeline.draw();
                took.push(performance.now() - before);
              }
              return took.sort((a, b) => a - b)[30];
            }"""
        )
        assert took_ms < 33, f"a frame takes {took_ms:.1f} ms"
