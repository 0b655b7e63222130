"""An export is read by the rule of ActionFormer's loaders, restated here: what they open, and the time of a feature."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from stepline.datasets.segments import LabelledSpan
from stepline.features.bank import Bank
from stepline.features.clips import rows as clip_rows
from stepline.features.export import export
from stepline.features.export.actionformer import timing
from stepline.features.export.job import Annotated
from stepline.io import read_json
from stepline.media.timeline import Timeline
from stepline.spec import ClipSpec, FrameSpec
from tests.features.export.conftest import SPEC
from tests.features.test_clips import SPEC as CLIP_SPEC

ANNOTATIONS = {
    "a": Annotated(split="train", duration_s=2.6, segments=[LabelledSpan(0.5, 1.25, "stir"), LabelledSpan(2, 2.5, "")]),
    "b.mp4": Annotated(split="val", segments=[LabelledSpan(10, 20, "cut")]),
    "ö": Annotated(split="train"),
}


@dataclass
class Loaded:
    video: str
    features: np.ndarray
    duration_s: float
    segments: np.ndarray
    labels: list[int]
    seconds: np.ndarray


def load(folder: Path, subsets: list[str]) -> Iterator[Loaded]:
    """Yield the videos of the subsets. seconds: of each feature. segments: in features, as the network learns them."""
    config = yaml.safe_load((folder / "config.yaml").read_text())["dataset"]
    database: dict[str, Any] = read_json(folder / config["json_file"])["database"]
    ids = {each["label"]: each["label_id"] for video in database.values() for each in video["annotations"]}
    assert config["num_classes"] == 1 or sorted(ids.values()) == [*range(config["num_classes"])]
    for video, about in database.items():
        if about["subset"].lower() not in subsets:
            continue
        file = folder / config["feat_folder"] / f"{config['file_prefix']}{video}{config['file_ext']}"
        features = np.load(file).astype(np.float32)
        assert features.shape[1] == config["input_dim"]
        fps, half, stride = config["default_fps"], config["num_frames"] / 2, config["feat_stride"]
        segments = np.array([each["segment"] for each in about["annotations"]]).reshape(-1, 2)
        yield Loaded(
            video,
            features,
            about["duration"],
            (segments * fps - half) / stride,
            [ids[each["label"]] for each in about["annotations"]],
            (np.arange(len(features)) * stride + half) / fps,
        )


def test_the_loader_reads_the_rows(whole: Bank) -> None:
    export(whole, Path("out"), "actionformer", prefix="x_", suffix="_y", annotations=ANNOTATIONS)
    config = yaml.safe_load(Path("out/config.yaml").read_text())
    assert (config["train_split"], config["val_split"]) == (["training"], ["validation"])
    (a,), (b,), (unlabelled,) = (load(Path("out"), [subset]) for subset in ("training", "validation", "unlabelled"))
    for each in (a, b, unlabelled):
        assert np.array_equal(each.features, whole[each.video].astype(np.float32))
        assert each.seconds.tolist() == pytest.approx([k * 0.5 + 0.25 for k in range(len(each.features))])
    assert (a.video, a.duration_s, a.labels) == ("a", 2.6, [2, 1])
    assert a.segments.tolist() == [[0.5, 2.0], [3.5, 4.5]]
    assert (b.video, b.duration_s, b.labels, len(unlabelled.segments)) == ("b.mp4", 150.0, [0], 0)


def test_videos_without_annotations_can_be_read(whole: Bank) -> None:
    export(whole, Path("out"), "actionformer")
    assert {each.video for each in load(Path("out"), ["unlabelled"])} == whole.keys()
    unsplit = {"a": replace(ANNOTATIONS["a"], split=None)}
    export(whole, Path("out"), "actionformer", annotations=unsplit)
    config = yaml.safe_load(Path("out/config.yaml").read_text())
    assert config["train_split"] == config["val_split"] == ["all"]
    assert [each.video for each in load(Path("out"), ["all"])] == ["a"]


@pytest.mark.parametrize(
    ("splits", "train", "val"),
    [
        (("train", None), "training", "all"),
        (("test", "val"), "unlabelled", "validation"),
        (("test", None), "all", "test"),
    ],
)
def test_a_video_of_a_split_is_preferred_to_one_of_none(whole: Bank, splits: Any, train: str, val: str) -> None:
    made = {
        video: replace(ANNOTATIONS[video], split=split) for video, split in zip(("a", "b.mp4"), splits, strict=True)
    }
    export(whole, Path("out"), "actionformer", annotations=made)
    config = yaml.safe_load(Path("out/config.yaml").read_text())
    assert (config["train_split"], config["val_split"]) == ([train], [val])


@pytest.mark.parametrize(
    "spec",
    [
        replace(CLIP_SPEC, fps=16, num_frames=16, hop=16),
        replace(CLIP_SPEC, fps=8, num_frames=4, interval=3, hop=2),
        replace(CLIP_SPEC, fps=10, num_frames=5, offset=-2),
        replace(CLIP_SPEC, fps=2.5, num_frames=1, hop=3),
        SPEC,
    ],
)
def test_a_feature_is_in_the_middle_of_its_frames(spec: FrameSpec) -> None:
    rate = Fraction(str(spec.fps))
    timeline = Timeline(np.arange(1000), 1 / rate, 1000, np.array([0]))  # a frame at each time of the grid
    frames = clip_rows(spec, timeline).frames[10:50]
    apart = spec.interval if isinstance(spec, ClipSpec) else 1
    middles_s = [(Fraction(int(row[0] + row[-1] + apart), 2)) / rate for row in frames]
    hop_s = float((spec.hop if isinstance(spec, ClipSpec) else 1) / rate)
    fps, stride, length = timing(spec.record(), hop_s)
    assert [(k * stride + length / 2) / fps for k in range(10, 50)] == pytest.approx([*map(float, middles_s)])


def test_imported_features_are_in_the_middle_of_their_hop() -> None:
    fps, stride, length = timing({"name": "theirs", "hop_s": 3.2}, 3.2)
    assert (2 * stride + length / 2) / fps == pytest.approx(8)
