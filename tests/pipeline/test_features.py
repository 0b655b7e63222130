"""Which features a data set has, and what decides them."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepline import needs, paths
from stepline.backbones.histogram import HistogramSpec
from stepline.errors import ConfigError
from stepline.io import read_json, write_json
from stepline.needs import Need
from stepline.pipeline import Features
from tests.pipeline.own import made

LISTED = "internvideo-spacewalk"


def features(*backbones: str, **mine: Any) -> Features:
    return made(datasets={"mine": {"videos": "clips", "backbones": [*backbones], **mine}}).features


def listed(text: str) -> Features:
    """Return the features of a backbone for listed clips, with a list that has these lines."""
    Path("list.csv").write_text(f"video,start_s,end_s\n{text}")
    return features(LISTED, clips="list.csv")


def test_a_backbone_that_is_missing_something_is_not_computed() -> None:
    found = features("histogram", "s3d-pss")
    assert found.configured == ["histogram", "s3d-pss"]
    assert found.computed == ["histogram"]
    assert found.missing("s3d-pss") == (Need("weights", "s3d"),)
    assert (found.networks, found.environment("histogram")) == (False, "media")


def test_another_reader_has_an_environment_of_its_own() -> None:
    found = made(
        datasets={"mine": {"videos": "clips"}},
        media={"reader": "decord"},
        backbones={"mine": {"path": "mine.py", "env": "/mine.yaml"}},
    ).features
    assert (found.environment("histogram"), found.environment("mine")) == ("decord", "/mine.yaml")


def test_where_a_reader_is_missing_no_other_backbone_is_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda _: None)
    found = made(datasets={"mine": {"videos": "clips", "backbones": ["s3d-pss"]}}, media={"reader": "decord"}).features
    assert found.note == "No features: none of the configured backbones can run."


def test_where_no_named_backbone_can_run_a_line_says_what_could() -> None:
    free = "No features: none of the configured backbones can run. Add histogram, which needs no download."
    assert features("s3d-pss").note == free
    assert features("histogram", "s3d-pss").note == features().note == ""
    assert free in made(datasets={"mine": {"videos": "clips", "backbones": ["s3d-pss"]}}).note


def test_a_folder_that_no_backbone_has_is_one_line() -> None:
    assert features("histogram").backbone_of("histogram") == "histogram"
    with pytest.raises(ConfigError, match="^mine has no backbone 's3d': choose from histogram$"):
        features("histogram").backbone_of("s3d")


def test_where_stores_stand_decides_nothing() -> None:
    local, remote = (
        made(datasets={"mine": {"videos": "clips", "backbones": ["histogram"]}}, features={"store": place})
        for place in (None, "s3://bucket/prefix")
    )
    folder = paths.features("mine", "000", local.features.spec_of("histogram"))
    assert local.features.store("histogram", "000") == folder
    url = f"s3://bucket/prefix/{folder.relative_to('features')}"
    assert remote.features.store("histogram", "000") == paths.Remote(url, folder)
    assert remote.features.spec_of("histogram").id == local.features.spec_of("histogram").id
    assert remote.features.params("histogram", "000") == local.features.params("histogram", "000")
    assert remote.features.manifests("histogram") == local.features.manifests("histogram")


def test_the_configured_spec_is_noted_by_data_set() -> None:
    note = paths.current_specs("histogram")
    features("histogram").note_current()
    upright = features("histogram").spec_of("histogram").id
    assert read_json(note) == {"mine": upright}
    written = note.stat()
    features("histogram").note_current()
    assert note.stat() == written
    write_json(note, {"yours": "other", "mine": "other"})
    stored = made(media={"orientation": "stored"}).features
    stored.note_current()
    assert read_json(note) == {"yours": "other", "mine": stored.spec_of("histogram").id}
    assert stored.spec_of("histogram").id != upright
    features("s3d-pss").note_current()
    assert not paths.current_specs("s3d-pss").exists()


def test_damage_that_was_found_has_features_made_again() -> None:
    found = features("histogram")
    before = found.params("histogram", "000")
    write_json(paths.damages("mine", "000", found.spec_of("histogram")), {"found": 1})
    assert json.loads(found.params("histogram", "000")) == json.loads(before) | {"damages": 1}


def test_the_listed_clips_are_those_of_the_file_once_each() -> None:
    found = listed("a,2,3\na,0,1\na,0,1\nb,1,2\n")
    assert found.clips(LISTED) == {"a": [(0.0, 1.0), (2.0, 3.0)], "b": [(1.0, 2.0)]}
    assert found.clips("histogram") == {}


def test_other_clips_are_described_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Features, "backbone_of", lambda _, folder: folder)
    monkeypatch.setattr(Features, "spec_of", lambda *_: HistogramSpec())
    before = listed("a,0,1\n").params(LISTED, "000")
    assert listed("a,0,1\na,0,1\n").params(LISTED, "000") == before
    assert listed("a,0,2\n").params(LISTED, "000") != before


def test_a_backbone_for_listed_clips_wants_a_list() -> None:
    with pytest.raises(ConfigError, match=f"^config: {LISTED} needs listed clips, and mine has none: set"):
        features(LISTED)


def test_what_becomes_of_damaged_videos_is_a_parameter_only_where_it_is_not_the_default() -> None:
    before = json.loads(made().features.params("histogram", "000"))
    assert json.loads(made(media={"damaged": "skip"}).features.params("histogram", "000")) == before | {
        "damaged": "skip"
    }
    assert "damaged" not in before


def test_a_backbone_that_is_not_known_is_named_with_its_key() -> None:
    with pytest.raises(ConfigError, match=r"^config: datasets.mine.backbones: backbone 's3d-ps' is not known; did you"):
        features("s3d-ps")
