import os
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.availability import Record, read_manifest, write_availability
from stepline.io import read_json, sha256_file, write_sealed
from stepline.media.decode import MediaError
from stepline.media.prepare import Media, prepare
from tests.media.clips import CFR_25, LIMITS, VFR, make, without_audio_between

pytest.importorskip("cv2")
pq = pytest.importorskip("pyarrow.parquet")


def clicks() -> np.ndarray:
    """Return three seconds in which a tone of 50 ms starts at each half second."""
    audio = np.zeros(48_000, np.int16)
    for start in (8_000, 24_000, 40_000):
        audio[start : start + 800] = 20_000 * np.sin(np.arange(800) * 0.5)
    return audio


def heard(tmp_path: Path) -> list[int]:
    """Return where sound starts in the audio of ``a``, as sample indices."""
    with wave.open(str(tmp_path / "media/a/audio.wav")) as file:
        assert file.getparams()[:3] == (1, 2, 16_000)
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    loud = np.flatnonzero(np.abs(samples.astype(int)) > 2_000)
    return [int(at) for at in loud[np.diff(loud, prepend=-8_000) >= 8_000]]


def present(path: Path) -> Record:
    return Record(video=path.stem, status="present", path=str(path), sha256=sha256_file(path))


def run(tmp_path: Path, *records: Record, **options: Any) -> dict[str, dict]:
    write_availability(tmp_path / "availability.json", list(records))
    prepare(
        tmp_path / "availability.json",
        Media(tmp_path / "media", **options),
        tmp_path / "media/manifests/000.json",
        limits=LIMITS,
    )
    return read_manifest(tmp_path / "media/manifests/000.json")


def test_a_video_is_probed_scored_and_heard(tmp_path: Path) -> None:
    made = run(tmp_path, present(make(tmp_path / "a.mp4", CFR_25, audio=clicks())))["a"]
    assert (made["status"], made["n_frames"], made["width"], made["height"]) == (
        "present",
        75,
        320,
        64,
    )
    assert made["duration_s"] == pytest.approx(3, abs=0.01)
    assert made["audio"] == {"status": "present", "reason": "", "loud_s": pytest.approx(0.14, abs=0.03)}
    scores = pq.read_table(tmp_path / "media/a/scores.parquet")
    assert scores.column("t_s").to_pylist() == [float(t) for t in CFR_25]
    assert scores.schema.metadata[b"time_base"] == b"1/90000"


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.ts"])
def test_audio_is_aligned_with_the_pictures(tmp_path: Path, name: str) -> None:
    options = {"output_ts_offset": "50"} if name == "a.ts" else {}
    run(
        tmp_path,
        present(make(tmp_path / name, CFR_25, audio=clicks(), options=options)),
    )
    assert heard(tmp_path) == pytest.approx([8_000, 24_000, 40_000], abs=16)


def test_only_audio_of_earlier_versions_that_is_damaged_or_quiet_is_written_again(tmp_path: Path) -> None:
    """Its header stated the samples of a first, failed pass; other tracks of a quiet file were not tried."""
    loud, quiet = clicks(), np.full(48_000, 100, np.int16)
    sounds = {"cut": loud, "whole": loud, "quiet": quiet}
    records = [present(make(tmp_path / f"{name}.mp4", CFR_25, audio=sound)) for name, sound in sounds.items()]
    made = run(tmp_path, *records)
    for name in sounds:
        folder = tmp_path / "media" / name
        old = read_json(folder / "media.json")
        del old["audio"]["loud_s"]
        write_sealed(folder / "media.json", old)
    with open(tmp_path / "media/cut/audio.wav", "r+b") as file:
        file.seek(40)
        file.write((1000).to_bytes(4, "little"))
    before = {name: (tmp_path / "media" / name / "audio.wav").stat().st_ino for name in sounds}
    again = run(tmp_path, *records)
    changed = {name for name in sounds if (tmp_path / "media" / name / "audio.wav").stat().st_ino != before[name]}
    assert changed == {"cut", "quiet"}
    assert {name: "loud_s" in of["audio"] for name, of in again.items()} == dict.fromkeys(changed, True) | {
        "whole": False
    }
    assert again["cut"] == made["cut"]
    with wave.open(str(tmp_path / "media/cut/audio.wav")) as wav:
        assert wav.getnframes() == pytest.approx(48_000, abs=2000)


