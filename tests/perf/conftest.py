"""The measurements are scripts next to each other, which import each other by name."""

import sys
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

PERF = ROOT / "perf"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(PERF)
    before = {*sys.modules}
    yield
    for name in {*sys.modules} - before:
        if (PERF / f"{name}.py").is_file():
            del sys.modules[name]
