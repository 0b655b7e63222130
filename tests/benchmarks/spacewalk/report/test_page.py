"""The page of a study of recordings: self-contained, escaped, deterministic, with every part that it was given."""

import base64
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stepline import paths
from stepline.asr import transcript
from stepline.asr.transcript import Sentence
from stepline.availability import Record, write_availability, write_manifest
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.kinds import Choice
from stepline.benchmarks.spacewalk.report import page as pages
from stepline.benchmarks.spacewalk.report.figure_contexts import contexts, styles
from stepline.benchmarks.spacewalk.report.figure_timeline import timeline as draw_timeline
from stepline.datasets import demo
from stepline.needs import Need
from stepline.report import Picture
from stepline.report.stages import Stages
from stepline.report.study import write_study
from stepline.runs.predictions import write_predictions
from stepline.tables import Number, Row
from tests.benchmarks.spacewalk.conftest import MadeUp
from tests.tables.numbers import SAMPLE_LIST, build, number

HOSTILE = "<script>alert('x')</script> & \"co\""


def rows() -> list[Row]:
    def line(entry: str, method: str, setting: str, context: float | None, value: float | None, **more: Any) -> Number:
        measured = (
            {"value": value, "sd": None, "ci": [value - 2, value + 3], "per_video": {"a": value - 1, "b": value}}
            if value
            else {}
        )
        score = {
            "metrics": {"accuracy": measured, "map": measured}, "seeds": [0], "n_videos": 2, "n_listed": 2,
            "n_samples": 40, "spec": "1a2b3c4d", "status": "present",
        }  # fmt: skip
        base: dict[str, Any] = {
            "entry": entry, "method": method, "setting": setting, "context_s": context, "release": "demo",
            "paper_release": "", "score": score if value else None,
        }  # fmt: skip
        return number(**(base | more))

    lines = [line("tfidf", "TF-IDF", "zero-shot", context, 40 + context) for context in (2.0, 4.0)]
    lines += [line("tfidf", "TF-IDF", "zero-shot", context, 50 + context, metric="map") for context in (2.0, 4.0)]
    lines += [line("fit", HOSTILE, "last-layer", context, 50 + context) for context in (2.0, 4.0)]
    lines += [line("rank", "Sample rank", "baseline", None, 96.0, sees=(SAMPLE_LIST,))]
    lines += [
        line(
            "video", "EgoVLP", "zero-shot", 2.0, None, needs=(Need("weights", "egovlp"),), command="stepline fetch <x>"
        )
    ]
    return build(lines, None)


