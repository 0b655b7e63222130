"""What a search found, in the terminal and on the page: times, pictures, links, and nothing from elsewhere."""

import base64
import io
import json
import re
import shlex
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("av")
image = pytest.importorskip("PIL.Image")

from stepline import paths  # noqa: E402
from stepline.asr import transcript  # noqa: E402
from stepline.asr.transcript import Sentence  # noqa: E402
from stepline.availability import Record, write_availability, write_manifest  # noqa: E402
from stepline.backbones.sentence import model_files  # noqa: E402
from stepline.config import validate  # noqa: E402
from stepline.features import store  # noqa: E402
from stepline.io import write_bytes, write_table, write_text  # noqa: E402
from stepline.pipeline import Pipeline  # noqa: E402
from stepline.report.clock import clock  # noqa: E402
from stepline.report.search import hints, lines  # noqa: E402
from stepline.report.search import write_page as write  # noqa: E402
from stepline.search import embedded  # noqa: E402
from stepline.search.searcher import SPOKEN, Found, Match, Ranked, Searcher, Spread  # noqa: E402
from stepline.search.steps import Step  # noqa: E402
from tests.browser import PHONE  # noqa: E402
from tests.media.clips import make  # noqa: E402
from tests.report.conftest import Opening  # noqa: E402

HOSTILE = "<script>alert('x')</script> & \"co\""
GREY = b"a picture of a shot"


def ranked(video: str, peak_s: float, *steps: Step, score: float = 0.5) -> Ranked:
    """Return a video whose moment is its steps, or ten seconds around the peak."""
    steps = steps or (Step(peak_s - 10, peak_s + 10),)
    start_s, end_s = steps[0].start_s, steps[-1].end_s
    return Ranked(video=video, score=score, peak_s=peak_s, start_s=start_s, end_s=end_s, steps=steps, steps_by=SPOKEN)


def found(*matches: Match, **more: object) -> Found:
    values = {
        "text": "cut the bread",
        "backbone": "minilm",
        "what": "speech, by minilm on the pocketsphinx transcripts",
        "similarity": "cosine",
        "searched": 2,
        "listed": 3,
        "unseen": (),
        "unsaid": (),
        "moments_by": "half of the sentences",
        "compared": "all 100 sentences were compared",
        "top": 10,
        "window_s": 10.0,
        "spread": Spread(rows=100, best=0.5, usual=0.1, expected=0.3),
        "videos": (ranked(matches[0].video, matches[0].time_s),),
        "matches": matches,
    }
    values |= more
    shown = {each.video for each in (*values["videos"], *values["matches"])}  # type: ignore[misc]
    values["curves"] = dict.fromkeys(shown, ((0.0, 20.0, 0.1), (20.0, 40.0, 0.5)))
    return Found(**values)  # type: ignore[arg-type]


class Loaded:
    """Of a search what its page asks for."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline, self.embedded = pipeline, None
        self.transcripts = SimpleNamespace(videos=(), language=lambda _: "en")


def write_page(pipeline: Pipeline, found: Found, again: str = "stepline search mine") -> Path:
    return write(Loaded(pipeline), found, again)  # type: ignore[arg-type]


@pytest.fixture
def pipeline() -> Pipeline:
    """The video a is red up to 20 s and blue then; its one picture is of the shot that ends there, at 10 s."""

    def picture(index: int) -> object:
        shown = np.zeros((36, 64, 3), np.uint8)
        shown[..., 0 if index < 40 else 2] = 255
        return shown

    Path("clips").mkdir()
    make(Path("clips/a b.mp4"), [Fraction(i, 2) for i in range(80)], picture=picture)
    shots = pa.table({"start_s": [0.0, 20.0], "end_s": [20.0, 40.0]})
    write_table(paths.shots("mine") / "a_b.parquet", shots)
    write_bytes(paths.thumbnails("mine") / "1.jpg", GREY)
    made = {"status": "present", "reason": "", "pictures": {"0": str(paths.thumbnails("mine") / "1.jpg")}}
    write_manifest(paths.manifest(paths.thumbnails("mine"), "000"), {"a_b": made})
    write_availability(paths.availability("mine", "000"), [Record(video="a_b", status="present", path="clips/a b.mp4")])
    return Pipeline.of(validate({"datasets": {"mine": {"videos": "clips"}}}), "mine")


def data(page: Path) -> dict[str, Any]:
    """Return what the page shows."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text())
    assert found is not None
    return json.loads(found[1])  # type: ignore[no-any-return]


