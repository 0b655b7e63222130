"""Recognisers on one thread each: tests share the cores."""

import pytest

from stepline.asr.engines import THREADS


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    for engine in THREADS:
        monkeypatch.setitem(THREADS, engine, 1)
