from stepline.benchmarks.pss.plan import Plan
from stepline.config import validate
from stepline.footage import Footage, is_backbone
from tests.benchmarks.pss.conftest import releases
from tests.benchmarks.pss.synthetic import CONFIG

__all__ = ["releases"]


def footage(**features: list[str]) -> Footage:
    config = validate({"pss": {**CONFIG, "features": features}})
    return Plan.configured(config).footage["tasty"]


def test_it_has_the_backbones_of_what_is_shown(releases: None) -> None:
    made = footage(s3d=["histogram"], r3d=["histogram", "r3d"])
    assert made.configured_backbones == ["histogram"]
    assert made.wants_videos
    assert made.lacks == ()
    assert sorted(made.shards) == sorted(video.id for video in made.dataset.videos())
    assert not footage(s3d=["s3d"]).wants_videos


def test_a_name_is_a_backbone_or_an_imported_bank() -> None:
    config = validate({"pss": {}})
    assert is_backbone("s3d-pss", config)
    assert is_backbone("histogram", config)
    assert not is_backbone("tsn-resnet", config)