def cards(page: Path) -> list[dict[str, Any]]:
    """Return each match."""
    return [card for result in data(page)["results"] for card in result["matches"]]


def pictures(page: Path) -> list[bytes]:
    return [base64.b64decode((card["picture"] or "").partition(",")[2]) for card in cards(page)]


def colour(jpeg: bytes) -> str:
    red, _, blue = image.open(io.BytesIO(jpeg)).getpixel((80, 45))
    return "red" if red > blue else "blue"


NOWHERE = ranked("a_b", 39.0)


def test_a_picture_is_of_the_shot_or_of_the_match(pipeline: Pipeline) -> None:
    matches = [Match("a_b", time_s, 0.5) for time_s in (30.0, 12.0, 2.0, 21.0)]
    page = write_page(pipeline, found(*matches, videos=(NOWHERE,)))
    late, near, early, after = pictures(page)
    assert near == GREY
    assert [colour(late), colour(early), colour(after)] == ["blue", "red", "blue"]
    assert [card["note"] for card in cards(page)] == [""] * 4


def test_without_the_video_the_nearest_picture_says_its_time_and_none_is_said_so(pipeline: Pipeline) -> None:
    Path("clips/a b.mp4").unlink()
    Path("clips/c.mp4").touch()
    matches = Match("a_b", 30.0, 0.5), Match("a_b", 11.0, 0.4), Match("c", 1.0, 0.3)
    page = write_page(pipeline, found(*matches, videos=(NOWHERE,)))
    assert pictures(page) == [GREY, GREY, b""]
    notes = [card["note"] for card in cards(page)]
    assert notes == ["picture at 0:10", "", "no picture: the video file no longer exists"]
    assert not any(data(page)["videos"]["a_b"][key] for key in ("file", "path", "address"))
    Path("clips/a b.mp4").write_text("no video")
    (paths.thumbnails("mine") / "1.jpg").unlink()
    (card,) = cards(write_page(pipeline, found(Match("a_b", 12.0, 0.5), videos=(NOWHERE,))))
    assert (card["picture"], card["note"]) == (None, "no picture"), "a damaged video stops nothing"


def test_the_page_knows_the_file_or_an_address_without_secrets(pipeline: Pipeline, opening: Opening) -> None:
    page = write_page(pipeline, found(Match("a_b", 12.25, 0.5)))
    shown = data(page)["videos"]["a_b"]
    assert (shown["file"], shown["path"]) == ("../../../clips/a%20b.mp4", "clips/a b.mp4")
    assert (page.parent / "../../../clips/a b.mp4").resolve().is_file()

    urls = {
        "tube": "https://www.youtube.com/watch?v=xxxxxxxxxxx",
        "short": "https://youtu.be/xxxxxxxxxxx",
        "file": "https://example.org/a.mp4",
        "secret": "https://user:word@example.org/a.mp4",
        "token": "https://example.org/a.mp4?token=abc",
    }
    write_text("list.csv", "video,url\n" + "".join(f"{video},{url}\n" for video, url in urls.items()))
    listed = Pipeline.of(validate({"datasets": {"talks": {"kind": "list", "videos": "list.csv"}}}), "talks")
    page = write_page(listed, found(*(Match(video, 3725.9, 0.5) for video in urls)))
    assert {video: each["address"] for video, each in data(page)["videos"].items()} == {
        "tube": ["https://www.youtube.com/watch?v=xxxxxxxxxxx&t=", "s"],
        "short": ["https://youtu.be/xxxxxxxxxxx?t=", "s"],
        "file": ["https://example.org/a.mp4#t=", ""],
        "secret": None,
        "token": None,
    }
    assert "user:word" not in page.read_text()
    assert "token=abc" not in page.read_text()
    with opening(page) as shown:
        link = shown.locator("a.picture").first.get_attribute("href")
        assert link == "https://www.youtube.com/watch?v=xxxxxxxxxxx&t=3715s"
        assert "not kept and cannot be played" in shown.locator("[data-video=secret]").text_content()


