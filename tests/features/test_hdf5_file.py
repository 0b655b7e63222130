"""Datasets of strangers' HDF5 files: their own bytes, or one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("h5py")
pytest.importorskip("torch")

import h5py

from stepline.features import hdf5_file
from stepline.media.decode import MediaError
from tests.chaos.strangers import HDF5

ROWS = np.random.default_rng(0).normal(size=(300, 40)).astype(np.float32)
SPARSE = np.where(ROWS > 1, ROWS, 0)
OPTIONS: list[dict[str, Any]] = [{}, {"chunks": (64, 40)}, {"chunks": (1000, 7), "maxshape": (None, 40)}]
OPTIONS += [{"shuffle": True}, {"fletcher32": True}, {"shuffle": True, "fletcher32": True}]
OPTIONS += [{**each, "compression": how} for each in OPTIONS for how in ("gzip", "lzf")]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("rows", [ROWS, SPARSE, SPARSE.astype(">f8"), ROWS[:0]], ids=["dense", "sparse", "big", "none"])
def test_values_are_read_as_they_are(
    rows: np.ndarray, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hdf5_file, "BLOCK", 30_000)
    if not rows.size and not options.get("maxshape"):
        options = {}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=rows, **options)
    assert [*hdf5_file.names(tmp_path / "a.h5")] == ["a"]
    assert np.array_equal(np.concatenate([*hdf5_file.read(tmp_path / "a.h5", "a")]), rows)


LINES = {
    "external": "the values of a are in other files",
    "virtual": "the values of a are in other files",
    "a link to another file": "a is a link",
    "a link to itself": "a is a link",
    "a short chunk": "a chunk has 4 of 128 bytes",
    "a short plain chunk": "a chunk has 4 of 128 bytes",
    "a short chunk of LZF": "a chunk has 4 of 128 bytes",
    "a long chunk": "a chunk is absent, or too large",
    "a chunk of scale and offset": "other filters than gzip",
    "a chunk of szip": "other filters than gzip",
    "a huge chunk": "values are absent, or have more than [0-9]{4} bytes",
    "no chunk": "values are absent, or have more than",
    "huge": "values are absent, or have more than [0-9]{8} bytes",
    "huge and contiguous": "the values of a are not in the file",
    **dict.fromkeys(("texts", "references", "fields", "sub-arrays", "nothing"), "a is no array of numbers"),
}


@pytest.mark.parametrize("what", HDF5)
def test_what_is_not_in_the_file_is_refused(what: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        HDF5[what](file)
    if what == "a type":
        assert not [*hdf5_file.read(tmp_path / "a.h5", "a")]
    else:
        with pytest.raises(MediaError, match=LINES[what]):
            [*hdf5_file.read(tmp_path / "a.h5", "a")]
