"""torchcodec returns the frames of PyAV, or none. It runs in a decoder's process, which finds the FFmpeg of PyAV."""

import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from numpy.typing import NDArray

from stepline.errors import SetupError
from stepline.features.decoding import decoders
from stepline.media.decode import MediaError
from stepline.media.process import Decoder
from stepline.media.read import pyav, timeline_of
from stepline.media.timeline import scan
from stepline.media.torchcodec import torchcodec
from tests.media.clips import CFR_25, CFR_30, KINDS, LIMITS, index_of, kind, make
from tests.media.test_decode import flags, two_streams
from tests.media.test_salvage import TEN_S, noisy, spoil

pytestmark = [
    pytest.mark.slow,  # the process imports torch
    pytest.mark.skipif(not (find_spec("torch") and find_spec("torchcodec")), reason="they are not installed"),
]

WHOLE = 1000.0
"""A rate at which every frame is requested."""
REFUSED = {
    "cut.mp4": r"for 0\.000 s it returns the frame at 0\.100 s",
    "offset.ts": r"for 0\.000 s it returns the frame at 0\.480 s",
}


@pytest.fixture(scope="module")
def decoder() -> Iterator[Decoder]:
    with decoders(LIMITS, 1, "torchcodec") as [process]:
        yield process


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("plain") / "a.mp4", CFR_30[:40], picture=noisy)


def pictures(path: Path, fps: float, turned: bool) -> Iterator[NDArray[np.uint8]]:
    timeline = timeline_of(path)
    indices = np.unique(timeline.select("at_or_before", fps))
    for frame in torchcodec(path, timeline, indices, turned=turned):
        yield frame.rgb()


def read(decoder: Decoder, path: Path, fps: float = WHOLE, *, turned: bool = True) -> list[NDArray[np.uint8]]:
    return list(decoder(pictures, path, fps, turned, duration_s=0))


def differences(decoder: Decoder, path: Path, fps: float = WHOLE, *, turned: bool = True) -> list[float]:
    """Return the mean absolute difference from PyAV's picture, for each frame."""
    timeline = timeline_of(path)
    indices = np.unique(timeline.select("at_or_before", fps))
    both = zip(pyav(path, timeline, indices, turned=turned), read(decoder, path, fps, turned=turned), strict=True)
    return [float(np.abs(ours.rgb().astype(int) - theirs).mean()) for ours, theirs in both]


def ffmpeg(source: Path, target: Path, *options: str, before: tuple[str, ...] = ()) -> Path:
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", *before, "-i", str(source), *options, str(target)]
    subprocess.run(command, check=True)
    return target


@pytest.mark.parametrize("fps", [1, 16, WHOLE])
@pytest.mark.parametrize("name", KINDS)
def test_it_gives_the_right_frames_or_none(name: str, fps: float, decoder: Decoder, tmp_path: Path) -> None:
    path, shows, _ = kind(tmp_path, name)
    indices = np.unique(timeline_of(path).select("at_or_before", fps))
    if name in REFUSED:
        with pytest.raises(MediaError, match=rf"^torchcodec .*{REFUSED[name]}.: set media\.reader to pyav$"):
            read(decoder, path, fps)
    else:
        assert [index_of(image) for image in read(decoder, path, fps)] == [shows[index] for index in indices]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.mkv", "-c copy"),
        ("a.mov", "-c copy"),
        ("open.mp4", "-c:v libx264 -x264-params open-gop=1:bframes=3:keyint=12"),
        ("hevc.mp4", "-c:v libx265 -x265-params open-gop=1:bframes=3:keyint=12:log-level=none"),
        ("a.webm", "-c:v libvpx-vp9 -deadline realtime -auto-alt-ref 1 -lag-in-frames 10"),
        ("odd.mp4", "-vf crop=301:61:0:0 -c:v libx264 -pix_fmt yuv444p"),
        ("a.avi", "-c:v mpeg4"),
    ],
)
@pytest.mark.parametrize("fps", [8, WHOLE])
def test_pictures_are_those_of_pyav(
    name: str, options: str, fps: float, decoder: Decoder, plain: Path, tmp_path: Path
) -> None:
    path = ffmpeg(plain, tmp_path / name, *options.split())
    assert max(differences(decoder, path, fps)) == 0