def test_the_page_is_escaped_and_needs_nothing_else_and_is_the_same_again(pipeline: Pipeline, opening: Opening) -> None:
    videos = (ranked("a_b", 30.0, Step(2.0, 21.5, HOSTILE)),)
    hostile = found(Match("a_b", 12.0, 0.5, HOSTILE), text=HOSTILE, unseen=(HOSTILE,), videos=videos)
    page = write_page(pipeline, hostile, f"stepline search {HOSTILE}")
    content = page.read_bytes()
    assert b"<script>alert" not in content
    assert b"minilm does not know these words, or truncates the text before them: &lt;script&gt;" in content.replace(
        b"Minilm", b"minilm"
    )
    assert b"with the highest score within 10 s in its video" in content
    with opening(page) as shown:
        assert shown.locator("h1").inner_text() == f"“{HOSTILE}”"
        assert HOSTILE in shown.locator("#results").text_content()
        again = shown.locator("#again code").inner_text()
        assert again.startswith(f"stepline search {HOSTILE} '<script>alert('\"'\"'x")
    page.unlink()
    assert write_page(pipeline, hostile, f"stepline search {HOSTILE}") == page
    assert page.read_bytes() == content
    assert re.fullmatch(r"script-alert-x-script-co-[0-9a-f]{8}\.html", page.name)


def test_each_question_has_a_page_of_its_own(pipeline: Pipeline) -> None:
    moment = Match("a_b", 12.0, 0.5)
    asked = (
        {},
        {"text": "cut the bread!"},
        {"backbone": "mpnet"},
        {"among": ("a_b",)},
        {"text": "切面包"},
        {"text": "面"},
    )
    pages = {write_page(pipeline, found(moment, **each)).name for each in asked}
    pages.add(write_page(pipeline, found(moment), "stepline search mine --top 3").name)
    assert len(pages) == len(asked) + 1
    assert all(re.fullmatch(r"(cut-the-bread|search)-[0-9a-f]{8}\.html", page) for page in pages)


def test_nothing_is_listed_twice(pipeline: Pipeline, opening: Opening) -> None:
    steps = Step(2.0, 21.5, "cut"), Step(21.5, 38.0)
    peak, other, elsewhere = Match("a_b", 12.0, 0.9), Match("a_b", 30.0, 0.8), Match("c", 1.0, 0.3)
    page = write_page(pipeline, found(peak, other, elsewhere, videos=(ranked("a_b", 12.0, *steps),)))
    first, second = data(page)["results"]
    assert (first["video"], first["best"]["time"]) == ("a_b", 12.0)
    assert [match["time"] for match in first["matches"]] == [30.0]
    assert base64.b64encode(GREY).decode() in first["picture"]
    assert (second["video"], [match["time"] for match in second["matches"]]) == ("c", [1.0])
    with opening(page) as shown:
        assert shown.locator("#results > li").count() == 2
        assert shown.locator(".steps button").all_text_contents() == ["0:02–0:21", "0:21–0:38"]
        assert "best at 0:12" in shown.locator("[data-video=a_b]").text_content()


