"""Progress: a record of a job of the workflow, at most once a second, and none afterwards."""

import json
from pathlib import Path

import pytest

from stepline import progress as module
from stepline.progress import VIDEO, progress, reached, record_of, recorded

LOG = Path("logs/media/mine.000.log")


class Clock:
    now_s = 0.0

    def monotonic(self) -> float:
        self.now_s += 1
        return self.now_s


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", Clock())


def read() -> dict[str, object]:
    said: dict[str, object] = json.loads(record_of(LOG).read_text())
    return said


def test_a_job_says_how_many_seconds_of_video_are_done_also_within_one() -> None:
    lengths_s = {"a": 60.0, "b": 120.0}
    seen = []
    with recorded(LOG):
        for video in progress(lengths_s, what="media", unit=VIDEO, size=lengths_s.__getitem__):
            seen.append(read()["done"])
            reached(15.5)
            seen.append(read()["done"])
            assert video in lengths_s
        assert read() == {"what": "media", "unit": "s of video", "done": 180.0, "total": 180.0}
    assert seen == [0, 15.5, 60.0, 75.5]
    assert not record_of(LOG).exists()
    assert [*record_of(LOG).parent.iterdir()] == []


def test_a_total_that_is_not_known_is_null_and_videos_within_do_not_disturb_it() -> None:
    with recorded(LOG):
        for _ in progress(iter("ab"), what="texts", unit="texts"):
            reached(3.0)
            assert read()["total"] is None
        assert read()["done"] == 2


def test_it_is_written_at_most_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Clock, "monotonic", lambda _: 5.0)
    with recorded(LOG):
        for _ in progress(range(3), what="texts", unit="texts"):
            assert read()["done"] == 0


@pytest.mark.parametrize("log", [None, Path("other/media.log"), Path("/tmp/logs/media.log")])
def test_what_is_run_by_hand_writes_none(log: Path | None, tmp_path: Path) -> None:
    with recorded(log):
        assert [*progress("ab", what="texts", unit="texts")] == ["a", "b"]
    assert not (tmp_path / ".stepline").exists()


def test_a_record_that_cannot_be_written_stops_no_work(tmp_path: Path) -> None:
    (tmp_path / ".stepline").write_text("a file")
    with recorded(LOG):
        assert [*progress("ab", what="texts", unit="texts")] == ["a", "b"]
