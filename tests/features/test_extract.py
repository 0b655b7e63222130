import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.availability import Record, read_manifest, write_availability
from stepline.backbones.histogram import HistogramSpec, describe
from stepline.features.bank import Bank
from stepline.features.extract import Work, extract
from stepline.io import sha256_file
from stepline.media.decode import frames
from tests.features.conftest import content
from tests.media.clips import CFR_25, LIMITS, VFR, make

pytest.importorskip("cv2")
SPEC = HistogramSpec()


def present(path: Path) -> Record:
    return Record(video=path.stem, status="present", path=str(path), sha256=sha256_file(path))


OPTIONS = {"device": "cpu", "batch_size": None, "decoders": 1}


def store(folder: Path, *works: Work, manifest: str = "manifest.json", **options: Any) -> None:
    """Run the stage on the shard in ``folder``."""
    lock = folder / "features/.locks/lock"
    availability = folder / "availability.json"
    extract(availability, works, folder / manifest, lock=lock, limits=LIMITS, options=OPTIONS | options)


def run(tmp_path: Path, *records: Record, spec: HistogramSpec = SPEC) -> dict[str, dict]:
    write_availability(tmp_path / "availability.json", list(records))
    store(tmp_path, Work(spec=spec, store=tmp_path / "features/000"))
    return read_manifest(tmp_path / "manifest.json")


def test_rows_describe_the_frame_at_or_before_their_time(tmp_path: Path) -> None:
    made = run(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)), present(make(tmp_path / "b.mp4", VFR)))
    bank = Bank.open([tmp_path / "features/000"], SPEC)
    for video, times in (("a", CFR_25), ("b", VFR)):
        pictures = [frame.rgb() for frame in frames(tmp_path / f"{video}.mp4")]
        rows = bank.window(video, 0, 1000)
        assert len(rows) == made[video]["n_rows"]
        for k, row in enumerate(rows):
            index = max(i for i, t in enumerate(times) if t <= Fraction(k, 5))
            assert np.array_equal(row, describe(pictures[index], SPEC))


def test_decord_reads_the_same_rows_in_the_processes_of_a_job(tmp_path: Path) -> None:
    pytest.importorskip("decord")
    stores = {}
    for spec in (SPEC, HistogramSpec(reader="decord")):
        folder = tmp_path / spec.reader
        folder.mkdir()
        assert run(folder, present(make(folder / "a.mp4", CFR_25)), spec=spec)["a"]["reason"] == ""
        stores[spec.id] = Bank.open([folder / "features/000"], spec)["a"]
    ours, theirs = stores.values()
    assert np.allclose(ours, theirs, atol=0.01)


def test_what_cannot_be_read_is_a_record_and_the_rest_is_made(tmp_path: Path) -> None:
    whole = make(tmp_path / "whole.mp4", [Fraction(i, 25) for i in range(250)], options={"movflags": "faststart"})
    (tmp_path / "short.mp4").write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    (tmp_path / "text.mp4").write_text("no video")
    gone = Record(video="private", status="gone", reason="private video")
    absent = Record(video="absent", status="present", path=str(tmp_path / "absent.mp4"), sha256="0")
    made = run(tmp_path, *(present(tmp_path / f"{name}.mp4") for name in ("whole", "short", "text")), gone, absent)
    statuses = {video: record["status"] for video, record in made.items()}
    assert statuses == {"whole": "present", "short": "present", "text": "failed", "private": "gone", "absent": "failed"}
    assert all(record["reason"] for video, record in made.items() if video != "whole")
    bank = Bank.open([tmp_path / "features/000"], SPEC)
    assert (bank.videos, [*bank.damaged]) == ({"whole", "short"}, ["short"])
    assert np.array_equal(bank["short"], bank["whole"][: made["short"]["n_rows"]])
    _, end_s, reason = made["short"]["gaps"][-1]
    assert (end_s, reason.partition(":")[0]) == (pytest.approx(10, abs=0.04), "truncated")


def test_only_new_and_changed_videos_are_decoded(tmp_path: Path, decoded: list[str]) -> None:
    a, b = present(make(tmp_path / "a.mp4", CFR_25)), present(make(tmp_path / "b.mp4", VFR))
    first = run(tmp_path, a)
    kept = (tmp_path / "features/000/features/c/0/0").stat().st_ino
    assert run(tmp_path, a) == first
    assert (tmp_path / "features/000/features/c/0/0").stat().st_ino == kept
    run(tmp_path, a, b)
    assert decoded == ["a", "b"]
    make(tmp_path / "a.mp4", CFR_25[:50])
    run(tmp_path, present(tmp_path / "a.mp4"), b)
    assert decoded == ["a", "b", "a"]
    bank = Bank.open([tmp_path / "features/000"], SPEC)
    assert (len(bank.rows["a"]), bank.videos) == (10, {"a", "b"})
    run(tmp_path, b)
    assert Bank.open([tmp_path / "features/000"], SPEC).videos == {"b"}
    assert decoded == ["a", "b", "a"]


