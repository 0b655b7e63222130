import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import stepline
from stepline import paths
from stepline.availability import write_availability
from stepline.backbones.histogram import HistogramSpec
from stepline.cli import main
from stepline.errors import StoreError
from stepline.features import store
from stepline.features.extract import Work
from stepline.features.store import Part
from stepline.features.verify import Checked, verify
from stepline.io import read_json, write_json
from stepline.lock import acquire
from tests.features.conftest import SPEC, ListedSpec, content, rows
from tests.features.test_extract import present
from tests.features.test_extract import store as extracted
from tests.media.clips import CFR_25, make

SHARD = paths.features("mine", "000", SPEC)
MANIFEST = paths.features_manifest("mine", "000", SPEC)
FOLDER = paths.spec_record(SPEC).parent


PARTS = {"a": rows(5, 1), "b": [Part(rows(4, 2), 1.0, 0.9, 3.0), Part(rows(3, 3), 9.0, 9.0, 12.0)], "c": rows(9, 4)}
SOURCES = {video: video * 64 for video in "abc"}


@pytest.fixture(autouse=True)
def work() -> None:
    """Make two shards in a work folder."""
    write_json(paths.spec_record(SPEC), SPEC.record())
    for shard, parts in (("000", PARTS), ("001", {"d": rows(3, 5)})):
        store.write(paths.features("mine", shard, SPEC), SPEC, parts, 0.5, sources=SOURCES)
        write_json(paths.features_manifest("mine", shard, SPEC), {"videos": {}})
    (FOLDER / "mine/texts/v").mkdir(parents=True)  # an encoder's
    write_json(paths.text_manifest("mine", "v0", "steps", "a", SPEC), {})
    (FOLDER / "mine/000.parts").mkdir()


def flip(path: Path, place: int) -> None:
    changed = bytearray(path.read_bytes())
    changed[place] ^= 1
    path.write_bytes(changed)


def test_whole_stores_stay_as_they_are() -> None:
    before = content(Path("features"))
    assert list(verify(FOLDER)) == [Checked(SHARD, []), Checked(SHARD.with_name("001"), [])]
    assert content(Path("features")) == before


@pytest.mark.parametrize(("row", "video"), [(0, "a"), (4, "a"), (5, "b"), (11, "b"), (12, "c"), (20, "c")])
def test_only_the_damaged_video_goes(row: int, video: str, capsys: pytest.CaptureFixture[str]) -> None:
    flip(SHARD / "features/c/0/0", row * 14)
    assert main(["verify"]) == 2
    shown = capsys.readouterr()
    assert shown.out == f"{SHARD}: {video} is damaged\n"
    assert shown.err.count("\n") == 1
    left = {each: part for each, part in PARTS.items() if each != video}
    store.write(Path("wanted"), SPEC, left, 0.5, sources=SOURCES)
    assert content(SHARD) == content(Path("wanted"))
    assert read_json(paths.damages("mine", "000", SPEC)) == {"found": 1}
    assert not paths.damages("mine", "001", SPEC).exists()
    assert main(["verify", str(FOLDER)]) == 0
    assert capsys.readouterr().out == "2 stores are intact\n"
    flip(SHARD / "features/c/0/0", 0)
    assert main(["verify"]) == 2
    assert read_json(paths.damages("mine", "000", SPEC)) == {"found": 2}, "so that the job runs once more"


def test_a_store_is_changed_only_while_no_job_writes_it() -> None:
    flip(SHARD / "features/c/0/0", 0)
    lock = paths.features_lock("mine", "000")
    lock.parent.mkdir()
    verifying = Thread(target=lambda: list(verify(FOLDER)))
    with acquire(lock):
        verifying.start()
        verifying.join(0.5)
        assert "a" in store.read(SHARD).blocks
    verifying.join()
    assert "a" not in store.read(SHARD).blocks


def test_the_last_video_may_go() -> None:
    shard = SHARD.with_name("001")
    flip(shard / "features/c/0/0", 3)
    assert list(verify(FOLDER))[1] == Checked(shard, ["d"])
    held = store.read(shard)
    assert (held.rows.shape, held.blocks) == ((0, 7), {})


def test_listed_clips_stay_with_their_rows() -> None:
    spec = ListedSpec()
    parts, clips = {"a": rows(2, 1), "b": rows(2, 2)}, {"a": [(0.0, 4.0), (1.0, 2.0)], "b": [(1.0, 2.0), (0.5, 3.0)]}
    write_json(paths.spec_record(spec), spec.record())
    shard = paths.features("mine", "000", spec)
    store.write(shard, spec, parts, 0.5, clips=clips)
    flip(shard / "features/c/0/0", 0)
    assert list(verify(paths.spec_record(spec).parent)) == [Checked(shard, ["a"])]
    bank = stepline.open_bank(paths.spec_record(spec).parent)
    assert bank.videos == {"b"}
    assert np.array_equal(bank.clip("b", 0.5, 3.0), rows(2, 2)[1])


@pytest.mark.parametrize(
    "damage",
    [
        lambda: (SHARD / "features/c/0/0").unlink(),
        lambda: os.truncate(SHARD / "features/c/0/0", 100),
        lambda: (SHARD / "features/zarr.json").unlink(),
        lambda: (SHARD / "index.parquet").unlink(),
        lambda: flip(SHARD / "features/c/0/0", -1),
        lambda: flip(SHARD / "index.parquet", 40),
    ],
)
def test_what_all_videos_depend_on_is_left_to_the_next_run(
    damage: Callable[[], object], capsys: pytest.CaptureFixture[str]
) -> None:
    damage()
    before = content(SHARD)
    assert main(["verify"]) == 2
    assert capsys.readouterr().out == f"{SHARD} is missing or damaged\n"
    assert content(SHARD) == before
    assert read_json(paths.damages("mine", "000", SPEC)) == {"found": 1}


def test_another_folder_is_refused() -> None:
    with pytest.raises(StoreError, match="^features is not a folder features/<backbone>/<spec>$"):
        list(verify(Path("features")))


def test_the_next_run_makes_only_what_was_damaged(decoded: list[str]) -> None:
    pytest.importorskip("cv2")
    spec = HistogramSpec()
    write_availability("availability.json", [present(make(Path(f"{video}.mp4").absolute(), CFR_25)) for video in "abc"])
    write_json(paths.spec_record(spec), spec.record())
    shard = paths.features("clips", "000", spec)

    def run() -> dict[str, bytes]:
        extracted(Path(), Work(spec=spec, store=shard))
        return content(shard) | {"manifest": Path("manifest.json").read_bytes()}

    before = run()
    flip(shard / "features/c/0/0", 20 * 4 * spec.dimension)  # 15 rows a video: it is b's
    assert Checked(shard, ["b"]) in list(verify(paths.spec_record(spec).parent))
    decoded.clear()
    assert run() == before
    assert decoded == ["b"]
