"""The page of a study of recordings: self-contained, escaped, deterministic, with every part that it was given."""

import base64
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

from stepline.report.recordings import Timeline, write_report  # noqa: E402

from stepline.asr.transcript import Sentence  # noqa: E402
from stepline.availability import Record  # noqa: E402
from stepline.benchmarks.spacewalk.report.figure_contexts import contexts, styles  # noqa: E402
from stepline.benchmarks.spacewalk.report.figure_timeline import timeline as draw_timeline  # noqa: E402
from stepline.needs import Need  # noqa: E402
from stepline.report.stages import Stages  # noqa: E402
from stepline.tables import Number, Row  # noqa: E402
from tests.tables.numbers import SAMPLE_LIST, build, number  # noqa: E402

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
def timeline(tmp_path: Path) -> Timeline:
    samples = {"a": [{"frame_index": 30 * i, "label": i // 10, "id": i} for i in range(40)]}
    (tmp_path / "test.json").write_text(json.dumps(samples))
    records = [
        {
            "seed": seed,
            "split": "test",
            "video": "a",
            "sample": i,
            "prediction": None if i >= 20 else seed * 9,
            "scores": [],
        }
        for seed in (0, 1)
        for i in range(40)
    ]
    schema = [("seed", pa.int64()), ("split", pa.string()), ("video", pa.string()), ("sample", pa.int64())]
    schema += [("prediction", pa.int64()), ("scores", pa.list_(pa.float32()))]
    parquet.write_table(pa.Table.from_pylist(records, schema=pa.schema(schema)), tmp_path / "p.parquet")
    predictions = {HOSTILE: tmp_path / "p.parquet", "absent": tmp_path / "no.parquet"}
    return Timeline(release="demo", samples=tmp_path / "test.json", fps=30.0, predictions=predictions)


def stages(pictures: dict[int, Path] | None = None) -> Stages:
    return Stages(
        availability=[Record(video="a", status="gone", reason=HOSTILE)],
        shots={"a": [(0.0, 0.5), (0.5, 1.0)]},
        pictures={"a": pictures or {}},
        without_pictures={} if pictures else {"a": f"deleted {HOSTILE}"},
        transcripts={"a": [Sentence(text=HOSTILE, start_s=0.0, end_s=2.0), Sentence(text="x", start_s=2.0, end_s=3.0)]},
        scripts={"a": [Sentence(text="Open the hatch.", start_s=0.5, end_s=1.5)]},
    )


def page(path: Path, timeline: Timeline, pictures: dict[int, Path] | None = None) -> str:
    write_report(path, title=f"Demo {HOSTILE}", rows=rows(), timelines=[timeline], stages=stages(pictures))
    return path.read_text()


def images(text: str, kind: str) -> list[bytes]:
    return [base64.b64decode(found) for found in re.findall(rf'src="data:image/{kind};base64,([^"]+)"', text)]


def test_hostile_text_is_escaped_everywhere(tmp_path: Path, timeline: Timeline) -> None:
    text = page(tmp_path / "r.html", timeline)
    assert "<script" not in text
    assert text.count("&lt;script&gt;") >= 6
    assert "stepline fetch &lt;x&gt;" in text


def test_the_page_asks_nothing_of_the_network(tmp_path: Path, timeline: Timeline) -> None:
    text = page(tmp_path / "r.html", timeline)
    assert not re.findall(r'(?:src|href)="(?!data:image/|#)', text)
    assert "url(" not in text
    assert "@import" not in text


def test_every_image_has_a_text_and_is_valid_svg(tmp_path: Path, timeline: Timeline) -> None:
    text = page(tmp_path / "r.html", timeline)
    tags = re.findall(r"<img [^>]*>", text)
    assert len(tags) == 3
    assert all(re.search(r'alt="[^"]{20,}"', tag) for tag in tags)
    for image in images(text, r"svg\+xml"):
        assert ElementTree.fromstring(image).tag == "{http://www.w3.org/2000/svg}svg"


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path, timeline: Timeline) -> None:
    first, second = (page(tmp_path / name, timeline) for name in ("a.html", "b.html"))
    assert first == second


def test_the_page_holds_tables_gaps_facts_and_speech_beside_the_script(tmp_path: Path, timeline: Timeline) -> None:
    text = page(tmp_path / "r.html", timeline)
    assert '<td class="number ours">42.00</td>' in text
    assert "weights:egovlp" in text
    assert "sees THE SAMPLE LIST" in text
    assert re.search(r"<td>&lt;script&gt;[^\n]*</td><td>Open the hatch\.</td>", text)
    assert "<td>x</td><td></td>" in text


def test_a_timeline_shows_the_lowest_seed_and_counts_no_guess_as_right(tmp_path: Path, timeline: Timeline) -> None:
    text = page(tmp_path / "r.html", timeline)
    assert re.search(r"Labels of 40 samples of a over time[^\"]* 25\.0 %", text)
    assert "absent" not in text


def test_parts_that_are_not_given_are_left_out(tmp_path: Path) -> None:
    write_report(tmp_path / "r.html", title="Demo", rows=rows())
    text = (tmp_path / "r.html").read_text()
    assert 'id="stages"' not in text
    assert 'id="timelines"' not in text


def test_a_shot_has_its_picture(tmp_path: Path, timeline: Timeline) -> None:
    (tmp_path / "1.jpg").write_bytes(b"a picture")
    text = page(tmp_path / "r.html", timeline, {0: tmp_path / "absent.jpg", 1: tmp_path / "1.jpg"})
    assert images(text, "jpeg") == [b"a picture"]
    assert "Middle frame of shot 2 of a" in text


def test_why_shots_have_no_pictures_is_said(tmp_path: Path, timeline: Timeline) -> None:
    text = page(tmp_path / "r.html", timeline)
    assert "a: 2 shots" in text
    assert images(text, "jpeg") == []
    assert "<p>deleted &lt;script&gt;" in text


def test_a_timeline_changes_halfway_between_two_samples() -> None:
    (strip,) = draw_timeline([0.0, 10.0], [1, 2], {}).axes[0].images
    (row,) = strip.get_array().tolist()
    assert row == [2] * 600 + [3] * 600


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