@pytest.fixture
def mine(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> SpacewalkInputs:
    """What an entry of the made-up study reads, at its longest window."""
    monkeypatch.setattr(type(made_up.study), "load", lambda self, name: made_up.release)
    given = {"method": HOSTILE, "kind": "tfidf", "encoder": "tfidf", "settings": {"fit": "video"}}
    inputs = made_up.inputs(given, SpacewalkInputs)
    return SpacewalkInputs(inputs.benchmark, replace(inputs.job, context_s=6))


@pytest.fixture
def timelines(mine: SpacewalkInputs) -> list[Picture]:
    """Pictures where the lower of two seeds is right of the first quarter and guesses of the second half."""
    made = []
    for video, items in mine.items("test").items():
        labels, n = np.array([item.label for item in items]), len(items)
        place = np.arange(n)
        first = np.where(place < n // 4, labels, np.where(place < n // 2, labels + 1, -1))
        for seed, chosen in ((1, labels), (0, first)):
            ids = np.array([item.id for item in items])
            made.append(Choice(seed=seed, split="test", video=video, ids=ids, chosen=chosen, scores=None))
    path = paths.predictions("demo", "demo", "mine", "6s")
    write_predictions(path, Choice, made, spec=mine.spec, needs=(), selection="")
    guess = next(job for job in mine.benchmark.jobs("table2") if job.entry.kind_name == "random")
    path = paths.predictions("demo", "demo", guess.entry.id, guess.context)
    write_predictions(path, Choice, made, spec=mine.benchmark.spec(guess), needs=(), selection="")
    return pages.timelines(mine.benchmark)


TEXTS = {"how_to_read": "", "how_to_read_examples": "", "examples_title": "Timelines"}


def stages(pictures: dict[int, Path] | None = None) -> Stages:
    return Stages(
        availability=[Record(video="a", status="gone", reason=HOSTILE)],
        shots={"a": [(0.0, 0.5), (0.5, 1.0)]},
        pictures={"a": pictures or {}},
        without_pictures={} if pictures else {"a": f"deleted {HOSTILE}"},
        transcripts={"a": [Sentence(text=HOSTILE, start_s=0.0, end_s=2.0), Sentence(text="x", start_s=2.0, end_s=3.0)]},
        scripts={"a": [Sentence(text="Open the hatch.", start_s=0.5, end_s=1.5)]},
    )


def page(path: Path, timelines: list[Picture], pictures: dict[int, Path] | None = None) -> str:
    shown = {"figures": lambda part: pages.by_context(part, styles(rows())), "spreads": pages.spreads(rows())}
    title, examples = f"Demo {HOSTILE}", timelines[:1]
    write_study(
        path, rows(), title=title, explain=lambda row: "", **TEXTS, **shown, examples=examples, stages=stages(pictures)
    )
    return path.read_text()


def images(text: str, kind: str) -> list[bytes]:
    return [base64.b64decode(found) for found in re.findall(rf'src="data:image/{kind};base64,([^"]+)"', text)]


def test_the_page_holds_all_that_it_was_given_escaped_and_by_itself(tmp_path: Path, timelines: list[Picture]) -> None:
    text = page(tmp_path / "r.html", timelines)
    assert text == page(tmp_path / "again.html", timelines)
    assert "<script>alert" not in text
    assert text.count("&lt;script&gt;") >= 6
    assert "stepline fetch &lt;x&gt;" in text
    assert not re.findall(r'(?:src|href)="(?!data:image/|#)', text)
    assert "url(" not in text
    assert "@import" not in text
    tags = re.findall(r"<img [^>]*>", text)
    assert len(tags) == 3
    assert all(re.search(r'alt="[^"]{20,}"', tag) for tag in tags)
    for image in images(text, r"svg\+xml"):
        assert ElementTree.fromstring(image).tag == "{http://www.w3.org/2000/svg}svg"
    assert '<td class="value ours" data-sort="42.0">42.00</td>' in text
    assert "weights:egovlp" in text
    assert "sees THE SAMPLE LIST" in text
    assert re.search(r"<td>&lt;script&gt;[^\n]*</td><td>Open the hatch\.</td>", text)
    assert "<td>x</td><td></td>" in text
    assert "a: 2 shots" in text
    assert images(text, "jpeg") == []
    assert "<p>deleted &lt;script&gt;" in text


def test_the_accuracy_of_each_video_is_shown_at_the_longest_window() -> None:
    (picture,) = pages.spreads(rows())
    ranges = f"TF-IDF 43.0 to 44.0; {HOSTILE} 53.0 to 54.0; Sample rank 95.0 to 96.0"
    assert picture.alt == f"Accuracy of each video, in percent: {ranges}."
    (picture,) = pages.spreads([row for row in rows() if row.entry != "tfidf" or row.metric == "map"])
    assert "TF-IDF" not in picture.alt


def test_a_timeline_shows_the_lowest_seed_and_counts_no_guess_as_right(timelines: list[Picture]) -> None:
    assert [each.caption for each in timelines] == [f"Recording {video}, release demo" for video in "de"]
    for each in timelines:
        assert each.alt.startswith("Labels of 40 samples of ")
        assert each.alt.endswith(f"Correct: {HOSTILE}, zero-shot, 6s 25.0 %.")


def test_a_timeline_without_predictions_has_labels_alone(mine: SpacewalkInputs) -> None:
    assert all(each.alt.endswith("Correct: none.") for each in pages.timelines(mine.benchmark))


def test_parts_that_are_not_given_are_left_out(mine: SpacewalkInputs, tmp_path: Path) -> None:
    assert pages.stages(mine.benchmark) is None
    file = tmp_path / "r.html"
    write_study(file, rows(), lambda _: {}, title="Demo", explain=lambda row: "", **TEXTS, examples=())
    text = file.read_text()
    assert 'id="stages"' not in text
    assert 'id="timelines"' not in text


def test_stages_are_read_of_what_is_there(mine: SpacewalkInputs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "sentences", lambda video: [("Good day.", 0.5, 1.5)])
    videos, speech = mine.benchmark.pipeline.videos, mine.benchmark.pipeline.speech
    shard = videos.shards["d"]
    records = [Record(video="d", status="present"), Record(video="e", status="gone", reason="private")]
    write_availability(paths.availability("demo", shard), records)
    path = paths.shots("demo") / "d.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"start_s": [0.0, 2.0], "end_s": [2.0, 4.0]}), path)
    made = {"status": "present", "reason": "deleted", "pictures": {"1": "2.jpg"}}
    write_manifest(paths.manifest(paths.thumbnails("demo"), shard), {"d": made})
    transcript.write(speech.folder / "d.parquet", [Sentence("Hello.", 0.5, 1.5)])
    found = pages.stages(mine.benchmark)
    assert found is not None
    assert [(each.video, each.status) for each in found.availability] == [("d", "present"), ("e", "gone")]
    assert (found.shots, found.pictures) == ({"d": [(0.0, 2.0), (2.0, 4.0)]}, {"d": {1: Path("2.jpg")}})
    assert found.without_pictures == {"d": "deleted"}
    assert [each.text for each in found.transcripts["d"]] == ["Hello."]
    assert found.scripts == {"d": [Sentence("Good day.", 0.5, 1.5)]}


def test_a_shot_has_its_picture(tmp_path: Path, timelines: list[Picture]) -> None:
    (tmp_path / "1.jpg").write_bytes(b"a picture")
    text = page(tmp_path / "r.html", timelines, {0: tmp_path / "absent.jpg", 1: tmp_path / "1.jpg"})
    assert images(text, "jpeg") == [b"a picture"]
    assert "Middle frame of shot 2 of a" in text


def test_a_timeline_changes_halfway_between_two_samples() -> None:
    (strip,) = draw_timeline([0.0, 10.0], [1, 2], {}).axes[0].images
    (row,) = strip.get_array().tolist()
    assert row == [2] * 600 + [3] * 600


def test_a_guess_is_no_label_in_a_timeline() -> None:
    _, strip = draw_timeline([0.0, 10.0], [1, 2], {"M": [None, 0]}).axes[0].images
    (row,) = strip.get_array().tolist()
    assert row == [0] * 600 + [1] * 600


def test_each_metric_has_its_panels() -> None:
    panels = [
        [[*map(float, line.get_ydata())] for line in axes.get_lines()] for axes in contexts(rows(), styles(rows())).axes
    ]  # type: ignore[arg-type]
    accuracy, ap = ([values in lines for lines in panels] for values in ([42.0, 44.0], [52.0, 54.0]))
    assert any(accuracy)
    assert any(ap)
    assert not any(a and b for a, b in zip(accuracy, ap, strict=True))


def test_a_method_looks_the_same_in_every_figure() -> None:
    among = styles(rows())
    assert list(among) == ["TF-IDF", HOSTILE]
    alone = [row for row in rows() if row.method == HOSTILE]
    for drawn in (rows(), alone):
        axes = contexts(drawn, among).axes
        curves = [line for one in axes for line in one.get_lines() if len(line.get_xdata())]
        looks = [(curve.get_color(), curve.get_marker()) for curve in curves]
        assert among[HOSTILE] in looks
        assert (among["TF-IDF"] in looks) == (drawn is not alone)


def test_a_method_without_windows_is_a_line_in_each_panel_and_has_none_of_its_own() -> None:
    unlimited = [replace(row, method="Order", setting="tuned", context_s=None, value=50.0) for row in rows()[:1]]
    varied = [replace(rows()[0], method="Guess", setting="baseline", context_s=c, value=44.0 + c) for c in (2.0, 4.0)]
    shown = [row for row in rows() if row.metric == unlimited[0].metric] + unlimited + varied
    panels = [axes for axes in contexts(shown, styles(shown)).axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == ["zero-shot", "last-layer"]
    lines = [list(line.get_ydata()) for axes in contexts(shown, styles(shown)).axes for line in axes.get_lines()]  # type: ignore[arg-type]
    assert lines.count([50.0, 50.0]) == 2
    assert [46.0, 46.0] not in lines, "it has another value at another window"
    assert [48.0, 48.0] not in lines
    people = replace(unlimited[0], method="People", setting="reference", status="reference", value=51.0)
    labels = [text.get_text() for axes in contexts([*shown, people], styles(shown)).axes for text in axes.texts]
    assert {"Order 50", "People (paper) 51"} < {*labels}
