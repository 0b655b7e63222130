"""Pictures of real clips: which frames they show, their size, and that each video is decoded once."""

import io
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("av")
image = pytest.importorskip("PIL.Image")
imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")

from stepline.benchmarks.oepp import pictures as module  # noqa: E402
from stepline.benchmarks.oepp.pictures import observed_s, pictures  # noqa: E402
from stepline.benchmarks.oepp.windows import Window  # noqa: E402
from stepline.datasets.oepp import Step  # noqa: E402
from stepline.media.decode import MediaError  # noqa: E402
from stepline.media.frame import Frame  # noqa: E402
from stepline.media.timeline import Timeline  # noqa: E402
from tests.media.clips import make  # noqa: E402


def clip(path: Path, *, width: int = 640, height: int = 360, seconds: int = 8) -> Path:
    """Write a clip of 4 frames a second that is 25 brighter in each second, from 30 on."""

    def picture(index: int) -> Any:
        return np.full((height, width, 3), 30 + 25 * (index // 4), np.uint8)

    return make(path, [Fraction(i, 4) for i in range(4 * seconds)], picture=picture)


def second(jpeg: bytes) -> Any:
    """Return the second that a picture of such a clip is of."""
    shown = image.open(io.BytesIO(jpeg))
    level = shown.convert("L").getpixel((shown.width // 2, shown.height // 2))
    return round((level - 30) / 25)


def window(start: tuple[float, float], end: tuple[float, float]) -> Window:
    first, last = (Step(action="peel", start_s=a, end_s=b) for a, b in (start, end))
    return Window(video="COIN_a", index=0, actions=("peel",) * 3, start=first, end=last, padded=False)


def test_start_and_end_are_observed_as_in_the_curation() -> None:
    some = window((14.5, 16.0), (30.0, 33.9))
    assert observed_s(some, 3) == ((14, 15, 16), (31, 32, 33))
    assert observed_s(some, 1) == ((14,), (33,))
    assert observed_s(window((0.0, 1.0), (0.5, 1.5)), 3) == ((0, 1, 2), (-1, 0, 1))


def test_each_time_has_the_frame_that_is_shown_then(tmp_path: Path) -> None:
    found = pictures(clip(tmp_path / "a.mp4"), [6, 0, 3, 3])[0]
    assert {t_s: second(jpeg) for t_s, jpeg in found.items()} == {0: 0, 3: 3, 6: 6}


def test_outside_the_video_the_nearest_frame_stands(tmp_path: Path) -> None:
    found = pictures(clip(tmp_path / "a.mp4"), [-2, 0, 7, 8, 900])[0]
    assert {t_s: second(jpeg) for t_s, jpeg in found.items()} == {-2: 0, 0: 0, 7: 7, 8: 7, 900: 7}


@pytest.mark.parametrize(
    ("size", "shown"), [((640, 360), (512, 288)), ((360, 640), (288, 512)), ((320, 240), (320, 240))]
)
def test_the_longest_side_is_512_at_most(tmp_path: Path, size: tuple[int, int], shown: tuple[int, int]) -> None:
    path = clip(tmp_path / "a.mp4", width=size[0], height=size[1], seconds=1)
    jpeg = image.open(io.BytesIO(pictures(path, [0])[0][0]))
    assert (jpeg.format, jpeg.mode, jpeg.size) == ("JPEG", "RGB", shown)
    assert jpeg.quantization[0][0] == 3, "of the quality 90"


def test_of_a_damaged_video_the_nearest_frame_that_is_left_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    pts, gaps = np.arange(32), ((2.0, 3.0, "damaged"),)
    timeline = Timeline(pts, Fraction(1, 4), 32, pts, gaps, np.where((pts >= 8) & (pts < 12), -1, pts))
    monkeypatch.setattr(module, "with_timeline", lambda video, made: made(timeline))
    monkeypatch.setattr(module, "pyav", lambda video, timeline, shown: shown.tolist())
    monkeypatch.setattr(module, "_jpeg", lambda frame: frame)
    assert pictures(Path("a.mp4"), [1, 2, 3]) == ({1: 4, 2: 7, 3: 12}, 1.0)


def test_a_video_that_was_taken_upright_is_shown_upright(tmp_path: Path) -> None:
    def picture(_: int) -> Any:
        shown = np.zeros((180, 320, 3), np.uint8)
        shown[:, 160:, 0] = 255
        return shown

    flat, turned = make(tmp_path / "flat.mp4", [Fraction(0), Fraction(1, 4)], picture=picture), tmp_path / "turned.mp4"
    ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
    subprocess.run([ffmpeg, "-v", "error", "-display_rotation", "90", "-i", flat, "-c", "copy", turned], check=True)
    shown = image.open(io.BytesIO(pictures(turned, [0])[0][0]))
    assert shown.size == (180, 320)
    assert shown.getpixel((90, 40))[0] > 200 > 50 > shown.getpixel((90, 280))[0]


def test_pictures_are_the_same_each_time_and_with_whatever_others(tmp_path: Path) -> None:
    path = clip(tmp_path / "a.mp4")
    assert pictures(path, [2])[0][2] == pictures(path, [0, 2, 5])[0][2]


def test_a_video_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    def counted(*arguments: Any) -> Iterator[Frame]:
        reads.append(arguments)
        return real(*arguments)

    real = module.pyav
    monkeypatch.setattr(module, "pyav", counted)
    pictures(clip(tmp_path / "a.mp4"), [5, 1, 2, 3, 1])
    assert len(reads) == 1


def test_a_video_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "COIN_a.mp4"
    path.write_text("no video")
    with pytest.raises(
        MediaError, match="COIN_a.mp4: cannot be decoded: .*; its windows are left out: replace the file"
    ) as raised:
        pictures(path, [0])
    assert "\n" not in str(raised.value)
