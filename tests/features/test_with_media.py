"""Media, shots, pictures and features of a video from one pass: equal to those of the stages one by one."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("av")
pytest.importorskip("cv2")

from stepline import config, paths
from stepline.availability import Record, read_manifest, write_availability
from stepline.backbones.histogram import HistogramSpec
from stepline.backbones.registry import FAMILIES
from stepline.features.cache import FeatureCache
from stepline.features.extract import Work, extract
from stepline.io import read_json
from stepline.media.decode import read_header
from stepline.media.prepare import Media, prepare
from stepline.media.process import Decoder
from stepline.pipeline import STAGES
from stepline.report.thumbnails import write_thumbnails
from stepline.report.with_media import media_of
from stepline.shots import Detection, detect
from stepline.spec import FrameSpec
from tests.features import toy
from tests.features.test_extract import OPTIONS, present
from tests.media.clips import CFR_25, LIMITS, make, turned

CONFIG = config.validate({"datasets": {"mine": {"videos": "."}}})
LISTED = Path("availability.json")
HISTOGRAM = HistogramSpec()
STORED = config.validate({"datasets": {"mine": {"videos": "."}}, "media": {"orientation": "stored"}})
NOISE = np.random.default_rng(0).integers(0, 256, (3, 64, 320, 3), np.uint8)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of what is decoded from here on: work and video."""
    made: list[str] = []
    decode = Decoder.__call__

    def noted(self: Decoder, work: Any, video: Path, *rest: Any, **limits: Any) -> Iterator[Any]:
        made.append(f"{work.__name__} {video.stem}")
        return decode(self, work, video, *rest, **limits)

    monkeypatch.setattr(Decoder, "__call__", noted)
    return made


