from pathlib import Path

import numpy as np
import pytest

from stepline import paths
from stepline.backbones.histogram import HistogramSpec
from stepline.features import store
from stepline.features.store import Part
from stepline.io import write_json

SPEC = HistogramSpec(dtype="float16")
HOP_S = 0.5
LINE = np.arange(100, dtype=np.float32)[:, None].repeat(7, 1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a bank of two shards: whole videos a and c, spans of b. Row i of each is i, seven times."""
    monkeypatch.chdir(tmp_path)
    write_json(paths.spec_record(SPEC), SPEC.record())
    spans = [Part(LINE[4:8], 2.0, 1.9, 4.0), Part(LINE[20:30], 10.0, 10.0, 15.0)]
    store.write(paths.features("mine", "000", SPEC), SPEC, {"a": LINE[:40], "b": spans}, HOP_S)
    store.write(paths.features("mine", "001", SPEC), SPEC, {"c": LINE}, HOP_S)
    return paths.spec_record(SPEC).parent
