"""TIFF files are the pictures that Pillow reads, or are refused with what to do."""

import re
import struct
from pathlib import Path

import numpy as np
import pytest

from stepline.media.decode import MediaError, frames

PIL = pytest.importorskip("PIL.Image")
pytest.importorskip("av")
COLOURS = np.stack([200 - np.mgrid[:48, :64][0] * 2, np.mgrid[:48, :64][1] * 3, np.full((48, 64), 90)], -1)
RGB = PIL.fromarray(COLOURS.astype(np.uint8))


def written(path: Path, mode: str = "RGB", **options: object) -> Path:
    RGB.convert(mode).save(path, **options)
    return path


def by_hand(path: Path, values: np.ndarray, **tags: int) -> Path:
    """Write an uncompressed big-endian TIFF of one strip, or one tile, with more tags, named ``t<number>``."""
    height, width, samples = values.shape
    listed = {256: width, 257: height, 258: values.itemsize * 8, 259: 1, 262: 2, 273: 200, 277: samples, 278: height}
    listed |= {279: values.nbytes} | {int(name[1:]): value for name, value in tags.items()}
    entries = [struct.pack(">HHII", tag, 4, 1, value) for tag, value in sorted(listed.items())]
    head = b"MM\0*" + struct.pack(">IH", 8, len(entries)) + b"".join(entries) + bytes(4)
    path.write_bytes(head.ljust(200, b"\0") + values.tobytes())
    return path


@pytest.mark.parametrize("mode", ["RGB", "L", "1", "P", "RGBA", "CMYK"])
@pytest.mark.parametrize("compression", ["raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_it_is_the_picture_that_pillow_reads(mode: str, compression: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.tif", mode, compression=compression)
    [frame] = frames(path)
    assert np.abs(frame.rgb().astype(int) - np.asarray(PIL.open(path).convert("RGB"))).max() <= 1


def test_a_fax_is_read(tmp_path: Path) -> None:
    for compression in ("group3", "group4"):
        path = written(tmp_path / "a.tif", "1", compression=compression)
        [frame] = frames(path)
        assert (frame.rgb()[..., 0] == np.asarray(PIL.open(path).convert("L"))).all()


def test_what_would_be_another_picture_is_refused(tmp_path: Path) -> None:
    path, values = tmp_path / "a.tif", COLOURS.astype(np.uint8)
    others = "numbers other than unsigned integers of up to 16 bits"
    for write, reason in {
        lambda: written(path, compression="jpeg"): "JPEG compression",
        lambda: written(path, "L", compression="jpeg"): "JPEG compression",
        lambda: by_hand(path, values, t259=6): "JPEG compression",
        lambda: by_hand(path, values, t322=64, t323=48, t324=200, t325=values.nbytes): "tiles",
        lambda: written(path, "YCbCr"): "YCbCr",
        lambda: by_hand(path, np.zeros((48, 64, 4), ">u2"), t262=5): "CMYK",
        lambda: by_hand(path, values.astype(">u4")): others,
        lambda: by_hand(path, (values / 255).astype(">f2"), t339=3): others,
    }.items():
        write()
        with pytest.raises(MediaError, match=re.escape(f"TIFF with {reason} cannot be decoded: convert it")):
            list(frames(path))


def test_a_file_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tif")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(MediaError):
        list(frames(path))
