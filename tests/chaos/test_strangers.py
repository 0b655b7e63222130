"""A slice of the campaign of files from strangers, with all that are hostile by design."""

import os
import signal

import pytest

pytest.importorskip("torch")
pytest.importorskip("h5py")

from tests.chaos import strangers


def test_files_give_rows_or_one_line_and_take_no_more_memory() -> None:
    assert sum(strangers.campaign(0, 200).values()) > 300


def test_what_breaks_a_promise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "MOST_S", 0)
    with pytest.raises(AssertionError, match="seed 5: broken: it takes [0-9]+ MB and 0 s"):
        strangers.campaign(5, 1)
    monkeypatch.setattr(strangers, "read", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(AssertionError, match="seed 5: broken: signal 9\nseed 6: broken: signal 9"):
        strangers.campaign(5, 2)
