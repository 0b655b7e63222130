from pathlib import Path

import pytest

from stepline import paths
from stepline.config import validate
from stepline.datasets import pss
from stepline.errors import ConfigError
from stepline.footage import Footage, is_backbone
from stepline.io import write_json
from stepline.needs import Need
from tests.benchmarks.pss.conftest import releases

__all__ = ["releases"]


def footage(*names: str, predictions: tuple[Path, ...] = (), **config: object) -> Footage:
    made = validate({"pss": {}} | config)
    return Footage.of(made, pss.DATASETS["tasty"], "pss.features", names, lambda: [*predictions])


def imported(name: str, label: str = "1fps-00000000") -> Path:
    """Write what an imported bank leaves of a shard, and return its folder."""
    folder = Path("features", name, label)
    write_json(folder / "spec.json", {"name": name})
    write_json(folder / "tasty/000/features/zarr.json", {})
    return folder


def test_its_pipeline_has_the_backbones_and_no_sound(releases: None) -> None:
    made = footage("histogram", "r3d").pipeline
    assert [*made.features.configured] == made.features.computed == ["histogram"]
    assert made.demand.wants_videos
    assert made.missing == ()
    assert sorted(made.videos.shards) == sorted(video.id for video in made.dataset.videos())
    assert made.drop_inputs("000") == made.made_from_videos("000")
    assert made.made_from_videos("000") == [paths.features_manifest("tasty", "000", made.features.spec_of("histogram"))]


def test_with_sound_it_has_transcripts_and_neither_shots_nor_pictures(releases: None) -> None:
    config = validate({"pss": {}, "media": {"keep": "none"}})
    made = Footage.of(config, pss.DATASETS["tasty"], "pss.features", (), list, sound=True).pipeline
    sound = paths.manifest(paths.media("tasty"), "000")
    assert {*made.demand.stages} == {"speech", "features"}
    assert made.demand.media
    assert made.drop_inputs("000") == made.made_from_videos("000") == [sound]
    assert not [path for path in made.summary_inputs() if "shots" in path.parts]


def test_predictions_that_read_videos_want_them(releases: None) -> None:
    reading = Path("results/pss/predictions/tasty/vlm/all.parquet")
    assert not footage("r3d").pipeline.demand.wants_videos
    made = footage("r3d", predictions=(reading,)).pipeline
    assert made.demand.wants_videos
    assert made.made_from_videos("000") == [reading]


def test_a_name_is_a_backbone_or_an_imported_bank() -> None:
    config = validate({"pss": {}})
    assert is_backbone("s3d-pss", config)
    assert is_backbone("histogram", config)
    assert not is_backbone("tsn-resnet", config)


def test_a_backbone_is_missing_what_it_needs_to_run(releases: None) -> None:
    made = footage("s3d-pss", "histogram")
    assert made.missing("s3d-pss") == made.pipeline.missing == (Need("weights", "s3d"),)
    assert made.missing("histogram") == ()
    assert made.record("histogram") == made.pipeline.features.spec_of("histogram").record()
    assert made.inputs("histogram") == made.pipeline.features.manifests("histogram")
    assert made.stores("histogram") == made.pipeline.features.stores("histogram")


def test_an_imported_bank_is_found_by_its_name() -> None:
    made = footage("r3d")
    assert made.missing("r3d") == (Need("features", "r3d/tasty"),)
    assert made.inputs("r3d") == []
    folder = imported("r3d")
    assert made.missing("r3d") == ()
    assert made.record("r3d") == {"name": "r3d"}
    assert made.inputs("r3d") == [folder / "spec.json"]
    assert made.stores("r3d") == [folder / "tasty/000"]
    imported("r3d", "1fps-11111111")
    with pytest.raises(ConfigError, match=r"^config: pss.features: 'r3d' matches .* remove all but one$"):
        made.inputs("r3d")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("minilm", "'minilm' is not allowed; name a backbone or an imported bank"),
        ("No Name", "'No Name' is not allowed; name a backbone or an imported bank"),
        ("internvideo-spacewalk", "describes listed clips; name a backbone that describes each second in"),
        ("timm:", "timm"),
    ],
)
def test_a_name_that_can_be_neither_is_one_line_with_its_key(name: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"^config: pss.features.s3d: .*{problem}"):
        footage().check(name, "config: pss.features.s3d")
    footage().check("histogram", "")
    footage().check("r3d", "")
