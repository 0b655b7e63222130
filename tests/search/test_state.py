"""The state of a search: another one when what it is loaded from changes, and only then."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from stepline import paths
from stepline.availability import write_availability, write_manifest
from stepline.config import validate
from stepline.io import write_text
from stepline.plans import pipeline as pipeline_of
from stepline.search import state as module
from stepline.search.state import state
from tests.search import test_searcher as colours
from tests.search.test_searcher import configured, put, say


@pytest.fixture(autouse=True)
def _files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network with a tower, an encoder of sentences and a joint model, each of one file."""
    colours.registered(monkeypatch)
    monkeypatch.setattr(module, "sentence_encoder", lambda: "minilm")
    monkeypatch.setattr(module, "model_files", lambda name: {"model": Path(name)})
    monkeypatch.setattr(module, "joint_file", lambda name: Path("joint"))


def test_a_change_of_what_is_searched_gives_another_state_and_nothing_else_does() -> None:
    red, blue = colours.COLOURS["red"], colours.COLOURS["blue"]
    seen = [state(configured("colours"), None)]
    for change in (
        lambda: put(configured("colours"), {"a": [red]}),
        lambda: put(configured("colours"), {"a": [blue]}),
        lambda: say(configured("colours"), {"a": [("a red door", 2.0)]}),
        lambda: say(configured("colours"), {"a": [("a new door", 2.0)]}),
        lambda: write_text("minilm", "weights"),
        lambda: write_text("joint", "weights"),
        lambda: write_text("clips/c.mp4", ""),
    ):
        change()
        seen.append(state(configured("colours"), None))
        write_text("mpnet", "of nobody")
        write_availability(paths.availability("mine", "000"), [])
        assert state(configured("colours"), None) == seen[-1]
    assert len({*seen}) == len(seen)
    assert state(configured("colours"), "mpnet") not in seen
    assert state(configured("histogram", "colours"), None) not in seen


def test_of_features_on_object_storage_the_record_counts() -> None:
    pipeline = configured("colours")
    pipeline.config["features"]["store"] = "s3://bucket/prefix"
    before = state(pipeline, None)
    write_manifest(paths.features_manifest("mine", "000", pipeline.features.spec_of("colours")), {})
    assert state(pipeline, None) != before


def test_released_transcripts_and_benchmarks_of_ones_own_count() -> None:
    write_text("toy/tables.yaml", "title: Toy\nreleases: [v1]\nentries: {}\ntables: {}\n")
    config = validate({"spacewalk": {"video_encoders": [], "tables": ["table2b_minilm"]}})
    pipeline = pipeline_of(config, "spacewalk")
    seen = [state(pipeline, None)]
    write_text("datasets/spacewalk/v1/data/transcripts/09122021.csv", "Sentence,Global start,Global end\n")
    seen.append(state(pipeline, None))
    pipeline.config["benchmarks"]["toy"] = "toy"
    seen.append(state(pipeline, None))
    write_text("toy/options.yaml", "properties: {}\n")
    seen.append(state(pipeline, None))
    assert len({*seen}) == 4
