"""The table and the page of a data set, from what the stages leave behind."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from stepline import paths
from stepline.asr import engines, transcript
from stepline.asr.transcript import Sentence
from stepline.availability import Record, read_manifest, write_availability, write_manifest
from stepline.config import validate
from stepline.io import write_json, write_table, write_text
from stepline.media.timeline import Gap, described
from stepline.needs import Need
from stepline.pipeline import Pipeline
from stepline.report.clock import clock
from stepline.report.page import write_page
from stepline.report.summary import headline, summarise, write_summary
from stepline.search.embedded import script

HOSTILE = "<script>alert('x')</script>"
PAGE = Path("results/mine/report.html")
TIMELINE = Path("results/mine/videos/a.html")


@pytest.fixture
def pipeline() -> Pipeline:
    """Three videos, of which one is whole, one fails in decoding and one is no video; nothing was recognised twice."""
    Path("clips").mkdir()
    for name in ("a", "b", "c"):
        Path(f"clips/{name}.mp4").write_bytes(b"x")
    Path("segments.csv").write_text(f"video,start_s,end_s,label\na,0,4,{HOSTILE}\na,4,99,stir\na,50,60,pour\n")
    config = validate({"datasets": {"mine": {"videos": "clips", "segments": "segments.csv"}}})
    made = Pipeline.of(config, "mine")
    here = {"status": "present", "reason": ""}
    facts = {"duration_s": 8.0, "fps": 25.0, "width": 64, "height": 48, "codec": "h264", "n_frames": 200, "audio": here}
    facts["sha256"] = "0" * 64
    broken = {"status": "failed", "reason": "damaged | at 3 s"}
    write_availability(
        paths.availability("mine", "000"),
        [
            Record(video="a", status="present", source="clips/a.mp4", codec="h264"),
            Record(video="b", status="present", source=HOSTILE, duration_s=5.0),
            Record(video="c", status="failed", reason="no video"),
        ],
    )
    absent = {"c": {"status": "failed", "reason": "no video"}}
    write_manifest(paths.manifest(paths.media("mine"), "000"), {"a": here | facts, "b": broken, **absent})
    write_manifest(paths.manifest(paths.shots("mine"), "000"), {"a": here | {"n_shots": 2}, "b": broken, **absent})
    spoken = {"a": here | {"n_sentences": 1}, "b": broken, **absent}
    write_manifest(paths.manifest(paths.transcripts("mine", "pocketsphinx"), "000"), spoken, **made.speech.record)
    rows = {"a": here | {"n_rows": 40}, "b": broken, **absent}
    write_manifest(paths.features_manifest("mine", "000", made.features.spec_of("histogram")), rows)
    write_table(paths.shots("mine") / "a.parquet", pa.table({"start_s": [0.0, 2.0], "end_s": [2.0, 8.0]}))
    said = [Sentence(f"open {HOSTILE} now", 1.0, 2.0)]
    transcript.write(paths.transcripts("mine", "pocketsphinx") / "a.parquet", said)
    (paths.thumbnails("mine") / "1.jpg").parent.mkdir(parents=True)
    (paths.thumbnails("mine") / "1.jpg").write_bytes(b"a picture")
    pictures = {"1": str(paths.thumbnails("mine") / "1.jpg")}
    write_manifest(paths.manifest(paths.thumbnails("mine"), "000"), {"a": here | {"pictures": pictures}})
    return made


def test_a_line_says_what_each_stage_made(pipeline: Pipeline) -> None:
    assert headline(summarise(pipeline)) == "1 of 3 videos, 0.1 minutes, 2 shots, 1 sentences, 3 words; 2 failed."
    write_summary(pipeline)
    with open("results/mine/videos.csv", newline="", encoding="utf-8") as file:
        a, b, c = csv.DictReader(file)
    assert (a["status"], a["reason"], a["duration_s"], a["frames"], a["shots"]) == ("present", "", "8.0", "200", "2")
    assert (a["sentences"], a["words"], a["histogram"], a["audio"]) == ("1", "3", "40", "present")
    assert (b["status"], b["reason"], b["duration_s"], b["histogram"]) == ("failed", "damaged | at 3 s", "5.0", "")
    assert (c["status"], c["reason"], c["duration_s"]) == ("failed", "no video", "")
    lines = Path("results/mine/videos.md").read_text().splitlines()
    assert "damaged \\| at 3 s" in lines[-2]
    assert "<script" not in "".join(lines)
    assert len({line.count(" | ") for line in lines if line.startswith("| ")}) == 1


def test_the_language_is_that_of_the_record_and_words_are_counted_where_spaces_separate_them(
    pipeline: Pipeline,
) -> None:
    manifest = paths.manifest(paths.transcripts("mine", "pocketsphinx"), "000")
    found = []
    for language in ({}, {"language": "de"}, {"language": "ja"}, {"language": ""}):
        spoken = {"status": "present", "reason": "", "n_sentences": 1} | language
        write_manifest(manifest, {"a": spoken}, **pipeline.speech.record)
        row = summarise(pipeline).rows[0]
        found.append((row["language"], row["words"]))
    assert found == [("en", 3), ("de", 3), ("ja", ""), ("", 3)]
    write_manifest(manifest, read_manifest(manifest), **pipeline.speech.record | {"asr_revision": "0"})
    assert summarise(pipeline).rows[0]["sentences"] == "", "what another recogniser heard is not counted"


def test_the_shape_that_players_show_is_stated(pipeline: Pipeline) -> None:
    record = Record(video="a", status="present", width=320, height=240, pixels="2:1")
    media = paths.manifest(paths.media("mine"), "000")
    for rotation, size, shown in ((0, (320, 240), "640x240"), (90, (240, 320), "120x320")):
        write_availability(paths.availability("mine", "000"), [replace(record, rotation=rotation)])
        of = {"status": "present", "reason": "", "audio": {"status": "present"}, "sha256": "0" * 64}
        write_manifest(media, {"a": of | {"width": size[0], "height": size[1]}})
        (row,) = summarise(pipeline).rows
        assert (row["status"], row["width"]) == ("present", size[0])
        assert row["reason"] == f"pixels 2:1, shown as {shown}; features are of the stored pixels"
    write_page(pipeline, PAGE)
    assert "240 × 320, shown as 120 × 320" in TIMELINE.read_text()


def test_files_that_are_left_out_are_counted(pipeline: Pipeline) -> None:
    before = pipeline.summary_params()
    Path("clips/d.gif").write_bytes(b"x")
    with_gif = Pipeline.of(pipeline.config, "mine")
    assert with_gif.summary_params() != before
    write_summary(with_gif)
    write_page(with_gif, PAGE)
    line = f"1 file left out of {Path('clips').resolve()}, no videos by their suffix: gif 1."
    assert line in Path("results/mine/videos.md").read_text()
    assert line in PAGE.read_text()


def test_table_and_page_show_what_is_wanted_alone(pipeline: Pipeline) -> None:
    def of(*stages: str) -> Pipeline:
        return Pipeline.of(validate({"datasets": {"mine": {"videos": "clips", "stages": [*stages]}}}), "mine")

    spoken = {"sentences", "words", "language"}
    everything, silent, alone = (
        {*summarise(of(*stages)).columns}
        for stages in (("speech", "pictures", "features"), ("shots", "features"), ("features",))
    )
    assert (
        everything | {"split"}
        == {*summarise(pipeline).columns}
        == silent | spoken | {"split"}
        == alone | spoken | {"shots", "frames", "audio", "split"}
    )
    write_page(of("shots", "features"), PAGE)
    assert not [part for part in ("data:image", "sentences", ">words<") if part in PAGE.read_text()]
    assert 'aria-label="2 shots in 0:08"' in PAGE.read_text()
    assert "Speech" not in TIMELINE.read_text()
    write_page(of("features"), PAGE)
    assert "<svg" not in PAGE.read_text()
    assert paths.spec_record(pipeline.features.spec_of("histogram")).parent.as_posix() in PAGE.read_text()
    made = summarise(of("features"))
    assert [row["status"] for row in made.rows] == ["present", "failed", "failed"]
    assert made.rows[1]["reason"] == "histogram: damaged | at 3 s"
    assert headline(made) == "1 of 3 videos, 0.0 minutes; 2 failed."


def damage(pipeline: Pipeline, of_media: list[Gap], of_features: list[Gap]) -> None:
    """Let the one video that is read have gaps."""
    media = paths.manifest(paths.media("mine"), "000")
    features = paths.features_manifest("mine", "000", pipeline.features.spec_of("histogram"))
    for path, gaps, reason in ((media, of_media, ""), (features, of_features, described(of_features))):
        made = read_manifest(path)
        write_manifest(path, made | {"a": made["a"] | {"gaps": gaps, "reason": reason}})


GAPS = [(2.0, 3.5, "damaged"), (8.0, 10.0, "truncated")]


def test_a_video_that_is_read_in_part_says_which_times_are_absent_and_the_page_marks_them(pipeline: Pipeline) -> None:
    damage(pipeline, GAPS, GAPS)
    write_summary(pipeline)
    with open("results/mine/videos.csv", newline="", encoding="utf-8") as file:
        a, b, _ = csv.DictReader(file)
    assert (a["status"], a["absent_s"], a["duration_s"], a["histogram"]) == ("partial", "3.5", "8.0", "40")
    assert a["reason"] == "2.000 to 3.500 s: damaged; 8.000 to 10.000 s: truncated"
    assert (b["status"], b["absent_s"]) == ("failed", "")
    counted = "1 of 3 videos, 1 of them partly (3.5 s missing), 0.1 minutes, 2 shots, 1 sentences, 3 words; 2 failed."
    assert counted in Path("results/mine/videos.md").read_text()
    write_page(pipeline, PAGE)
    strip = re.findall(r'<path class="(\w+)" d="([^"]+)"', PAGE.read_text())
    assert strip == [
        ("shots", "M0 0h199.4v20h-199.4zM200 0h599.4v20h-599.4z"),
        ("gaps", "M200 0h149.4v20h-149.4zM800 0h199.4v20h-199.4z"),
    ]
    assert 'aria-label="2 shots in 0:10"' in PAGE.read_text()
    damage(pipeline, [], GAPS[:1])
    row = summarise(pipeline).rows[0]
    assert (row["status"], row["absent_s"], row["reason"]) == ("partial", 1.5, "histogram: 2.000 to 3.500 s: damaged")


def test_sound_that_is_read_in_part_or_absent_is_said_once(pipeline: Pipeline) -> None:
    media, folder = paths.manifest(paths.media("mine"), "000"), paths.transcripts("mine", "pocketsphinx")
    sound = {"status": "present", "reason": "2.000 to 2.300 s cannot be decoded: damaged"}
    write_manifest(media, read_manifest(media) | {"a": read_manifest(media)["a"] | {"audio": sound}})
    row = summarise(pipeline).rows[0]
    assert (row["status"], row["reason"]) == ("present", f"audio: {sound['reason']}")
    silent = {"status": "missing", "reason": "no audio stream"}
    write_manifest(media, read_manifest(media) | {"a": read_manifest(media)["a"] | {"audio": silent}})
    write_manifest(paths.manifest(folder, "000"), {"a": silent}, **pipeline.speech.record)
    assert summarise(pipeline).rows[0]["reason"] == "audio: no audio stream"


def test_what_a_recogniser_is_missing_stands_with_its_command(pipeline: Pipeline) -> None:
    wanting = Pipeline.of(validate(pipeline.config | {"asr": {"engine": "deepgram"}}), "mine")
    made = summarise(wanting)
    assert made.needs == (Need("key", "DEEPGRAM_API_KEY"),)
    assert made.command == "export DEEPGRAM_API_KEY=..."
    assert made.rows[0]["sentences"] == ""
    write_page(wanting, PAGE)
    needed = "The rest needs key:DEEPGRAM_API_KEY: run `export DEEPGRAM_API_KEY=...`, then the workflow again."
    assert re.sub("`(.*)`", r"<code>\1</code>", needed) in PAGE.read_text()
    write_summary(wanting)
    assert Path("results/mine/videos.md").read_text().splitlines()[-1] == needed


def test_what_was_heard_stays_where_the_recogniser_is_missing_something_since(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    folder = paths.transcripts("mine", "pocketsphinx")
    spoken = {"a": {"status": "present", "reason": "", "n_sentences": 1}}
    write_manifest(paths.manifest(folder, "000"), spoken, **pipeline.speech.record)
    for sha256, sentences in (("0" * 64, 1), ("f" * 64, "")):
        write_json(folder / "a.json", {"source": {"sha256": sha256}})
        made = summarise(Pipeline.of(pipeline.config, "mine"))
        assert made.needs == (Need("package", "pocketsphinx"),)
        assert made.rows[0]["sentences"] == sentences


def test_each_video_that_was_read_has_a_line_with_picture_strip_and_timeline(pipeline: Pipeline) -> None:
    write_page(pipeline, PAGE)
    text = PAGE.read_text()
    linked = re.findall(r'<th scope="row">(?:<a href="([^"]+)">)?(\w)', text)
    assert linked == [("videos/a.html", "a"), ("", "b"), ("", "c")]
    assert text.count("data:image/jpeg;base64,YSBwaWN0dXJl") == 1
    assert TIMELINE.exists()
    assert [file.name for file in TIMELINE.parent.iterdir()] == ["a.html"]
    assert "&lt;script&gt;alert" in text
    assert text.count("<script>") == 1  # that of the table
    assert 'stepline search mine "TEXT"' in text
    assert not re.findall(r'(?:src|href)="(?!data:image/|#|videos/a\.html)', text)
    before, timeline = PAGE.read_bytes(), TIMELINE.read_bytes()
    write_page(pipeline, PAGE)
    assert (PAGE.read_bytes(), TIMELINE.read_bytes()) == (before, timeline)


def test_of_many_videos_the_first_have_a_timeline_and_the_page_says_so(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepline.report.page.TIMELINES", 0)
    write_page(pipeline, PAGE)
    assert not TIMELINE.exists()
    assert "The first 0 videos have one; <code>stepline show mine VIDEO</code>" in PAGE.read_text()


def test_pages_of_videos_that_are_not_listed_or_not_read_any_more_are_removed(pipeline: Pipeline) -> None:
    for name in ("videos/gone.html", "videos/b.html", "videos/b.srt", "videos/a.srt"):
        write_text(PAGE.parent / name, "")
    for name, shown in {"a": ["a"], "ab": ["a", "b"]}.items():
        data = script({"videos": dict.fromkeys(shown)})
        write_text(PAGE.parent / f"search/{name}.html", f'<script id="data">{data}</script>')
    write_page(pipeline, PAGE)
    assert sorted(file.name for file in TIMELINE.parent.iterdir()) == ["a.html", "a.srt"]
    assert [file.name for file in (PAGE.parent / "search").iterdir()] == ["a.html"]


def test_a_picture_of_a_shot_that_is_no_longer_there_is_left_out(pipeline: Pipeline) -> None:
    pictures = {"9": str(paths.thumbnails("mine") / "1.jpg")}
    here = {"status": "present", "reason": "", "pictures": pictures}
    write_manifest(paths.manifest(paths.thumbnails("mine"), "000"), {"a": here})
    write_page(pipeline, PAGE)
    assert "data:image" not in TIMELINE.read_text()
    assert "0 of 2 shots have a picture" in TIMELINE.read_text()


def test_segments_after_the_end_are_a_line_and_are_not_drawn(pipeline: Pipeline) -> None:
    write_page(pipeline, PAGE)
    line = (
        "segments.csv: 2 of 3 segments lie after the end of their video (1 left out, 1 cut to its end), the first in "
        "line 3: a ends at 8.0 s; times are in seconds"
    )
    assert f'<p class="needs">{line}</p>' in PAGE.read_text()
    timeline = TIMELINE.read_text()
    assert f"Segments: {line}" in timeline
    assert ('[4.0,8.0,"stir",""]' in timeline, "pour" in timeline) == (True, False)


def test_a_time_reads_as_on_a_clock() -> None:
    assert [clock(seconds) for seconds in (0, 61.9, 3600, 36061)] == ["0:00", "1:01", "1:00:00", "10:01:01"]
