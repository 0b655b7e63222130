"""Tracks of a benchmark's entries, with the reason where there are no spans."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.benchmark import InTime, Prediction, Timed
from stepline.errors import ConfigError, StoreError
from stepline.runs.in_time import predicted, truth
from stepline.runs.predictions import write_predictions
from tests.benchmark.tiny import Tiny, tiny, write_releases


@dataclass(frozen=True, kw_only=True)
class Spans(Prediction):
    """A segment of a video."""

    end_s: float


def in_time(self: Tiny, inputs: Any, video: str, made: Spans | None) -> InTime | None:
    if video == "h":
        return None
    return InTime(
        truth=(Timed(0, 5, "cut"),), predicted=(Timed(0, made.end_s, "cut", "hit"),) if made else (), rule="r"
    )


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    write_releases()
    monkeypatch.setattr(Tiny, "prediction", Spans)
    monkeypatch.setattr(Tiny, "in_time", in_time)
    made = tiny(tmp_path)
    said = [Spans(seed=seed, split="test", video=video, end_s=float(seed)) for seed in (7, 2) for video in "eh"]
    spec = made.spec(made.job("first", "three", "all"))
    write_predictions(
        paths.predictions("tiny", "first", "three", "all"), Spans, said, spec=spec, needs=[], selection=""
    )
    return made


def test_of_an_entry_its_lowest_seed_is_shown(made: Tiny) -> None:
    (track,) = predicted(made, made.dataset("first"), "e", "three", "first")
    assert (track.name, track.rule, track.predicted, track.note) == ("three, first, all", "r", True, "")
    assert [(each.end_s, each.verdict) for each in track.spans] == [(2.0, "hit")]


@pytest.mark.parametrize(("video", "note"), [("a", "the predictions are of test"), ("h", "have no times")])
def test_where_there_are_no_spans_a_note_says_why(made: Tiny, video: str, note: str) -> None:
    (track,) = predicted(made, made.dataset("first"), video, "three", "first")
    assert note in track.note
    assert not track.spans


def test_what_was_not_predicted_is_one_line(made: Tiny) -> None:
    dataset = made.dataset("first")
    with pytest.raises(ConfigError, match="has no predictions of nobody on first"):
        predicted(made, dataset, "e", "nobody", "first")
    with pytest.raises(ConfigError, match="release 'third' of first is not configured; choose from first"):
        predicted(made, dataset, "e", "three", "third")
    with pytest.raises(StoreError, match="run `stepline predict`"):
        predicted(made, made.dataset("second"), "e", "three")


def test_the_truth_needs_no_predictions(made: Tiny) -> None:
    (track,) = truth(made, made.dataset("first"), "e")
    assert (track.name, track.predicted, len(track.spans)) == ("True steps, first", False, 1)
    assert list(truth(made, made.dataset("first"), "h")) == []