def test_a_click_plays_the_moment_until_its_end(pipeline: Pipeline, opening: Opening) -> None:
    moment = ranked("a_b", 12.0, Step(11.0, 11.6))
    page = write_page(pipeline, found(Match("a_b", 30.0, 0.8), videos=(moment,)))
    playing = "(video => video && [video.currentTime, video.paused])(document.querySelector('video'))"
    with opening(page) as shown:
        shown.get_by_role("button", name="Play a_b, 0:11–0:11").click()
        shown.wait_for_function("document.querySelector('video')?.currentTime > 11.1")
        time_s, paused = shown.evaluate(playing)
        assert 11 <= time_s < 12
        shown.wait_for_function("document.querySelector('video').paused")
        time_s, _ = shown.evaluate(playing)
        assert 11.6 <= time_s < 12.3
        shown.get_by_role("button", name="Continue from here").click()
        shown.wait_for_function("document.querySelector('video').currentTime > 12.4")
        box = shown.locator("button.curve").bounding_box()
        shown.mouse.click(box["x"] + box["width"] * 0.75, box["y"] + 10)
        shown.wait_for_function("document.querySelector('video').currentTime > 30")
        time_s, paused = shown.evaluate(playing)
        assert 29.5 <= time_s < 31
        assert not paused


def test_what_no_browser_plays_keeps_its_picture_and_says_what_to_do(pipeline: Pipeline, opening: Opening) -> None:
    Path("clips/a b.mp4").write_bytes(b"RIFF    AVI LIST")
    page = write_page(pipeline, found(Match("a_b", 12.0, 0.8)))
    with opening(page) as shown:
        shown.locator("button.picture").click()
        shown.get_by_text("cannot play the file").wait_for()
        assert "ffmpeg -i 'clips/a b.mp4' -c:v libx264" in shown.locator(".side code").inner_text()
        assert shown.locator("button.picture img").is_visible()


def test_the_command_follows_what_is_typed_and_the_video(pipeline: Pipeline, opening: Opening) -> None:
    page = write_page(pipeline, found(Match("a_b", 12.0, 0.8), Match("c", 1.0, 0.3)))
    with opening(page) as shown:
        command = shown.locator("#again code")
        assert command.inner_text() == "stepline search mine 'cut the bread'"
        shown.get_by_label("Another text").fill("it's done")
        assert shlex.split(command.inner_text())[3:] == ["it's done"]
        shown.locator("#video").select_option("c")
        assert shlex.split(command.inner_text())[3:] == ["--video", "c", "it's done"]
        assert shown.locator("#results > li:visible").count() == 1
        assert "This page cannot search words: there are no transcripts." in shown.locator("form").inner_text()
        cut = shown.locator("[data-video=a_b] .actions code", has_text="ffmpeg").first.text_content()
        assert cut.startswith("ffmpeg -ss 2 -t 20 -i 'clips/a b.mp4' -c:v libx264 -pix_fmt yuv420p -c:a aac ")
        assert cut.endswith(" a_b-2-22.mp4")


@pytest.mark.parametrize("context", [{}, PHONE])
def test_nothing_is_wider_than_the_screen(pipeline: Pipeline, context: dict[str, Any], opening: Opening) -> None:
    long = "longword" * 40
    matches = [Match("a_b", float(time), 0.5, long) for time in range(0, 40, 5)]
    page = write_page(pipeline, found(*matches, text=long, unseen=(long,)), f"stepline search {long}")
    with opening(page, **context) as shown:
        for summary in shown.locator("summary").all():
            if summary.is_visible():
                summary.click()
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")


SAID = {
    "a_b": ["Cut the bread, and cut it well", "boil THE water", "the end"],
    "c": ["cut the bread", "naïve café water", "water water water", "and then the bread is cut"],
    "d": ["電子レンジで3分温める", "हिन्दी में पानी", "ข้าวผัด"],
}


