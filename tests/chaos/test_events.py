"""The slice of the events that every test run plays, and that what is wrong is found."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("av")
pytest.importorskip("deepgram")
pytest.importorskip("torch")

from tests.chaos.events import Events
from tests.chaos.sequence import play
from tests.chaos.study import clip, recogniser

pytestmark = pytest.mark.slow
SEEDS = (3, 7)
"""They draw what kills runs and starts two at once; `make chaos` plays many more."""


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with recogniser() as server:
        yield server.url


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sequence_of_events_ends_as_a_run_from_scratch(seed: int, service: str) -> None:
    counts = play(lambda folder: Events(folder, service), seed)
    assert counts["comparisons with a run from scratch"] == 2


def test_what_is_wrong_is_found(tmp_path: Path, service: str) -> None:
    events = Events(tmp_path, service)
    events.study.put("a.mp4", clip(1))
    events.study.backbones = ["histogram"]
    events.check()
    events.compare()
    table = tmp_path / "results/mine/videos.csv"
    right = table.read_text()
    table.write_text(right.replace("1.933333", "1.9"))
    with pytest.raises(AssertionError, match="videos.csv of a"):
        events.compare()
    table.write_text(right)
    (tmp_path / "datasets/mine/shots/a.csv").write_text("start_s,end_s\n")
    with pytest.raises(AssertionError, match=r"shots/a\.csv is"):
        events.compare()
    table.unlink()
    with pytest.raises(AssertionError, match="a run more has jobs: .*videos.csv"):
        events.settle()
    events.study.options["shots"] = {"threshold": -1}
    with pytest.raises(AssertionError, match="exit code"):
        events.check()


def test_all_kinds_of_events_are_drawn() -> None:
    drawn = {name for seed in range(50) for name, _ in Events.drawn(seed)}
    assert drawn == {name for names in Events.EVENTS.values() for name in names}
    assert drawn <= set(dir(Events))
    assert Events.drawn(1) == Events.drawn(1) != Events.drawn(2)