@pytest.fixture
def videos(tmp_path: Path) -> list[Record]:
    times = [Fraction(i, 25) for i in range(150)]
    whole = make(tmp_path / "a.mp4", times, picture=lambda i: NOISE[i // 50], audio=np.zeros(96_000, np.int16))
    cut = make(tmp_path / "cut.mp4", times, options={"movflags": "faststart"})
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    records = [replace(present(path), duration_s=6.0) for path in (whole, make(tmp_path / "b.mp4", CFR_25), cut)]
    write_availability(LISTED, records)
    return records


def features(folder: str, media: Media | None, spec: FrameSpec = HISTOGRAM) -> None:
    work = Work(spec=spec, store=Path(folder, "000"))
    lock = Path(folder, "lock")
    extract(LISTED, [work], Path(folder, "000.json"), lock=lock, limits=LIMITS, options=OPTIONS, media=media)


def stages() -> dict[str, bytes]:
    """Run the stages of media, shots and pictures; return all files of the data set."""
    folder, shots = paths.media("mine"), paths.shots("mine")
    prepare(LISTED, Media(folder), folder / "000.json", limits=LIMITS)
    detect(folder / "000.json", folder, shots, shots / "000.json", Detection(**CONFIG["shots"]))
    write_thumbnails(LISTED, shots, paths.thumbnails("mine"), paths.thumbnails("mine") / "000.json")
    found = Path("datasets/mine")
    return {str(path): path.read_bytes() for path in sorted(found.rglob("*")) if path.is_file()}


def test_one_pass_gives_what_the_stages_give(videos: list[Record], passes: list[str]) -> None:
    features("alone", None)
    one_by_one = stages()
    Path("datasets").rename("before")
    assert sorted(passes) == sorted(
        [f"{work} {name}" for name in ("a", "b", "cut") for work in ("batches", "decode")] + ["decode_salvaged cut"]
    )
    passes.clear()
    features("together", media_of(CONFIG, "mine", STAGES))
    assert sorted(passes) == ["batches cut", "decode a", "decode b", "decode cut"]
    pictures = [path.name for path in sorted(Path("datasets/mine/thumbnails").rglob("*.jpg"))]
    assert len(pictures) == 6
    assert not (paths.media("mine") / "cut").exists()
    passes.clear()
    assert stages() == one_by_one
    assert sorted(passes) == ["decode cut", "decode_salvaged cut"]
    for file in ("000/features/c/0/0", "000/index.parquet", "000.json"):
        assert Path("together", file).read_bytes() == Path("alone", file).read_bytes()


def test_media_of_a_pass_that_ends_early_are_abandoned(videos: list[Record], monkeypatch: pytest.MonkeyPatch) -> None:
    """Their folder goes at once, not when the error and what it refers to are forgotten."""

    def failing(*_: Any) -> int:
        raise OSError("full")

    monkeypatch.setattr(FeatureCache, "add", failing)
    media = media_of(CONFIG, "mine", STAGES)
    with pytest.raises(OSError, match="full") as raised:
        features("together", media)
    assert list(paths.media("mine").rglob("*")) == [], raised


def test_media_that_are_there_are_not_made_again(videos: list[Record], passes: list[str]) -> None:
    features("together", media_of(CONFIG, "mine", STAGES))
    kept = (paths.media("mine") / "a/scores.parquet").stat().st_ino
    passes.clear()
    features("other", media_of(CONFIG, "mine", STAGES))
    assert sorted(passes) == ["batches a", "batches b", "batches cut", "decode cut"]
    assert (paths.media("mine") / "a/scores.parquet").stat().st_ino == kept


def test_a_turned_video_that_is_read_as_stored_gives_what_the_stages_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FAMILIES, "toy", "tests.features.toy")
    plain = make(tmp_path / "plain.mp4", CFR_25, picture=lambda i: NOISE[i // 30])
    path = turned(plain, tmp_path / "a.mp4", 90)
    write_availability(LISTED, [replace(present(path), duration_s=3.0, rotation=read_header(path).rotation)])
    media, spec = media_of(STORED, "mine", STAGES), replace(toy.SPEC, orientation="stored")
    features("alone", None, spec)
    features("together", media, spec)
    assert Path("together/000/features/c/0/0").read_bytes() == Path("alone/000/features/c/0/0").read_bytes()
    folder = paths.media("mine")
    made = {file.name: file.read_bytes() for file in (folder / "a").iterdir()}
    (folder / "a").rename("before")
    prepare(LISTED, media, folder / "000.json", limits=LIMITS)
    assert {file.name: file.read_bytes() for file in (folder / "a").iterdir()} == made


def test_spans_other_readers_and_pictures_that_are_not_turned_are_left_to_the_stages(
    tmp_path: Path, passes: list[str]
) -> None:
    record = replace(present(make(tmp_path / "a.mp4", CFR_25)), spans=[[0.5, 1.5]], duration_s=3.0)
    write_availability(LISTED, [record])
    features("together", media_of(CONFIG, "mine", STAGES))
    write_availability(LISTED, [replace(record, spans=[])])
    features("decord", media_of(CONFIG, "mine", STAGES), HistogramSpec(reader="decord"))
    assert passes == ["batches a"] * 2
    assert media_of(STORED, "mine", STAGES).next_of is None
    assert media_of(CONFIG, "mine", ("shots", "speech")).next_of is None


def test_shots_by_the_same_options_are_kept(videos: list[Record]) -> None:
    features("together", media_of(CONFIG, "mine", STAGES))
    shots = paths.shots("mine") / "a.parquet"
    inode = shots.stat().st_ino
    stages()
    assert shots.stat().st_ino == inode
    other = Detection(**CONFIG["shots"] | {"threshold": 200.0})
    folder = paths.media("mine")
    detect(folder / "000.json", folder, paths.shots("mine"), paths.shots("mine") / "000.json", other)
    assert shots.stat().st_ino != inode
    assert read_manifest(paths.shots("mine") / "000.json")["a"]["n_shots"] == 1
    assert read_json(folder / "a/media.json")["audio"]["status"] == "present"
