import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.availability import (
    Record,
    check_video_id,
    read_availability,
    read_manifest,
    write_availability,
    write_manifest,
)
from stepline.errors import ReleaseError, StoreError

ALLOWED = "10062019", "z0Ut8daLD6I", "-Abc_d.e", "_", "a" * 128, "é" * 64
SCRIPTS = "料理", "ต้มยำ", "खाना_१२", "שלום", "한국", "½", "Å"


@pytest.mark.parametrize("video", [*ALLOWED, *SCRIPTS])
def test_file_names_are_allowed_and_come_back_composed(video: str) -> None:
    assert check_video_id(video) == video
    assert check_video_id("Gru\u0308n") == "Gr\u00fcn"


@pytest.mark.parametrize(
    "video",
    [
        *("../../x", "..", ".", ".hidden", "", "a/b", "a\\b", "/etc/passwd", "a b", "a\n", "a\0", "a" * 129, "é" * 65),
        *("a\u200bb", "a\u202eb", "a\u2066", "a\u200d", "a\ufe0f", "\u3164", "a\x7f", "a\u0085", "a\u2028", "a\u00a0b"),
        *("a\uff0fb", "a\u2044b", "a\u2024\u3000", "a\udcff", "料理\uff0a", "\u20dd", "\ue000"),
        *("a*", "a?", "a[b]", "{a}", "a:b"),
    ],
)
def test_what_is_no_file_name_is_refused(video: str) -> None:
    with pytest.raises(ReleaseError) as error:
        check_video_id(video)
    assert repr(video) in str(error.value)
    assert "\n" not in str(error.value)


@given(st.text())
def test_an_allowed_id_stays_in_its_folder(video: str) -> None:
    try:
        check_video_id(video)
    except ReleaseError:
        return
    assert (Path("videos") / f"{video}.mp4").resolve().parent == Path("videos").resolve()


def test_records_come_back_in_the_order_of_their_ids(tmp_path: Path) -> None:
    records = [
        Record(video="b", status="failed", reason="host is unreachable", source="https://x/b.mp4", attempts=3),
        Record(
            video="a",
            status="present",
            path="videos/a.webm",
            sha256="0" * 64,
            size=7,
            source="https://x/a",
            downloader="yt-dlp 2026.10.26",
            format="137+140",
            codec="vp9",
            width=1280,
            height=720,
            fps=29.97,
            duration_s=31326.061,
            kept=False,
        ),
    ]
    write_availability(tmp_path / "000.json", records)
    assert list(read_availability(tmp_path / "000.json").items()) == [("a", records[1]), ("b", records[0])]
    again = (tmp_path / "000.json").read_bytes()
    write_availability(tmp_path / "000.json", records[::-1])
    assert (tmp_path / "000.json").read_bytes() == again


def test_a_record_that_says_little_was_kept_and_a_manifest_may_say_more(tmp_path: Path) -> None:
    (tmp_path / "000.json").write_text('{"videos": {"a": {"video": "a", "status": "gone"}}}')
    assert read_availability(tmp_path / "000.json") == {"a": Record(video="a", status="gone", kept=True)}
    videos = {"a": {"status": "failed", "reason": "no audio"}}
    write_manifest(tmp_path / "000.json", videos, spec={"name": "x"})
    assert read_manifest(tmp_path / "000.json") == videos


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"videos": []}', '{"videos": {"a": {}}}', '{"videos": {"a": 1}}']
)
def test_a_damaged_manifest_is_one_line(content: str) -> None:
    Path("000.json").write_text(content)
    for read in (read_manifest, read_availability):
        with pytest.raises(StoreError, match="000.json .*: remove it and run the same command again$"):
            read("000.json")


@pytest.mark.parametrize("record", ['{"status": "present"}', '{"video": "a", "status": "present", "colour": "red"}'])
def test_a_damaged_availability_is_one_line(record: str) -> None:
    Path("000.json").write_text(f'{{"videos": {{"a": {record}}}}}')
    with pytest.raises(StoreError, match="000.json .*: remove it and run the same command again$"):
        read_availability("000.json")


def test_only_what_changes_how_a_file_is_read_changes_what_it_is_known_by() -> None:
    plain = Record(video="a", status="present", sha256="abc")
    assert plain.identity("upright") == plain.identity("stored") == "abc"
    turned, late = replace(plain, rotation=90), replace(plain, rotation=270, begin_s=2.0)
    assert (turned.identity("upright"), turned.identity("stored")) == ("abc+90", "abc+0")
    assert (late.identity("upright"), late.identity("stored")) == ("abc+270@2.000", "abc+0@2.000")
    assert replace(turned, stream=1).identity("upright") == "abc~1+90"


def test_the_seconds_of_a_video_are_those_of_its_spans_or_of_its_file() -> None:
    whole = Record(video="a", status="present", duration_s=60.0)
    assert (whole.seen_s, replace(whole, spans=[[1.0, 3.0], [10.0, 14.5]]).seen_s) == (60, 6.5)
    assert replace(whole, status="failed").seen_s == 0


def test_a_record_of_an_earlier_version_is_of_an_upright_video(tmp_path: Path) -> None:
    write_availability(tmp_path / "a.json", [Record(video="a", status="present", sha256="abc")])
    content = json.loads((tmp_path / "a.json").read_text())
    content.pop("seal", None)
    for field in ("rotation", "begin_s"):
        del content["videos"]["a"][field]
    (tmp_path / "a.json").write_text(json.dumps(content))
    assert read_availability(tmp_path / "a.json")["a"].identity("upright") == "abc"