@pytest.fixture
def searchable(pipeline: Pipeline) -> Pipeline:
    """With three videos of which something is said; two have 60 rows of a histogram each."""
    Path("clips/c.mp4").touch()
    Path("clips/d.mp4").touch()
    mine = Pipeline.of(validate({"datasets": {"mine": {"videos": "clips", "backbones": ["histogram"]}}}), "mine")
    folder = paths.transcripts("mine", "pocketsphinx")
    for video, texts in SAID.items():
        said = [Sentence(text, 7.0 * n, 7.0 * n + 5) for n, text in enumerate(texts)]
        transcript.write(folder / f"{video}.parquet", said)
    here = {"status": "present", "reason": ""}
    write_manifest(paths.manifest(folder, "000"), {"a_b": here, "c": here, "d": here | {"language": "ja"}})
    spec = mine.features.spec_of("histogram")
    rng = np.random.default_rng(0)
    rows = {video: rng.normal(size=(60, 8)).astype(np.float16) for video in ("a_b", "c")}
    store.write(paths.features("mine", "000", spec), spec, rows, 1.0)
    return mine


def listed(shown: Any) -> list[tuple[str, str, str]]:
    """Return video, time and score of all matches of the page, by score."""
    made = []
    for card in shown.locator("#results > li").all():
        video = card.get_attribute("data-video")
        places = [(card.locator("p > .at").first, card.locator("h3 .score"))]
        places += [(match.locator(".at"), match.locator(".score")) for match in card.locator(".matches li").all()]
        made += [(video, time.text_content(), score.text_content()) for time, score in places]
    return sorted(made, key=lambda match: -float(match[2]))


def expected(found: Found) -> list[tuple[str, str, str]]:
    return [(match.video, clock(match.time_s), f"{match.score:.3f}") for match in found.matches]


def test_sentences_have_their_language(searchable: Pipeline) -> None:
    searcher = Searcher.open(searchable, "words")
    shown = data(write(searcher, searcher.ask("火 3"), "stepline search mine"))["videos"]
    assert {video: each.get("lang") for video, each in shown.items()} == {"a_b": None, "c": None, "d": "ja"}
    english = "minilm was trained on English"
    assert hints(found(Match("a_b", 1.0, 0.5), hint=english))[0] == english


@pytest.mark.parametrize("text", ["cut the bread", "WATER", "naïve have the", "the the water", "電子レンジ में ข้าว"])
def test_words_are_found_on_the_page_as_python_finds_them(searchable: Pipeline, text: str, opening: Opening) -> None:
    searcher = Searcher.open(searchable, "words")
    found = searcher.ask(text)
    page = write(searcher, searcher.ask("end"), "stepline search mine")
    with opening(page) as shown:
        shown.get_by_label("Words in the transcripts").fill(text)
        shown.get_by_role("button", name="Find words").click()
        assert listed(shown) == expected(found)
        shown.get_by_role("button", name="Back to the results").click()
        assert shown.locator("#results > li").count() == 1


