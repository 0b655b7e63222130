"""`stepline show`: the timeline of a video, or one line that says why there is none."""

import html
import re
import shlex
from pathlib import Path

import pytest

from stepline import cli, paths
from stepline.asr.transcript import Sentence
from stepline.availability import Record, write_availability
from stepline.config import load
from stepline.datasets import pss
from stepline.io import canonical_json
from stepline.plans import plan, plans_of
from stepline.runs.verbs import Verbs
from tests.benchmarks.pss import synthetic
from tests.browser import opened
from tests.report.timeline.video import made_up

CONFIG = "datasets: {mine: {videos: clips}}\n"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A work folder with the video ``a`` of ``mine``."""
    made_up(duration_s=4, shots=2, sentences=[Sentence("stir", 1.0, 2.0)])
    Path("config.yaml").write_text(CONFIG)
    monkeypatch.delenv("STEPLINE_CONFIG", raising=False)


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Return what a call of the verb prints, whole."""
    assert cli.main(["show", *words]) == code
    printed = capsys.readouterr()
    return (printed.err if code else printed.out).strip()


def test_the_page_is_written_and_named(folder: None, capsys: pytest.CaptureFixture[str]) -> None:
    page = said(capsys, "mine", "a")
    assert page == "results/mine/videos/a.html"
    assert "stir" in Path(page).read_text()
    before = Path(page).read_bytes()
    said(capsys, "mine", "a")
    assert Path(page).read_bytes() == before


def test_subtitles_are_written_instead(folder: None, capsys: pytest.CaptureFixture[str]) -> None:
    file = said(capsys, "mine", "a", "--subtitles", "vtt")
    assert file == "results/mine/videos/a.vtt"
    assert Path(file).read_text() == "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nstir\n"
    assert not Path("results/mine/videos/a.html").exists()


def test_what_cannot_be_shown_is_one_line(folder: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "mine", "aa", code=2) == "error: mine has no video 'aa'; did you mean a?"
    unknown = said(capsys, "mine", "a", "--entry", "pdvc", code=2)
    assert unknown == "error: mine has no entry 'pdvc'; it has no benchmark"
    absent = Record(video="a", status="gone", reason="private")
    write_availability(paths.availability("mine", "000"), [absent])
    assert said(capsys, "mine", "a", code=2) == "error: a of mine is gone: private"
    paths.availability("mine", "000").unlink()
    assert said(capsys, "mine", "a", code=2) == "error: a of mine is not looked for yet: run `snakemake`"


@pytest.mark.parametrize("video", ["-abcDEF1234", "--bcDEF1234", "-hbcDEF1234"])
def test_an_id_that_begins_with_a_dash_is_shown_and_searched_and_printed_commands_run(
    video: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up(duration_s=4, shots=2, sentences=[], video=video, codec="mpeg2video")
    Path("config.yaml").write_text(CONFIG)
    page = Path(said(capsys, "mine", video))
    again = re.findall("<code>stepline (show .*?)</code>", page.read_text())
    page.unlink()
    assert cli.main(shlex.split(html.unescape(*again))) == 0
    assert page.exists()
    capsys.readouterr()
    for words in (["--like", f"{video}@0:01"], ["--like", f"{video}@1", "--video", video]):
        assert cli.main(["search", "mine", "--window", "1", *words]) == 0
        assert re.search(f"^ *1 +{video} ", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize("words", [["--", "--abcdefghij"], ["--abcdefghij"]])
def test_an_id_in_the_form_of_an_option_goes_after_two_dashes(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    made_up(duration_s=4, shots=2, sentences=[], video="--abcdefghij")
    Path("config.yaml").write_text(CONFIG)
    if len(words) == 2:
        assert said(capsys, "mine", *words) == "results/mine/videos/--abcdefghij.html"
        return
    with pytest.raises(SystemExit) as end:
        cli.main(["show", "mine", *words])
    assert end.value.code == 2
    line = "error: `stepline show` has no option --abcdefghij: write a name after `--`, or as `--OPTION=NAME`\n"
    assert capsys.readouterr().err == line


def test_predictions_are_shown_also_where_the_video_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    synthetic.write_releases()
    Path("config.yaml").write_text(canonical_json({"pss": synthetic.CONFIG}))
    config = load(None)
    assert [each.name for each in plans_of(config, "youcook2")] == ["pss"]
    assert plans_of(config, "pss") == []
    Verbs(plan(config, "pss")).predict("youcook2", "uniform-segments", "all")
    video, true = next(iter(pss.load("youcook2", "test").items()))
    page = said(capsys, "youcook2", video, "--entry", "uniform-segments")
    with opened(Path(page)) as shown:
        assert "not looked for yet" in shown.locator("header").inner_text()
        lists = shown.locator("section[aria-label=Lists] summary").all_inner_texts()
        assert lists[0] == f"True steps, youcook2 ({len(true.segments)})"
        assert lists[1].startswith("uniform-segments, youcook2, all (")
        shown.keyboard.press("e")
        shown.keyboard.press("Shift+G")
    near = said(capsys, "youcook2", video, "--entry", "uniform", code=2)
    assert near.startswith("error: youcook2 has no entry 'uniform'; choose from uniform")
    late = said(capsys, "youcook2", video, "--entry", "uniform-segments", "--release", "tasty", code=2)
    assert late == "error: release 'tasty' of youcook2 is not configured; choose from youcook2"
    assert said(capsys, "youcook2", "nobody", code=2).startswith("error: youcook2 has no video 'nobody'")
