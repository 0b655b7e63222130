"""SIGTERM ends a process at a point where what it has is whole."""

import os
import signal
from collections.abc import Iterator

import pytest

from stepline.stopping import Stopped, raise_on_sigterm, whole_step


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    raise_on_sigterm()
    yield
    signal.signal(signal.SIGTERM, before)


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_the_first_one_raises_and_later_ones_do_nothing() -> None:
    with pytest.raises(Stopped):
        terminate()
    terminate()
    assert Stopped.code == 143


def test_no_handler_of_errors_catches_it() -> None:
    assert not issubclass(Stopped, Exception)


def test_a_step_is_finished_first() -> None:
    done = []

    def step() -> None:
        with whole_step():
            terminate()
            done.append("the rest of the step")

    with pytest.raises(Stopped):
        step()
    assert done == ["the rest of the step"]
    with whole_step():
        done.append("and no second time")
    assert len(done) == 2
