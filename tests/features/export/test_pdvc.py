"""An export is read by the rule of PDVC's loader, restated here: the names of files, and the form of annotations."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.datasets.segments import LabelledSpan
from stepline.errors import ConfigError
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.export import export
from stepline.features.export.job import Annotated
from stepline.io import read_json
from tests.features.export.conftest import SPEC, rows

LONG = "0123456789_-longer"
SPANS = [LabelledSpan(0.5, 1.5, "Stir the soup."), LabelledSpan(1, 2, "Eat")]


@pytest.fixture
def bank() -> Bank:
    store.write(Path("s"), SPEC, {LONG: rows(5, 1), "short": rows(6, 2), "none": rows(4, 3)}, 0.5)
    return Bank.open([Path("s")], SPEC)


def load(captions: str, file: str) -> dict[str, tuple[np.ndarray, dict[str, Any]]]:
    """Return the features and annotations of each video. file: its name for a type of features."""
    found = {}
    for key, about in read_json(captions).items():
        assert len(about["sentences"]) == len(about["timestamps"]) > 0
        found[key] = np.load(f"out/features/{file.format(key[:13], key[2:13])}"), about
    return found


@pytest.mark.parametrize(
    ("naming", "file"),
    [({}, "{0}.npy"), ({"suffix": "_rgb"}, "{0}_rgb.npy"), ({"prefix": "", "suffix": "_bn"}, "{1}_bn.npy")],
)
def test_the_loader_reads_the_rows(bank: Bank, naming: dict[str, str], file: str) -> None:
    annotations = {
        LONG: Annotated(split="train", duration_s=2.4, segments=SPANS),
        "short": Annotated(segments=SPANS[:1]),
        "none": Annotated(split="train", duration_s=2),
    }
    export(bank, Path("out"), "pdvc", annotations=annotations, **naming)
    assert sorted(path.name for path in Path("out").glob("*.json")) == ["all.json", "train.json"]
    ((features, about),) = load("out/train.json", file).values()
    assert (features.dtype, features.tolist()) == (np.float32, rows(5, 1).tolist())
    assert about == {
        "duration": 2.4,
        "timestamps": [[0.5, 1.5], [1, 2]],
        "sentences": ["Stir the soup.", "Eat"],
    }
    ((features, about),) = load("out/all.json", file).values()
    assert (features.tolist(), about["duration"]) == (rows(6, 2).tolist(), 3.0)
    assert np.load(f"out/features/{file.format('v_none', 'none')}").tolist() == rows(4, 3).tolist()


def test_videos_that_pdvc_cannot_tell_apart_are_one_line() -> None:
    store.write(Path("s"), SPEC, {LONG: rows(1), LONG[:11]: rows(1)}, 1)
    with pytest.raises(ConfigError, match=f"the same name 'v_{LONG[:11]}' for {LONG[:11]} and {LONG}: rename one$"):
        export(Bank.open([Path("s")], SPEC), Path("out"), "pdvc")
    assert not Path("out").exists()
