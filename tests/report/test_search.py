"""What a search found, in the terminal and on the page: times, pictures, links, and nothing from elsewhere."""

import base64
import io
import re
from fractions import Fraction
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("av")
pytest.importorskip("jinja2")
image = pytest.importorskip("PIL.Image")

from stepline import paths  # noqa: E402
from stepline.availability import Record, write_availability, write_manifest  # noqa: E402
from stepline.config import validate  # noqa: E402
from stepline.io import atomic_path, write_bytes, write_text  # noqa: E402
from stepline.pipeline import Pipeline  # noqa: E402
from stepline.report.search import clock, lines, write_page  # noqa: E402
from stepline.search.searcher import SPOKEN, Found, Match, Ranked  # noqa: E402
from stepline.search.steps import Step  # noqa: E402
from tests.media.clips import make  # noqa: E402

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
        "what": "what is said, by minilm on the pocketsphinx transcripts",
        "similarity": "cosine",
        "searched": 2,
        "listed": 3,
        "unseen": (),
        "moments_by": "half of the sentences",
        "window_s": 10.0,
        "videos": (ranked(matches[0].video, matches[0].time_s),),
        "matches": matches,
    }
    return Found(**values | more)  # type: ignore[arg-type]


@pytest.fixture
def pipeline() -> Pipeline:
    """The video a is red up to 20 s and blue then; its one picture is of the shot that ends there, at 10 s."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def picture(index: int) -> object:
        shown = np.zeros((36, 64, 3), np.uint8)
        shown[..., 0 if index < 40 else 2] = 255
        return shown

    Path("clips").mkdir()
    make(Path("clips/a b.mp4"), [Fraction(i, 2) for i in range(80)], picture=picture)
    with atomic_path(paths.shots("mine") / "a_b.parquet") as part:
        pq.write_table(pa.table({"start_s": [0.0, 20.0], "end_s": [20.0, 40.0]}), part)
    write_bytes(paths.thumbnails("mine") / "1.jpg", GREY)
    made = {"status": "present", "reason": "", "pictures": {"0": str(paths.thumbnails("mine") / "1.jpg")}}
    write_manifest(paths.manifest(paths.thumbnails("mine"), "000"), {"a_b": made})
    write_availability(paths.availability("mine", "000"), [Record(video="a_b", status="present", path="clips/a b.mp4")])
    return Pipeline.of(validate({"datasets": {"mine": {"videos": "clips"}}}), "mine")


def cards(page: Path) -> list[str]:
    """Return the HTML of each match."""
    text = page.read_text().partition("<h2>Best matches")[2]
    return re.findall(r"<li>.*?</li>", text, re.DOTALL)


def pictures(page: Path) -> list[bytes]:
    listed = (re.search(r'src="data:image/jpeg;base64,([^"]+)"', card) for card in cards(page))
    return [base64.b64decode(match[1]) if match else b"" for match in listed]


def colour(jpeg: bytes) -> str:
    red, _, blue = image.open(io.BytesIO(jpeg)).getpixel((80, 45))
    return "red" if red > blue else "blue"


def test_a_picture_is_of_the_shot_or_of_the_match(pipeline: Pipeline) -> None:
    matches = [Match("a_b", time_s, 0.5) for time_s in (30.0, 12.0, 2.0, 21.0)]
    page = write_page(pipeline, found(*matches))
    late, near, early, after = pictures(page)
    assert near == GREY
    assert [colour(late), colour(early), colour(after)] == ["blue", "red", "blue"]
    assert "picture is" not in page.read_text()


def test_without_the_video_the_nearest_picture_says_its_time_and_none_is_said_so(pipeline: Pipeline) -> None:
    Path("clips/a b.mp4").unlink()
    Path("clips/c.mp4").touch()
    page = write_page(pipeline, found(Match("a_b", 30.0, 0.5), Match("a_b", 11.0, 0.4), Match("c", 1.0, 0.3)))
    assert pictures(page) == [GREY, GREY, b""]
    far, near, none = cards(page)
    assert "the picture is of 0:10" in far
    assert "picture is" not in near
    assert "no picture: the video is not there any more" in none
    assert "<a " not in far


def test_a_damaged_video_has_no_picture_and_stops_nothing(pipeline: Pipeline) -> None:
    Path("clips/a b.mp4").write_text("no video")
    (paths.thumbnails("mine") / "1.jpg").unlink()
    (card,) = cards(write_page(pipeline, found(Match("a_b", 12.0, 0.5))))
    assert '<div class="none">no picture</div>' in card


def test_links_open_the_file_or_the_address_at_the_time(pipeline: Pipeline) -> None:
    page = write_page(pipeline, found(Match("a_b", 12.25, 0.5)))
    link = '<a href="../../../clips/a%20b.mp4#t=12.25">0:12</a>'
    assert link in cards(page)[0]
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
    shown = cards(write_page(listed, found(*(Match(video, 3725.9, 0.5) for video in urls))))
    links = [match[1] if (match := re.search(r'<a href="([^"]*)">1:02:05</a>', card)) else "" for card in shown]
    assert links == [
        "https://www.youtube.com/watch?v=xxxxxxxxxxx&amp;t=3725s",
        "https://youtu.be/xxxxxxxxxxx?t=3725s",
        "https://example.org/a.mp4#t=3725",
        "",
        "",
    ]
    assert not any("word" in card or "abc" in card for card in shown)


def test_the_page_is_escaped_and_needs_nothing_else_and_is_the_same_again(pipeline: Pipeline) -> None:
    hostile = found(Match("a_b", 12.0, 0.5, HOSTILE), text=HOSTILE, unseen=(HOSTILE,))
    page = write_page(pipeline, hostile)
    content = page.read_bytes()
    assert b"<script" not in content
    assert set(re.findall(rb'(?:src|href)="([a-z.]+)', content)) == {
        b"data",
        b"..",
    }
    assert b"minilm makes nothing of: &lt;script&gt;" in content
    assert b"its score higher than all less than 10 s away" in content
    page.unlink()
    assert write_page(pipeline, hostile) == page
    assert page.read_bytes() == content
    assert re.fullmatch(r"script-alert-x-script-co-[0-9a-f]{8}\.html", page.name)


def test_each_question_has_a_page_of_its_own(pipeline: Pipeline) -> None:
    moment = Match("a_b", 12.0, 0.5)
    asked = [found(moment), found(moment, text="cut the bread!"), found(moment, backbone="mpnet")]
    asked += [
        found(moment, window_s=5.0),
        found(moment, moment),
        found(moment, text="切面包"),
        found(moment, text="面"),
    ]
    pages = {write_page(pipeline, each).name for each in asked}
    assert len(pages) == len(asked)
    assert all(re.fullmatch(r"(cut-the-bread|search)-[0-9a-f]{8}\.html", page) for page in pages)


def test_a_video_has_its_moment_and_steps_with_links_and_the_picture_of_its_best_time(pipeline: Pipeline) -> None:
    steps = Step(2.0, 21.5, HOSTILE), Step(21.5, 3700.0)
    page = write_page(pipeline, found(Match("a_b", 2.0, 0.5), videos=(ranked("a_b", 12.0, *steps),)))
    video = page.read_text().partition("<h2>Best matches")[0]
    assert base64.b64encode(GREY).decode() in video
    assert re.findall(r'<a href="[^"]*(#t=[^"]*)">([^<]*)</a>', video) == [
        ("#t=2", "0:02–1:01:40"),
        ("#t=2", "0:02–0:21"),
        ("#t=21.5", "0:21–1:01:40"),
    ]
    assert "</a> &lt;script&gt;" in re.sub(r"\s+", " ", video)
    assert "Steps: from what is said." in video
    assert "Its moment is half of the sentences." in video


def test_the_terminal_has_videos_with_moment_and_steps_and_a_table_of_matches() -> None:
    matches = Match("a", 3725.9, 0.61, "cut the bread"), Match("kitchen-2", 0.0, -0.0321, "sit down")
    steps = Step(3590.0, 3605.0, "cut"), Step(3605.0, 3660.0)
    videos = ranked("a", 3600.0, *steps, score=0.4567), ranked("kitchen-2", 30.0, score=-0.1)
    assert list(lines(found(*matches, videos=videos))) == [
        "what is said, by minilm on the pocketsphinx transcripts; cosine; 2 of 3 videos",
        "moment: half of the sentences",
        "",
        "rank  video         score",
        "   1  a             0.457  moment 59:50–1:01:00, steps: from what is said",
        "        59:50–1:00:05    cut",
        "        1:00:05–1:01:00",
        "   2  kitchen-2    -0.100  moment 0:20–0:40, steps: from what is said",
        "        0:20–0:40",
        "",
        "best matches in all videos",
        "rank  video         score      time  sentence",
        "   1  a             0.610   1:02:05  cut the bread",
        "   2  kitchen-2    -0.032      0:00  sit down",
        "",
    ]
    seen = list(lines(found(Match("a", 1.0, 104.5), unseen=("foo", "bar"), backbone="s3d-oepp")))
    assert seen[1] == "s3d-oepp makes nothing of: foo, bar"
    assert seen[-3:-1] == ["rank  video     score      time", "   1  a       104.500      0:01"]


def test_times_have_hours_from_an_hour_on() -> None:
    times_s = (0, 59.99, 3599.9, 3600, 36_061.5)
    assert [clock(time_s) for time_s in times_s] == ["0:00", "0:59", "59:59", "1:00:00", "10:01:01"]