def test_more_like_this_ranks_as_numpy_and_the_command_do(searchable: Pipeline, opening: Opening) -> None:
    searcher = Searcher.open(searchable, "histogram", needs_text=False)
    found = searcher.like("c", 3.5)
    rows = np.concatenate(searcher.source.corpus.parts).astype(np.float64)
    cosines = rows @ rows[63] / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[63])
    best = next(row for row in np.argsort(-cosines).tolist() if not 53 < row < 73 or row < 60)
    assert (found.matches[0].video, found.matches[0].time_s) == (("a_b", "c")[best // 60], best % 60)
    assert found.matches[0].score == round(cosines[best], 6)
    asked = searcher.like("a_b", 1)
    page = write(searcher, asked, "stepline search mine")
    first = asked.videos[0]
    wanted = expected(searcher.like(first.video, first.peak_s))
    with opening(page) as shown:
        assert shown.locator("h1").inner_text() == "Like a_b@1"
        shown.get_by_role("button", name="More like this").first.click()
        assert listed(shown) == wanted


def test_a_corpus_that_does_not_fit_has_the_command(
    searchable: Pipeline, monkeypatch: pytest.MonkeyPatch, opening: Opening
) -> None:
    monkeypatch.setattr(embedded, "EMBEDDED_MB", 0.001)
    searcher = Searcher.open(searchable, "histogram", needs_text=False)
    assert searcher.embedded is not None
    assert (searcher.embedded.rows, searcher.embedded.lines) == (False, True)
    monkeypatch.setattr(embedded, "EMBEDDED_VIDEOS", 1)
    searcher = Searcher.open(searchable, "histogram", needs_text=False)
    page = write(searcher, searcher.like("a_b", 1), "stepline search mine")
    assert searcher.embedded is None
    with opening(page) as shown:
        form = shown.locator("form").inner_text()
        for part in ("cannot search words: a page can contain the transcripts", "a page can contain the features"):
            assert f"{part} of up to 200 videos, 4 MB." in form
        assert "“More like this” shows a command to run: " in form
        shown.locator("summary", has_text="More like this").first.click()
        assert re.search(r"stepline search mine --like (a_b|c)@\d", shown.locator("#results").text_content())


def test_what_does_not_stand_out_is_said() -> None:
    weak = found(Match("a", 1.0, 0.2), spread=Spread(rows=1000, best=0.2, usual=0.1, expected=0.25), unsaid=("foo",))
    unsaid, weak_score = hints(weak)
    assert unsaid == "no transcript contains the words: foo"
    assert weak_score == (
        "no clear match: the best score, 0.200, is within the spread of all 1,000 (median 0.100; scores up to 0.250 "
        "are usual without a match)"
    )
    assert hints(found(Match("a", 1.0, 0.5))) == []


def test_the_terminal_has_videos_with_moment_and_steps_and_a_table_of_matches() -> None:
    matches = Match("a", 3725.9, 0.61, "cut the bread"), Match("kitchen-2", 0.0, -0.0321, "sit down")
    steps = Step(3590.0, 3605.0, "cut"), Step(3605.0, 3660.0)
    videos = ranked("a", 3600.0, *steps, score=0.4567), ranked("kitchen-2", 30.0, score=-0.1)
    assert list(lines(found(*matches, videos=videos))) == [
        "speech, by minilm on the pocketsphinx transcripts; cosine; 2 of 3 videos",
        "moment: half of the sentences",
        "matches: all 100 sentences were compared",
        "",
        "rank  video         score",
        "   1  a             0.457  moment 59:50–1:01:00, steps: from the transcript",
        "        59:50–1:00:05    cut",
        "        1:00:05–1:01:00",
        "   2  kitchen-2    -0.100  moment 0:20–0:40, steps: from the transcript",
        "        0:20–0:40",
        "",
        "best matches in all videos",
        "rank  video         score      time  sentence",
        "   1  a             0.610   1:02:05  cut the bread",
        "   2  kitchen-2    -0.032      0:00  sit down",
        "",
    ]
    seen = list(lines(found(Match("a", 1.0, 104.5), unseen=("foo", "bar"), backbone="s3d-oepp")))
    assert seen[1] == "s3d-oepp does not know these words, or truncates the text before them: foo, bar"
    assert seen[-3:-1] == ["rank  video     score      time", "   1  a       104.500      0:01"]


@pytest.mark.slow
def test_sentences_like_one_are_shown_with_their_words(searchable: Pipeline, opening: Opening) -> None:
    if model_files("minilm") is None:
        pytest.skip("all-MiniLM-L6-v2 is not installed")
    searcher = Searcher.open(searchable, "minilm")
    page = write(searcher, searcher.ask("boil some water"), "stepline search mine")
    with opening(page) as shown:
        shown.get_by_role("button", name="More like this").first.click()
        assert "water water water" in shown.locator("#results").text_content()
