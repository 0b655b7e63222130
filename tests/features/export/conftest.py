from math import inf
from pathlib import Path

import pytest

from stepline.backbones.histogram import HistogramSpec
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.store import Damaged, Part, Recorded
from tests.features.conftest import rows

SPEC = HistogramSpec(fps=2, dtype="float16")
CLIPS = [(4.0, 6.5), (1.0, 2.0), (3.0, 9.0)]
GAP = (1.0, 2.0, "lost")


@pytest.fixture
def whole() -> Bank:
    """Return a bank of whole videos in two shards; the work folder is empty but for the stores."""
    store.write(Path("s/000"), SPEC, {"b.mp4": rows(300, 1), "ö": rows(2, 2)}, 0.5)
    store.write(Path("s/001"), SPEC, {"a": rows(5, 3)}, 0.5)
    return Bank.open([Path("s/000"), Path("s/001")], SPEC)


@pytest.fixture
def parted() -> Bank:
    """Return a bank with spans of one video, and a damaged one."""
    parts = {
        "damaged": [Part(rows(2), 0.0, 0.0, 1.0), Part(rows(3, 1), 2.0, 2.0, inf)],
        "spans": [Part(rows(1, 2), 7.5, 7.5, 8.0)],
    }
    store.write(Path("s"), SPEC, parts, 0.5, damaged={"damaged": Damaged("key", [], [GAP])})
    return Bank.open([Path("s")], SPEC)


@pytest.fixture
def clipped() -> Bank:
    """Return a bank of listed clips."""
    spec = Recorded(name="c", label="c", revision=1, values=SPEC.record() | {"placement": "ends"}, dimension=7)
    store.write(Path("s"), spec, {"a": rows(3)}, 1, clips={"a": CLIPS})
    return Bank.open([Path("s")], spec)
