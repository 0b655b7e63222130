"""Tracks of a benchmark's entries, with the reason where there are no spans."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.benchmark import InTime, Prediction, Timed
from stepline.errors import ConfigError, StoreError
from stepline.needs import Need
from stepline.report.timeline.track import Track
from stepline.runs.in_time import predicted, truth
from stepline.runs.predictions import write_predictions
from tests.benchmark.tiny import Tiny, declared, tiny, write_releases


@dataclass(frozen=True, kw_only=True)
class Spans(Prediction):
    """A segment of a video."""

    end_s: float


def in_time(self: Tiny, inputs: Any, video: str, made: Spans | None) -> InTime | None:
    if video == "h":
        return None
    if inputs.release == "second" and video == "g":
        raise ConfigError("second has no g")
    said = (Timed(0, made.end_s, inputs.job.context, "hit"),) if made else ()
    return InTime(truth=(Timed(0, 5, inputs.release),), predicted=said, rule="r")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    write_releases()
    monkeypatch.setattr(Tiny, "prediction", Spans)
    monkeypatch.setattr(Tiny, "in_time", in_time)
    made = tiny(tmp_path)
    write(made, "first", "all", {7: 7.0, 2: 2.0})
    return made


def write(made: Tiny, release: str, context: str, end_s: dict[int, float], needs: tuple[Need, ...] = ()) -> None:
    """Write predictions of ``three`` for two videos, by seed."""
    said = [Spans(seed=seed, split="test", video=video, end_s=end) for seed, end in end_s.items() for video in "eh"]
    path, spec = paths.predictions("tiny", release, "three", context), made.spec(made.job(release, "three", context))
    write_predictions(path, Spans, said, spec=spec, needs=needs, selection="")


def spans(tracks: list[Track]) -> dict[str, tuple[float, str]]:
    return {track.name: (track.spans[0].end_s, track.spans[0].label) for track in tracks}


def test_of_an_entry_its_lowest_seed_is_shown(made: Tiny) -> None:
    (track,) = predicted(made, made.dataset("first"), "e", "three", "first")
    assert (track.name, track.rule, track.predicted, track.note) == ("three, first, all", "r", True, "")
    assert [(each.end_s, each.verdict) for each in track.spans] == [(2.0, "hit")]


@pytest.mark.parametrize(("video", "note"), [("a", "the predicted splits are test"), ("h", "have no times")])
def test_where_there_are_no_spans_a_note_says_why(made: Tiny, video: str, note: str) -> None:
    (track,) = predicted(made, made.dataset("first"), video, "three", "first")
    assert note in track.note
    assert not track.spans


def test_what_was_not_predicted_is_one_line(made: Tiny) -> None:
    dataset = made.dataset("first")
    with pytest.raises(ConfigError, match="has no predictions for nobody on first"):
        predicted(made, dataset, "e", "nobody", "first")
    with pytest.raises(ConfigError, match="release 'third' of first is not configured; choose from first"):
        predicted(made, dataset, "e", "three", "third")
    with pytest.raises(StoreError, match="run `stepline predict`"):
        predicted(made, made.dataset("second"), "e", "three")


def test_the_truth_needs_no_predictions(made: Tiny) -> None:
    (track,) = truth(made, made.dataset("first"), "e")
    assert (track.name, track.predicted, len(track.spans)) == ("True steps, first", False, 1)
    assert list(truth(made, made.dataset("first"), "h")) == []


class TestSeveral:
    """Two releases of the same videos, and window lengths."""

    @pytest.fixture
    def of(self, made: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
        monkeypatch.setattr(Tiny, "dataset", lambda self, release: "first")
        lines = [{"entry": "three", "method": "Three", "contexts": [60, 180]}]
        content = declared(tables={"table1": {"title": "T", "metrics": ["error"], "lines": lines}})
        of = tiny(tmp_path / "several", content)
        for place, job in enumerate(each for each in of.jobs(entry="three")):
            write(of, job.release, job.context, {0: place + 1.0})
        return of

    def test_all_are_shown_or_those_that_are_named(self, of: Tiny) -> None:
        assert spans(predicted(of, "first", "e", "three")) == {
            "three, first, 60s": (1, "60s"),
            "three, first, 180s": (2, "180s"),
            "three, second, 60s": (3, "60s"),
            "three, second, 180s": (4, "180s"),
            "three, first, all": (5, "all"),
            "three, second, all": (6, "all"),
        }
        assert spans(predicted(of, "first", "e", "three", "second", "180s")) == {"three, second, 180s": (4, "180s")}

    def test_an_entry_without_windows_is_shown_at_any_length_and_another_names_its_own(self, of: Tiny) -> None:
        assert spans(predicted(of, "first", "e", "three", "second", "30s")) == {"three, second, all": (6, "all")}
        small = type(of)(of.config | {"tiny": of.options | {"tables": ["table1"]}}, "tiny")
        with pytest.raises(ConfigError, match="for three on first, second at 30s; choose from 60s, 180s$"):
            predicted(small, "first", "e", "three", context="30s")

    def test_each_release_has_its_truth_or_says_why_not(self, of: Tiny) -> None:
        assert spans([*truth(of, "first", "e")]) == {
            "True steps, first": (5, "first"),
            "True steps, second": (5, "second"),
        }
        assert [track.name for track in truth(of, "first", "e", "second")] == ["True steps, second"]
        assert [track.note for track in truth(of, "first", "g")] == ["", "second has no g"]


def test_the_seed_is_the_lowest_of_what_was_selected(made: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tiny, "select", lambda self, inputs, made: ([each for each in made if each.seed > 2], ""))
    assert spans(predicted(made, "first", "e", "three")) == {"three, first, all": (7, "all")}


def test_of_several_predictions_of_a_video_the_last_is_shown(made: Tiny) -> None:
    said = [Spans(seed=0, split="test", video="e", end_s=end_s) for end_s in (3.0, 4.0)]
    path, spec = paths.predictions("tiny", "first", "three", "all"), made.spec(made.job("first", "three", "all"))
    write_predictions(path, Spans, said, spec=spec, needs=(), selection="")
    assert spans(predicted(made, "first", "e", "three")) == {"three, first, all": (4, "all")}


def test_predictions_that_are_missing_something_say_what(made: Tiny) -> None:
    write(made, "first", "all", {}, needs=(Need("videos", "first"),))
    assert [track.note for track in predicted(made, "first", "e", "three")] == ["no predictions: needs videos:first"]