def flip(path: Path) -> None:
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("features/c/0/0", flip),
        ("features/c/0/0", os.unlink),
        ("features/zarr.json", truncate),
        ("index.parquet", os.unlink),
    ],
)
def test_what_is_damaged_is_made_anew(
    tmp_path: Path, decoded: list[str], file: str, damage: Callable[[Path], object]
) -> None:
    a = present(make(tmp_path / "a.mp4", CFR_25[:25]))
    run(tmp_path, a)
    whole = content(tmp_path / "features/000")
    damage(tmp_path / "features/000" / file)
    run(tmp_path, a)
    assert decoded == ["a", "a"]
    assert content(tmp_path / "features/000") == whole


def test_a_store_without_videos_is_empty_and_is_made_anew_where_it_is_damaged(tmp_path: Path) -> None:
    private = Record(video="private", status="gone", reason="private video")
    run(tmp_path, private)
    assert Bank.open([tmp_path / "features/000"], SPEC).videos == frozenset()
    whole = content(tmp_path / "features/000")
    (tmp_path / "features/000/index.parquet").unlink()
    run(tmp_path, private)
    assert content(tmp_path / "features/000") == whole


def test_rows_by_another_spec_are_made_anew(tmp_path: Path, decoded: list[str]) -> None:
    a = present(make(tmp_path / "a.mp4", CFR_25))
    run(tmp_path, a)
    other = HistogramSpec(hues=4)
    run(tmp_path, a, spec=other)
    assert Bank.open([tmp_path / "features/000"], other).videos == {"a"}
    assert decoded == ["a", "a"]


SLOW = """
import sys, time
from pathlib import Path
from stepline.backbones.histogram import HistogramSpec
from stepline.features.extract import Work, extract
from stepline.media.process import Decoder, Limits
decode = Decoder.__call__
def stuck(self, work, video, *rest, **limits):
    if video.stem == "b":
        time.sleep(600)
    return decode(self, work, video, *rest, **limits)
Decoder.__call__ = stuck
limits = Limits(memory_mb=1000, least_s=600, s_per_video_s=4)
options = {"device": "cpu", "batch_size": None, "decoders": 1}
if __name__ == "__main__":
    availability, folder, manifest = map(Path, sys.argv[1:])
    work = Work(spec=HistogramSpec(), store=folder)
    extract(availability, [work], manifest, lock=folder.with_name("lock"), limits=limits, options=options)
"""


def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path, decoded: list[str]) -> None:
    a, b = present(make(tmp_path / "a.mp4", CFR_25)), present(make(tmp_path / "b.mp4", VFR))
    write_availability(tmp_path / "availability.json", [a, b])
    paths = [tmp_path / "availability.json", tmp_path / "features/000", tmp_path / "manifest.json"]
    with subprocess.Popen([sys.executable, "-c", SLOW, *map(str, paths)]) as process:
        deadline = time.monotonic() + 60
        while not list((tmp_path / "features").glob("000.parts/a.????????.npz")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "features/000").exists()
    assert not (tmp_path / "manifest.json").exists()
    made = run(tmp_path, a, b)
    assert decoded == ["b"]
    assert {record["status"] for record in made.values()} == {"present"}
    assert sorted(path.name for path in (tmp_path / "features").iterdir()) == [".locks", "000", "lock", "lock.all.lock"]
    store(tmp_path, Work(spec=SPEC, store=tmp_path / "whole/000"), manifest="whole.json")
    assert (tmp_path / "manifest.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    shard = "000/features/c/0/0"
    assert (tmp_path / "features" / shard).read_bytes() == (tmp_path / "whole" / shard).read_bytes()


def test_rows_of_spans_are_those_of_the_whole(tmp_path: Path, decoded: list[str]) -> None:
    a, b = present(make(tmp_path / "a.mp4", CFR_25)), present(make(tmp_path / "b.mp4", VFR))
    run(tmp_path, a, b)
    whole = Bank.open([tmp_path / "features/000"], SPEC)
    every = {video: np.array(whole.rows[video]) for video in "ab"}
    spans = [[0.5, 0.9], [1.2, 1.9], [2.4, 50.0]]
    part = replace(a, spans=spans)
    made = run(tmp_path, part, b)
    assert decoded == ["a", "b", "a"]
    bank = Bank.open([tmp_path / "features/000"], SPEC)
    assert bank.rows["a"].tolist() == every["a"][[3, 4, 6, 7, 8, 9, 12, 13, 14]].tolist()
    assert made["a"]["n_rows"] == 9
    assert [(block.t0_s, block.start_s, block.end_s) for block in bank.blocks["a"]] == [
        (0.6, 0.5, 0.9),
        (1.2, 1.2, 1.9),
        (2.4, 2.4, 50.0),
    ]
    for start_s in np.arange(1.2, 1.5, 0.1):
        assert bank.window("a", start_s, start_s + 0.3).tolist() == whole.window("a", start_s, start_s + 0.3).tolist()
    assert run(tmp_path, part, b) == made
    assert decoded == ["a", "b", "a"]
    run(tmp_path, replace(part, spans=spans[:2]), b)
    run(tmp_path, a, b)
    assert decoded == ["a", "b", "a", "a", "a"]
    assert Bank.open([tmp_path / "features/000"], SPEC).rows["a"].tolist() == every["a"].tolist()
    failed = run(tmp_path, replace(a, spans=[[0.41, 0.59], [60.0, 70.0]]), b)["a"]
    assert (failed["status"], failed["reason"]) == ("failed", "no row lies within its spans")
