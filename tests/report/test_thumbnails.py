import io
import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("av")
image = pytest.importorskip("PIL.Image")
imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")

from stepline.availability import Record, write_availability  # noqa: E402
from stepline.io import sha256_file, write_table  # noqa: E402
from stepline.media.decode import frames  # noqa: E402
from stepline.report.shots import read_shots, spread  # noqa: E402
from stepline.report.thumbnails import Samples, files_of, read_thumbnails, thumbnails, write_thumbnails  # noqa: E402
from tests.media.clips import make  # noqa: E402

AVAILABILITY, SHOTS = Path("availability.json"), Path("shots")
FOLDER = Path("datasets/mine/thumbnails")
MANIFEST = FOLDER / "manifests/000.json"


@pytest.fixture
def clip(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """One second that is red up to 0.5 s and blue from then on; it starts at 0 or at 5 s on the container's clock."""

    def picture(index: int) -> Any:
        shown = np.zeros((180, 320, 3), np.uint8)
        shown[..., 0 if index < 5 else 2] = 255
        return shown

    times = [Fraction(i, 10) for i in range(10)]
    offset = getattr(request, "param", "0")
    return make(tmp_path / "a.ts", times, picture=picture, options={"output_ts_offset": offset})


def colours(found: list[bytes]) -> list[str]:
    """Return the colour in the middle of each JPEG, which is 160 x 90."""
    pictures = [image.open(io.BytesIO(jpeg)) for jpeg in found]
    assert all(each.size == (160, 90) for each in pictures)
    return ["red" if each.getpixel((80, 45))[0] > 200 else "blue" for each in pictures]


def cut(*times: float) -> None:
    """Write shots between these times."""
    write_table(SHOTS / "a.parquet", pa.table({"start_s": times[:-1], "end_s": times[1:]}))


def present(clip: Path) -> Record:
    record = Record(video="a", status="present", path=str(clip), sha256=sha256_file(clip))
    write_availability(AVAILABILITY, [record, Record(video="b", status="gone", reason="private")])
    return record


def write() -> dict[int, Path]:
    write_thumbnails(AVAILABILITY, SHOTS, FOLDER, MANIFEST)
    return read_thumbnails("mine", ["000", "001"]).pictures["a"]


@pytest.mark.parametrize("clip", ["0", "5"], indirect=True)
def test_a_thumbnail_shows_the_frame_that_starts_at_its_time(clip: Path) -> None:
    *found, after = thumbnails(clip, [0.0, 0.49, 0.5, 0.95, 7.0])
    assert colours([jpeg for jpeg in found if jpeg]) == ["red", "red", "blue", "blue"]
    assert after is None


def test_a_video_that_was_taken_upright_is_shown_upright(tmp_path: Path) -> None:
    def picture(_: int) -> Any:
        shown = np.zeros((180, 320, 3), np.uint8)
        shown[:, 160:, 0] = 255
        return shown

    flat = make(tmp_path / "flat.mp4", [Fraction(i, 10) for i in range(5)], picture=picture)
    turned = tmp_path / "turned.mp4"
    ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
    subprocess.run([ffmpeg, "-v", "error", "-display_rotation", "90", "-i", flat, "-c", "copy", turned], check=True)
    (jpeg,) = thumbnails(turned, [0.2])
    assert jpeg is not None
    shown = image.open(io.BytesIO(jpeg))
    assert shown.size == (160, 284)
    assert shown.getpixel((80, 40))[0] > 200 > 50 > shown.getpixel((80, 240))[0]


def test_a_video_that_cannot_be_read_has_none(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_text("no video")
    assert thumbnails(tmp_path / "a.mp4", [0.0, 1.0]) == [None, None]
    assert thumbnails(tmp_path / "a.mp4", []) == []


def test_a_picture_is_of_the_quarter_of_a_second_nearest_to_the_middle_of_its_shot(clip: Path) -> None:
    record = Record(video="a", status="present", sha256="0" * 64)
    shots = [(0.0, 0.75), (0.75, 0.9), (0.9, 2.3), (2.3, 2.45), (2.45, 3.45)]
    files = files_of(record, shots, FOLDER)
    assert {shot: time_s for shot, (time_s, _) in files.items()} == pytest.approx(
        {0: 0.25, 1: 0.75, 2: 1.5, 3: 2.375, 4: 3.0}
    )
    assert files[3][1] == FOLDER / "00000000-00002375.jpg"


def test_samples_are_the_pictures_of_their_times(clip: Path) -> None:
    samples = Samples()
    assert list(samples.begin(clip)) == []
    found = [item for frame in frames(clip) for item in samples.take(frame)] + list(samples.end())
    assert [number for number, _ in found] == [0, 1, 2, 3]
    assert [jpeg for _, jpeg in found] == thumbnails(clip, [0.0, 0.25, 0.5, 0.75])


def test_pictures_outlive_their_video_and_others_say_why_they_are_not_there(clip: Path) -> None:
    record = present(clip)
    cut(0, 0.5, 1.0)
    assert colours([path.read_bytes() for path in write().values()]) == ["red", "blue"]
    before = {path: path.stat().st_mtime_ns for path in write().values()}
    clip.unlink()
    assert {path: path.stat().st_mtime_ns for path in write().values()} == before
    assert read_thumbnails("mine", ["000"]).reasons == {}
    cut(0, 0.5, 0.7, 1.0)
    assert list(write()) == [0, 2]
    reasons = read_thumbnails("mine", ["000"]).reasons
    assert reasons == {
        "a": f"no pictures for 1 shots: {clip} no longer exists: run `snakemake`, which fetches it again"
    }
    write_availability(clip.with_suffix(".json"), [replace(record, kept=False)])
    write()
    reasons = read_thumbnails("mine", ["000"]).reasons
    assert reasons == {"a": "no pictures for 1 shots: the video was deleted after use"}
    assert len(list((FOLDER / "a").iterdir())) == 2


def test_another_file_has_other_pictures(clip: Path) -> None:
    record = present(clip)
    cut(0, 0.5, 1.0)
    before = set(write().values())
    write_availability(AVAILABILITY, [replace(record, sha256="f" * 64)])
    assert not before & set(write().values())
    assert not any(path.exists() for path in before)
    write_availability(AVAILABILITY, [replace(record, status="failed", reason="damaged")])
    write_thumbnails(AVAILABILITY, SHOTS, FOLDER, MANIFEST)
    assert not any((FOLDER / "a").iterdir())


def test_shots_are_read_and_spread() -> None:
    assert read_shots(SHOTS / "a.parquet") == []
    cut(0, 0.5, 1.0)
    assert read_shots(SHOTS / "a.parquet") == [(0.0, 0.5), (0.5, 1.0)]
    assert spread(3, 24) == [0, 1, 2]
    assert spread(101, 5) == [0, 25, 50, 75, 100]


@pytest.mark.parametrize(
    ("pixels", "turn", "size"), [("2/1", 0, (160, 30)), ("1/2", 0, (160, 120)), ("1/2", 90, (160, 213))]
)
def test_a_picture_has_the_shape_that_players_show(
    pixels: str, turn: int, size: tuple[int, int], tmp_path: Path
) -> None:
    path, source = tmp_path / "a.mp4", f"color=red:s=160x60:r=5:d=1,setsar={pixels}"
    turned = ["-noautorotate", "-display_rotation", str(turn)] if turn else []
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", *turned, "-f", "lavfi", "-i", source]
    subprocess.run([*command, "-c:v", "libx264", str(path)], check=True)
    [picture] = thumbnails(path, [0])
    assert image.open(io.BytesIO(picture)).size == size
