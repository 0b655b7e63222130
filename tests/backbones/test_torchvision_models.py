"""Video models of torchvision against torchvision, with random weights in a file as it is published."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stepline.backbones import named
from stepline.backbones.picture import picture
from stepline.backbones.registry import missing, tower_of
from stepline.backbones.torchvision import make_importable
from stepline.config import validate
from stepline.errors import ConfigError, StoreError
from stepline.media.frame import ArrayFrame
from stepline.needs import Need

make_importable()
from torchvision.models import get_model, get_model_weights  # noqa: E402

MC3 = "torchvision:mc3_18/kinetics400_v1"


@pytest.fixture(scope="module")
def network() -> Any:
    torch.manual_seed(0)
    return get_model("mc3_18").eval()


def saved(network: Any) -> dict[str, Path]:
    weights = named.weights(MC3)
    path = Path("weights", weights.name, weights.files[0].name)
    path.parent.mkdir(parents=True)
    torch.save(network.state_dict(), path)
    return {path.name: path}


def test_features_are_what_the_classifier_sees(network: Any) -> None:
    config, spec = validate({}), named.spec(MC3)
    assert missing(MC3, config) == (Need("weights", MC3),)
    files = saved(network)
    assert missing(MC3, config) == ()
    clips = torch.randn(2, 3, 4, 32, 32)
    with torch.inference_mode():
        features = named.load(spec, files)(clips)
        torch.testing.assert_close(network.fc(features), network(clips))
    assert (features.shape, tower_of(spec)) == ((2, spec.dimension), None)


def test_a_classifier_of_other_classes_or_none_gives_the_same_features(network: Any) -> None:
    (path,) = saved(network).values()
    spec, clips, held = named.spec(MC3), torch.randn(1, 3, 4, 32, 32), network.state_dict()
    features = named.load(spec, {path.name: path})(clips)
    body = {name: value for name, value in held.items() if not name.startswith("fc.")}
    ten = {"fc.weight": torch.zeros(10, 512), "fc.bias": torch.zeros(10)}
    for other in (body, body | ten, {f"module.{name}": value for name, value in (body | ten).items()}):
        torch.save({"epoch": 3, "model": other}, path)
        assert torch.equal(named.load(spec, {path.name: path})(clips), features)


def test_other_weights_are_one_line(network: Any) -> None:
    (path,) = saved(network).values()
    torch.save({key: value for key, value in network.state_dict().items() if not key.startswith("stem.")}, path)
    with pytest.raises(StoreError, match=r"is not mc3_18/kinetics400_v1: 6 missing \(stem.0.weight"):
        named.load(named.spec(MC3), {path.name: path})


@pytest.mark.parametrize(
    ("name", "label", "fps", "offset", "steps", "dimension"),
    [
        (MC3, "16x15fps", 15, -1, (("exact", 171, 128, "bilinear"), ("centre_crop", 112, "round")), 512),
        (
            "torchvision:swin3d_t/kinetics400_v1",
            *("32x15fps", 15, -9, (("short_side", 256, "bilinear"), ("centre_crop", 224, "round")), 768),
        ),
        (
            "torchvision:mvit_v2_s/kinetics400_v1",
            *("16x7.5fps", 15, -9, (("short_side", 256, "bilinear"), ("centre_crop", 224, "round")), 768),
        ),
    ],
)
def test_frames_and_pictures_are_those_of_torchvision(
    name: str, label: str, fps: int, offset: int, steps: Any, dimension: int
) -> None:
    spec = named.spec(name)
    assert (spec.label, spec.fps, spec.hop, spec.offset, spec.dimension) == (label, fps, fps, offset, dimension)
    assert spec.steps == steps
    frame = np.random.default_rng(0).integers(0, 256, (203, 291, 3), np.uint8)
    (published,) = get_model_weights(name.partition(":")[2].partition("/")[0])
    theirs = published.transforms()(torch.from_numpy(frame).permute(2, 0, 1)[None])[:, 0].permute(1, 2, 0).numpy()
    ours = (picture(ArrayFrame(frame), spec.steps) / 255 - np.array(spec.mean)) / np.array(spec.std)
    assert np.abs(ours - theirs).max() <= 0.501 / 255 / min(spec.std)
    assert named.weights(name).files[0].url == published.url


@pytest.mark.parametrize("name", ["torchvision:mc3_18/kinetics400", "torchvision:resnet50/imagenet1k_v1"])
def test_an_unknown_model_is_one_line(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^backbone '{name}' is not known: [^\n]*$"):
        named.spec(name)
