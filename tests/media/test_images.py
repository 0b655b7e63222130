"""Image files, which are read as videos of one frame."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from stepline.availability import read_manifest
from stepline.backbones.histogram import HistogramSpec, describe
from stepline.features.bank import Bank
from stepline.features.extract import Work
from stepline.media.decode import frames
from stepline.media.timeline import scan
from tests.features.test_extract import present, store
from tests.features.test_networks import shard

PIL = pytest.importorskip("PIL.Image")
ops = pytest.importorskip("PIL.ImageOps")
ORIENTATION = 274
SLOPE = np.add.outer(np.arange(60) * 2, np.arange(90)).astype(np.uint8)


def image(path: Path, orientation: int = 1) -> Path:
    exif = PIL.Exif()
    exif[ORIENTATION] = orientation
    PIL.fromarray(SLOPE).convert("RGB").save(path, exif=exif, quality=98)
    return path


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_a_photo_is_upright_as_its_exif_says(tmp_path: Path, suffix: str, orientation: int) -> None:
    path = image(tmp_path / f"a{suffix}", orientation)
    [upright], [stored] = frames(path), frames(path, turned=False)
    theirs = np.asarray(ops.exif_transpose(PIL.open(path)))
    assert upright.size == theirs.shape[1::-1]
    assert np.abs(upright.rgb().astype(int) - theirs).max() <= 1
    assert stored.size == (90, 60)


@pytest.mark.parametrize("suffix", [".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"])
def test_an_image_is_one_frame(tmp_path: Path, suffix: str) -> None:
    timeline = scan(image(tmp_path / f"a{suffix}"))
    assert (timeline.pts.tolist(), timeline.end * timeline.time_base) == ([0], Fraction(1, 25))


def test_an_image_has_one_row(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    path = image(tmp_path / "a.png")
    shard(tmp_path, present(path))
    spec = HistogramSpec()
    store(tmp_path, Work(spec=spec, store=tmp_path / "features/histogram/000"))
    assert read_manifest(tmp_path / "manifest.json")["a"]["n_rows"] == 1
    (row,) = Bank.open([tmp_path / "features/histogram/000"], spec)["a"]
    np.testing.assert_allclose(row, describe(np.asarray(PIL.open(path)), spec), rtol=1e-6)
