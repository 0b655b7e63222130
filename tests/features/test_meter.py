"""Progress: nothing where nobody looks, one line at the end, shares that are all of it."""

import io
import logging
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("av")
pytest.importorskip("cv2")

from stepline import rates
from stepline.availability import write_availability
from stepline.backbones.histogram import HistogramSpec
from stepline.features import meter
from stepline.features.extract import Work
from stepline.features.meter import Meter
from tests.features.test_extract import present, store
from tests.media.clips import CFR_25, VFR, make

LINE = re.compile(
    r"features: (\d+/\d+) videos, ([\d.]+) h, ([\d.]+) x real time: "
    r"decode (\d+) %, pictures (\d+) %, model (\d+) %, write (\d+) %"
)


class Clock:
    """A clock that stands still until it is moved."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(meter, "time", SimpleNamespace(monotonic=clock, perf_counter=clock))
    return clock


def read(caplog: pytest.LogCaptureFixture) -> tuple[str, ...]:
    """Return the numbers of the one line in the log."""
    [line] = [record.getMessage() for record in caplog.records if record.name == meter.log.name]
    found = LINE.fullmatch(line)
    assert found, line
    return found.groups()


def test_without_a_terminal_it_is_one_line_at_the_end(
    clock: Clock, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    with Meter([]):
        pass
    assert caplog.records == [], "where there is nothing to do it says nothing"
    assert str(Meter([10])).endswith("decode 0 %, pictures 0 %, model 0 %, write 0 %")
    with Meter([3600, 1800]) as counted:
        for seconds_s in (3600, 1800):
            clock.now_s += 10
            with counted.timed("model"):
                clock.now_s += 60
            with counted.timed("write"):
                clock.now_s += 5
            counted.add(seconds_s, decode_s=20, picture_s=15)
            counted.ended()
    assert read(caplog) == ("2/2", "1.50", "36.0", "20", "15", "60", "5")
    assert capfd.readouterr() == ("", "")


def test_on_a_terminal_it_shows_minutes_and_the_time_left(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    shown.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "__stderr__", shown)
    with Meter([3600, 3600]) as counted:
        clock.now_s += 10
        counted.add(3600, decode_s=1, picture_s=0)
        counted._progress._bar.refresh()
    assert re.search(r"features +50%\|.*\| 60\.0/120\.0 min of video \[\d+:\d+<\d+:\d+", shown.getvalue())
    assert "360.0 x real time: decode 100 %" in shown.getvalue()


@pytest.mark.parametrize("spent_s", [(1, 1, 1, 0), (1, 1, 1, 1), (5, 5, 5, 0.07), (2, 2, 2, 1), (0.001, 0, 0, 0)])
def test_shares_are_all_of_it(spent_s: tuple[float, ...], clock: Clock) -> None:
    counted = Meter([10])
    for what, each_s in zip(("model", "write"), spent_s[2:], strict=True):
        with counted.timed(what):
            clock.now_s += each_s
    counted.add(10, decode_s=spent_s[0], picture_s=spent_s[1])
    shares = [int(each) for each in re.findall(r"(\d+) %", str(counted))]
    assert sum(shares) == 100
    for share, each_s in zip(shares, spent_s, strict=True):
        assert share == pytest.approx(100 * each_s / sum(spent_s), abs=1)


def test_an_extraction_counts_each_video_once_whatever_is_made_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    videos = {"a": (CFR_25, 3600.0), "b": (VFR, 5400.0)}
    records = [
        replace(present(make(tmp_path / f"{name}.mp4", times)), duration_s=duration_s)
        for name, (times, duration_s) in videos.items()
    ]
    write_availability(tmp_path / "availability.json", records)
    specs = [HistogramSpec(), HistogramSpec(fps=2), HistogramSpec(hues=4)]
    works = [Work(spec=spec, store=tmp_path / "features" / spec.id / "000") for spec in specs]
    capfd.readouterr()  # what the encoder wrote where another test has turned its log on
    store(tmp_path, *works, decoders=2)
    ended, hours, rate, *shares = read(caplog)
    assert (ended, hours) == ("2/2", "2.50")
    assert float(rate) > 0
    assert sum(map(int, shares)) == 100
    assert capfd.readouterr() == ("", "")
    caplog.clear()
    store(tmp_path, *works)
    assert caplog.records == []


def test_rates_are_kept_of_reading_and_of_each_network(clock: Clock) -> None:
    with Meter([200], reading="media") as counted:
        for video_s in (60, 40):
            with counted.timed("model"):
                clock.now_s += 30
            counted.add(video_s / 2, decode_s=1, picture_s=2, network="s3d.cpu", video_s=video_s)
        counted.add(150, decode_s=1, picture_s=2)
    assert rates.measured("media") == pytest.approx(9 / 200)
    assert rates.measured("network.s3d.cpu") == pytest.approx(60 / 100)
    assert rates.measured("decode") is None