def test_real_footage_is_that_of_pyav(decoder: Decoder, real_data: Path) -> None:
    assert max(differences(decoder, real_data / "spacewalk/clips/animation3.mp4", 1)) == 0


@pytest.mark.parametrize(
    "options",
    ["-vf interlace -c:v libx264 -flags +ilme+ildct", "-c:v libx264 -pix_fmt yuv420p10le"],
    ids=["interlaced", "10 bit"],
)
def test_other_conversions_to_rgb_differ_a_little(options: str, decoder: Decoder, plain: Path, tmp_path: Path) -> None:
    found = differences(decoder, ffmpeg(plain, tmp_path / "a.mp4", *options.split()))
    assert 0 < max(found) < 1.5


@pytest.mark.parametrize("degrees", [90, 180, 270])
@pytest.mark.parametrize("turned", [True, False])
def test_pictures_stand_as_those_of_pyav(
    degrees: int, turned: bool, decoder: Decoder, plain: Path, tmp_path: Path
) -> None:
    path = ffmpeg(plain, tmp_path / "a.mp4", "-c", "copy", before=("-display_rotation", str(degrees)))
    assert max(differences(decoder, path, 5, turned=turned)) == 0


@pytest.mark.parametrize(
    ("before", "options"),
    [
        ("-display_hflip", ""),
        ("-display_rotation 45", ""),
        ("", "-bsf:v h264_metadata=display_orientation=insert:rotate=90"),
    ],
    ids=["mirrored", "45 degrees", "stated by the pictures only"],
)
@pytest.mark.parametrize("turned", [True, False])
def test_other_rotations_are_refused(
    before: str, options: str, turned: bool, decoder: Decoder, plain: Path, tmp_path: Path
) -> None:
    path = ffmpeg(plain, tmp_path / "a.mp4", "-c", "copy", *options.split(), before=tuple(before.split()))
    with pytest.raises(MediaError, match="its pictures are mirrored, or rotated by another angle than its header"):
        read(decoder, path, turned=turned)


class TestDamage:
    def test_that_only_the_decoder_sees_is_refused(self, decoder: Decoder, tmp_path: Path) -> None:
        path = make(tmp_path / "a.mp4", TEN_S, picture=noisy)
        spoil(path, lambda listed: [n for n, (*_, key, _) in enumerate(listed) if key][10])
        scan(path)
        with pytest.raises(MediaError, match=r"torchcodec cannot read it exactly .damaged at [45]\.\d+ s: .*pyav$"):
            read(decoder, path)

    def test_of_the_container_is_refused(self, decoder: Decoder, tmp_path: Path) -> None:
        path = make(tmp_path / "a.mp4", TEN_S, picture=noisy, options={"movflags": "faststart"})
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 5])
        with pytest.raises(MediaError, match="torchcodec cannot read it exactly .it is damaged, or"):
            read(decoder, path)

    def test_after_the_timeline_was_read_is_one_line(self, decoder: Decoder, tmp_path: Path) -> None:
        path = make(tmp_path / "a.mp4", TEN_S, options={"movflags": "faststart"})
        with pytest.raises(
            MediaError, match=r"^torchcodec cannot read it exactly .*: set media.reader to pyav$"
        ) as error:
            list(decoder(cut_while_it_is_read, path, duration_s=0))
        assert "\n" not in str(error.value)


def cut_while_it_is_read(path: Path) -> Iterator[bool]:
    timeline = scan(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for _ in torchcodec(path, timeline, np.arange(len(timeline.pts)), turned=True):
        yield True


def test_libraries_that_are_absent_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "a.mp4", CFR_25[:5])
    package = tmp_path / "absent/torchcodec"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('\\nVersion 8:\\nOSError: lib.so.60: no file\\nEnd')")
    monkeypatch.syspath_prepend(package.parent)
    with pytest.raises(SetupError, match=r"^media.reader: torchcodec cannot be loaded .OSError: lib.so.60: no file."):
        next(torchcodec(path, scan(path), np.array([0]), turned=True))


def test_it_reads_the_stream_that_is_flagged_as_default(decoder: Decoder, tmp_path: Path) -> None:
    path = two_streams(tmp_path / "a.mp4", *flags(False, True))
    assert {picture.shape for picture in read(decoder, path)} == {(96, 128, 3)}
    assert differences(decoder, path) == [0] * 25