def test_sound_after_a_gap_stays_at_its_time(tmp_path: Path) -> None:
    whole = make(tmp_path / "whole.mp4", CFR_25, audio=clicks())
    run(tmp_path, present(without_audio_between(whole, tmp_path / "a.mkv", 1, 2)))
    assert heard(tmp_path) == pytest.approx([8_000, 40_000], abs=32)


def test_scores_are_those_of_the_content_detector(tmp_path: Path) -> None:
    scenedetect = pytest.importorskip("scenedetect")
    noise = np.random.default_rng(0).integers(0, 256, (6, 240, 426, 3), np.uint8)
    path = make(tmp_path / "a.mp4", VFR, picture=lambda i: noise[i // 12] // (1 + i % 2))
    run(tmp_path, present(path))
    stats = scenedetect.StatsManager()
    manager = scenedetect.SceneManager(stats)
    manager.add_detector(scenedetect.ContentDetector())
    manager.detect_scenes(scenedetect.open_video(str(path), backend="pyav"))
    wanted = [row["content_val"] for _, row in sorted(stats._frame_metrics.items()) if "content_val" in row]
    ours = pq.read_table(tmp_path / "media/a/scores.parquet").column("content_val").to_pylist()
    assert ours[0] == 0
    assert ours[1:] == wanted


def test_what_cannot_be_read_is_a_record(tmp_path: Path) -> None:
    whole = make(
        tmp_path / "whole.mp4",
        [Fraction(i, 25) for i in range(250)],
        options={"movflags": "faststart"},
    )
    (tmp_path / "short.mp4").write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    (tmp_path / "text.mp4").write_text("no video")
    made = run(
        tmp_path,
        *(present(tmp_path / f"{name}.mp4") for name in ("whole", "short", "text")),
        Record(
            video="absent",
            status="present",
            path=str(tmp_path / "absent.mp4"),
            sha256="0",
        ),
        Record(video="private", status="gone", reason="private video"),
    )
    assert {video: record["status"] for video, record in made.items()} == {
        "whole": "present",
        "short": "present",
        "text": "failed",
        "absent": "failed",
        "private": "gone",
    }
    assert all(record["reason"] for record in made.values() if record["status"] != "present")
    assert made["whole"]["gaps"] == []
    [*_, [start_s, end_s, _]] = made["short"]["gaps"]
    assert start_s <= made["short"]["duration_s"] + 0.1
    assert end_s == pytest.approx(10, abs=0.1)
    assert made["whole"]["audio"] == {"status": "missing", "reason": "no audio stream", "loud_s": 0.0}
    assert made["private"]["reason"] == "private video"
    assert sorted(os.listdir(tmp_path / "media")) == ["manifests", "short", "whole"]
    assert sorted(os.listdir(tmp_path / "media/whole")) == [
        "media.json",
        "scores.parquet",
    ]


def test_a_finished_video_is_not_decoded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "a.mp4", CFR_25)
    record = present(path)
    first = run(tmp_path, record)
    kept = (tmp_path / "media/a/scores.parquet").stat().st_ino
    assert run(tmp_path, record) == first
    assert (tmp_path / "media/a/scores.parquet").stat().st_ino == kept
    monkeypatch.setattr("stepline.media.prepare.REVISION", 99)
    assert run(tmp_path, record)["a"] == first["a"] | {"revision": 99}
    assert (tmp_path / "media/a/scores.parquet").stat().st_ino != kept
    make(path, CFR_25[:50])
    assert run(tmp_path, present(path))["a"]["n_frames"] == 50


def test_other_spans_are_made_again(tmp_path: Path) -> None:
    record = present(make(tmp_path / "a.mp4", CFR_25, audio=clicks()))
    whole = run(tmp_path, record)["a"]
    assert whole["spans"] == []
    part = replace(record, spans=[[0.4, 0.8], [1.4, 2.0]])
    made = run(tmp_path, part)["a"]
    assert (made["n_frames"], made["spans"]) == (25, part.spans)
    assert heard(tmp_path) == pytest.approx([8_000, 24_000], abs=16)
    kept = (tmp_path / "media/a/scores.parquet").stat().st_ino
    assert run(tmp_path, part)["a"] == made
    assert (tmp_path / "media/a/scores.parquet").stat().st_ino == kept
    assert run(tmp_path, record)["a"] == whole


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of how videos are read from here on; each has a gap, and nothing is decoded."""
    made: list[str] = []

    def one_pass(path: Path, folder: Path, spans: Any, *, orientation: str, damaged: str, **_: Any) -> dict[str, Any]:
        made.append(orientation)
        if damaged == "skip":
            raise MediaError("1.000 to 2.000 s: damaged")
        (folder / "scores.parquet").touch()
        return {"gaps": [[1.0, 2.0, "damaged"]], "duration_s": 3.0, "audio": {"status": "missing", "reason": ""}}

    monkeypatch.setattr("stepline.media.prepare.one_pass", one_pass)
    return made


def video(tmp_path: Path, **fields: Any) -> Record:
    (tmp_path / "a.mp4").touch()
    return Record(video="a", status="present", path=str(tmp_path / "a.mp4"), sha256="0" * 64, **fields)


def test_a_damaged_video_fails_where_it_is_to_be_skipped_and_is_not_read_again(
    tmp_path: Path, passes: list[str]
) -> None:
    made = run(tmp_path, video(tmp_path))
    assert made["a"]["gaps"] == [[1.0, 2.0, "damaged"]]
    skipped = run(tmp_path, video(tmp_path), damaged="skip")["a"]
    assert (skipped["status"], skipped["reason"]) == ("failed", "1.000 to 2.000 s: damaged")
    assert run(tmp_path, video(tmp_path)) == made
    assert passes == ["upright"]
    assert run(tmp_path, replace(video(tmp_path), sha256="1" * 64), damaged="skip")["a"]["status"] == "failed"


def test_only_a_video_that_is_turned_or_begins_late_is_read_again(tmp_path: Path, passes: list[str]) -> None:
    plain = video(tmp_path)
    first = run(tmp_path, plain)
    assert first["a"]["sha256"] == plain.sha256
    assert run(tmp_path, plain, orientation="stored") == first
    assert passes == ["upright"]
    turned = replace(plain, rotation=90)
    assert run(tmp_path, turned)["a"]["sha256"] == f"{plain.sha256}+90"
    assert run(tmp_path, turned, orientation="stored")["a"]["sha256"] == f"{plain.sha256}+0"
    late = replace(plain, begin_s=2.0)
    assert run(tmp_path, late)["a"]["sha256"] == run(tmp_path, late)["a"]["sha256"] == f"{plain.sha256}@2.000"
    assert passes == ["upright", "upright", "stored", "upright"]


def test_another_job_may_make_the_media_of_the_next_video_between_turns(tmp_path: Path, passes: list[str]) -> None:
    records = [replace(video(tmp_path), video=name) for name in ("a", "b", "c")]
    write_availability(tmp_path / "availability.json", records)
    manifest, media = tmp_path / "media/manifests/000.json", Media(tmp_path / "media")
    turns: list[int] = []

    @contextmanager
    def turn() -> Iterator[None]:
        turns.append(len(passes))
        if len(turns) == 2:
            prepare(tmp_path / "availability.json", media, manifest, limits=LIMITS)
        yield

    prepare(tmp_path / "availability.json", media, manifest, limits=LIMITS, turn=turn)
    assert (turns, len(passes)) == ([0, 1, 3], 3)
