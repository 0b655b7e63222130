import dataclasses
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.backbones.picture import ROUNDINGS, picture
from stepline.backbones.registry import presets
from stepline.errors import ConfigError
from stepline.media.frame import ArrayFrame
from stepline.spec import METHODS, ClipSpec, Spec, Step, digest, fixed_size
from stepline.spec import ROUNDINGS as NAMES


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlurSpec(Spec):
    sigma: float
    size: tuple[int, int] = (3, 3)


BLUR = BlurSpec(name="blur", label="gauss3", revision=1, sigma=1.5)


def test_the_id_is_readable_and_pinned_and_whatever_decides_the_bytes_changes_it() -> None:
    assert BLUR.id == "gauss3-f8f1ef36"
    changes: list[dict[str, Any]] = [{"sigma": 1.6}, {"size": (3, 5)}, {"revision": 2}, {"name": "box"}]
    assert BLUR.id not in [dataclasses.replace(BLUR, **change).id for change in changes]


def test_the_record_holds_every_field_and_a_spec_cannot_be_changed() -> None:
    assert BLUR.record() == {"name": "blur", "label": "gauss3", "revision": 1, "sigma": 1.5, "size": (3, 3)}
    with pytest.raises(dataclasses.FrozenInstanceError):
        BLUR.sigma = 2.0  # type: ignore[misc]


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none(), min_size=1))
def test_the_digest_does_not_depend_on_order(value: dict[str, object]) -> None:
    assert digest(value) == digest(dict(reversed(value.items())))
    assert len(digest(value)) == 8


CLIP = ClipSpec(
    name="clip", label="4fps", revision=1, architecture="a", weights=(), licence="MIT", fps=4, num_frames=4,
    steps=(("exact", 8, 8, "bilinear"),), mean=(0, 0, 0), std=(1, 1, 1), output="o", dimension=3,
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("s3d-htstep", "16fps16-mixed_5c-7c4eb8e0"),
        ("timesformer-distant", "clip8-0496e08e"),
        ("internvideo-htstep-as-released", "8x8fps-c0f9ed29"),
        ("egovlp-nlq", "7.48fps4-f5287828"),
        ("videoclip-spacewalk", "150-frames-27b0e148"),
    ],
)
def test_the_ids_of_presets_stay(name: str, identity: str) -> None:
    assert presets()[name].id == identity


NAN, INF = float("nan"), float("inf")
NOT_ALLOWED: dict[str, list[Any]] = {
    "name": ["", "a/b", "..", "-a", "a b", "a\n", None],
    "label": ["", "../a", "ä", 4],
    "fps": [0, -1, NAN, INF, "4", None, True],
    "num_frames": [0, -1, 1.0, True, "1"],
    "interval": [0, 1.5],
    "hop": [0, -4, 4.0],
    "dimension": [0, None],
    "offset": [0.5, None, "0"],
    "weights": ["s3d", ["s3d"]],
    "mean": [0.5, (0.5,), (0, 0, NAN), ("0", "0", "0"), [0, 0, 0]],
    "std": [1, (1, 1), (1, 0, 1), (1, 1, INF)],
    "placement": ["middle", None, []],
    "tail": ["wrap"],
    "compute": ["float64"],
    "dtype": ["bfloat16"],
    "frame_rule": ["next"],
    "reader": ["cv2"],
    "steps": [None, "centre_square", [("exact", 8, 8, "bilinear")]],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field in NOT_ALLOWED for value in NOT_ALLOWED[field]])
def test_a_value_that_is_not_allowed_is_one_line(field: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        dataclasses.replace(CLIP, **{field: value})
    line = str(caught.value)
    assert f": {field} is {value!r}, not " in line
    assert line.startswith("spec ")
    assert "\n" not in line


def test_values_that_are_allowed() -> None:
    fields: dict[str, Any] = {"fps": 29.97, "offset": -3, "std": (1, -0.5, 2), "placement": "ends", "dtype": "float32"}
    for field, value in fields.items():
        assert getattr(dataclasses.replace(CLIP, **{field: value}), field) == value
    unnamed = {field.name: getattr(CLIP, field.name) for field in dataclasses.fields(CLIP) if field.name != "fps"}
    assert ClipSpec(**unnamed).id == dataclasses.replace(CLIP, fps=1).id


STEPS: list[Any] = [
    *(("exact", 8, 6, method) for method in (*METHODS, "nearest")),
    *(("short_side", 8, method) for method in (*METHODS, "lanczos")),
    *(("short_side", 8, "pil_bicubic", rounding) for rounding in ("floor", "round", "ceil", "up")),
    ("short_side", 8, "pil_bicubic", "floor", "floor"),
    ("short_side", 8),
    ("short_side", "8", "pil_bicubic"),
    ("short_side", 0, "pil_bicubic"),
    ("exact", 8, "pil_bicubic"),
    ("exact", 0, 8, "pil_bicubic"),
    ("centre_square",),
    ("centre_square", 8),
    *(("centre_crop", 4, rounding) for rounding in ("floor", "round", "ceil", "up")),
    ("centre_crop", 4),
    ("centre_crop", 0, "round"),
    ("jpeg", 95),
    ("jpeg", 0),
    ("jpeg",),
    ("blur", 3),
    (),
]


def test_the_steps_that_are_allowed_are_those_that_pictures_take() -> None:
    frame = ArrayFrame(np.random.default_rng(0).integers(256, size=(20, 30, 3), dtype=np.uint8))
    assert set(NAMES) == set(ROUNDINGS)
    chains = [(step,) for step in STEPS] + [
        (first, second) for first, second in product(STEPS, STEPS) if first and second
    ]
    for steps in chains:
        try:
            picture(frame, steps)
            taken = True
        except ValueError:
            taken = False
        try:
            dataclasses.replace(CLIP, steps=steps)
            allowed = True
        except ConfigError as error:
            assert "which is unknown or not allowed there" in str(error)  # noqa: PT017
            allowed = False
        assert allowed == taken, steps


def test_a_step_that_is_no_tuple_is_one_line() -> None:
    for step in (["exact", 8, 8, "bilinear"], "centre_square", None):
        with pytest.raises(ConfigError, match="^spec 'clip': steps has .* at position 2, which is unknown"):
            dataclasses.replace(CLIP, steps=(*CLIP.steps, step))


@pytest.mark.parametrize(
    ("steps", "fixed"),
    [
        ((), False),
        ((("centre_square",), ("jpeg", 95)), False),
        ((("short_side", 8, "bilinear"),), False),
        ((("centre_square",), ("short_side", 8, "bilinear")), True),
        ((("short_side", 8, "pil_bicubic"), ("centre_crop", 8, "round"), ("jpeg", 95)), True),
        ((("exact", 8, 6, "pil_bicubic"), ("short_side", 4, "bilinear")), True),
    ],
)
def test_a_fixed_size_does_not_depend_on_the_video(steps: tuple[Step, ...], fixed: bool) -> None:
    shapes = {
        picture(ArrayFrame(np.zeros((*size, 3), np.uint8)), steps).shape for size in ((20, 30), (30, 20), (40, 40))
    }
    assert fixed_size(steps) == fixed == (len(shapes) == 1)
    assert all(fixed_size(spec.steps) for spec in presets().values())
