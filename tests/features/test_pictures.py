from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("av")
pytest.importorskip("cv2")

from stepline.availability import Record
from stepline.errors import StoreError
from stepline.features import pictures
from stepline.features.frames import Batch, Begun, Request, batches
from stepline.features.pictures import Videos, keep, stream
from tests.features import toy
from tests.features.test_extract import present
from tests.media.clips import CFR_25, CFR_30, LIMITS, make

SPEC = replace(toy.SPEC, placement="ends")
LISTED = {"a": [(0.0, 2.0), (1.0, 3.0), (0.5, 1.0), (0.0, 4.0)], "b": [(0.0, 1.0)] * 19, "none": []}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    folder = tmp_path_factory.mktemp("videos")
    return {path.stem: present(path) for path in (make(folder / "a.mp4", CFR_30), make(folder / "b.mp4", CFR_25))}


@pytest.fixture
def videos(records: dict[str, Record], tmp_path: Path) -> Videos:
    return Videos(records=records, limits=LIMITS, decoders=2, scratch=tmp_path)


def wanted(records: dict[str, Record], video: str) -> np.ndarray:
    """Return each clip's pictures by a pass for it alone."""
    found = []
    for clip in LISTED[video]:
        asked = Request(spec=SPEC, batch_size=1, listed=[clip])
        found += [m.clips[0] for m in batches(Path(records[video].path), [asked], ()) if isinstance(m, Batch)]
    return np.stack(found)


def test_pictures_stand_where_their_clips_are_listed(
    records: dict[str, Record], videos: Videos, tmp_path: Path
) -> None:
    kept = keep(SPEC, LISTED, videos, tmp_path / "kept")
    assert kept.keys() == {"a", "b"}
    for video, array in kept.items():
        assert np.array_equal(array, wanted(records, video))
    left = {video: [] for video in kept}
    for seen in stream(SPEC, LISTED, videos, 4):
        assert np.array_equal(seen.clips, kept[seen.video][seen.places])
        assert seen.shown.all()
        left[seen.video].append(seen.left)
    assert left == {"a": [0], "b": [15, 11, 7, 3, 1, 0]}


def test_a_video_that_is_there_is_not_decoded_again(
    videos: Videos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kept"
    before = keep(SPEC, LISTED, videos, folder)
    (path,) = folder.glob("b-*.pictures")
    path.unlink()
    (folder / "b-0.part").write_bytes(b"the beginning of another")
    asked: list[str] = []

    def noted(spec: object, listed: dict[str, object], *rest: object) -> object:
        asked.extend(listed)
        return stream(spec, listed, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(pictures, "stream", noted)
    after = keep(SPEC, LISTED, videos, folder)
    assert asked == ["b"]
    assert all(np.array_equal(before[video], after[video]) for video in ("a", "b"))
    keep(SPEC, LISTED | {"a": [(0.0, 1.0)]}, videos, folder)
    assert asked == ["b", "a"]
    assert len(list(folder.iterdir())) == 2
    keep(replace(SPEC, orientation="stored"), LISTED, videos, folder)
    assert asked == ["b", "a", "a", "b"]
    changed = {video: replace(record, begin_s=1.0) for video, record in videos.records.items()}
    keep(replace(SPEC, orientation="stored"), LISTED, replace(videos, records=changed), folder)
    assert asked == ["b", "a", "a", "b", "a", "b"]


def test_a_disk_that_is_too_small_is_one_line(videos: Videos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = 23 * 4 * 32 * 32 * 3
    monkeypatch.setattr(pictures.shutil, "disk_usage", lambda _: SimpleNamespace(free=needed - 1))
    with pytest.raises(StoreError, match="the pictures of 23 windows need 0.0 GB during a fit, but 0.0 GB are"):
        keep(SPEC, LISTED, videos, tmp_path / "kept")
    monkeypatch.setattr(pictures.shutil, "disk_usage", lambda _: SimpleNamespace(free=needed))
    assert keep(SPEC, LISTED, videos, tmp_path / "kept")


def test_a_video_that_cannot_be_read_is_one_line(videos: Videos, tmp_path: Path) -> None:
    (tmp_path / "c.mp4").write_text("no video")
    spoilt = replace(videos, records={**videos.records, "c": present(tmp_path / "c.mp4")})
    with pytest.raises(StoreError, match=r"c.mp4 cannot be read: "):
        list(stream(SPEC, {"c": [(0.0, 1.0)]}, spoilt, 2))
    with pytest.raises(StoreError, match=r"a.mp4 cannot be read: the clip from 5.0 s to 6.0 s lies outside"):
        list(stream(SPEC, {"a": [(5.0, 6.0)]}, videos, 2))


def test_a_clip_that_is_lost_is_one_line(videos: Videos, monkeypatch: pytest.MonkeyPatch) -> None:
    none = np.zeros(0, np.int64)
    begun = Begun(0, none, none, none, gaps=[(1.0, 2.0, "damaged")])
    monkeypatch.setattr(pictures, "decoded", lambda jobs, *rest: ((0, each) for each in (begun,)))
    with pytest.raises(StoreError, match=r"a.mp4 cannot be read: 1.000 to 2.000 s: damaged$"):
        list(stream(SPEC, LISTED, videos, 4))
