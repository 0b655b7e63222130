"""Pictures against reference outputs, and against the programs whose pictures they are."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stepline.backbones.picture import Pictures, picture
from stepline.media.decode import frames
from stepline.media.frame import ArrayFrame
from stepline.spec import Step
from tests.media.clips import CFR_30, make
from tests.parity import seed_of

cv2 = pytest.importorskip("cv2")
PIL = pytest.importorskip("PIL.Image")

CROP: tuple[Step, ...] = (("centre_crop", 224, "round"),)
IMAGENET = np.array([(0.485, 0.456, 0.406), (0.229, 0.224, 0.225)])
CHAINS: dict[str, tuple[tuple[Step, ...], NDArray[Any]]] = {
    "clip_bicubic_u8": ((("short_side", 224, "pil_bicubic"), *CROP), np.zeros(0)),
    "internvideo_demo_u8": ((("short_side", 256, "pil_bilinear"), *CROP), np.zeros(0)),
    "timesformer_f32": (
        (("short_side", 256, "bilinear"), ("centre_crop", 224, "ceil")),
        np.array([(0.45,) * 3, (0.225,) * 3]),
    ),
    "egovlp_f32": (
        (("short_side", 256, "bilinear"), ("centre_crop", 256, "round"), ("exact", 224, 224, "bilinear")),
        IMAGENET,
    ),
}
"""Steps by the name of a reference output, and the mean and deviation of those that are normalised."""


@dataclass(frozen=True)
class Asked(ArrayFrame):
    """A frame that notes the sizes that it was asked for."""

    asked: list[tuple[int, int]] = field(default_factory=list)

    def rgb(self, width: int = 0, height: int = 0) -> NDArray[np.uint8]:
        self.asked.append((width, height))
        return super().rgb(width, height)


def noise(height: int, width: int, seed: int = 0) -> Asked:
    return Asked(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


def of_recipe(name: str, h: int, w: int, sha256: str) -> ArrayFrame:
    """Return the picture of that name, by the recipe in the file of reference outputs."""
    rng = np.random.default_rng(seed_of(name))
    blocks = rng.integers(0, 200, (-(-h // 8), -(-w // 8), 3)).repeat(8, 0).repeat(8, 1)[:h, :w]
    grain = rng.integers(0, 40, (h, w, 3))
    image = (blocks + grain + (np.arange(w) * 15 // (w - 1))[None, :, None]).astype(np.uint8)
    assert hashlib.sha256(image.tobytes()).hexdigest() == sha256
    return ArrayFrame(image)


def references(parity: Path) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Yield the name, our picture and the reference's, of all files that there are."""
    for path in sorted((parity / "preprocess").glob("golden_*.npz")):
        with np.load(path, allow_pickle=False) as loaded:
            golden = dict(loaded)
        inputs = json.loads(str(golden.pop("recipe_json")))["inputs"]
        made = {name.rsplit("/", 1)[1]: of_recipe(name, **recipe) for name, recipe in inputs.items()}
        for name, reference in golden.items():
            source, kind = name.split("/")
            steps, scale = CHAINS[kind]
            ours = picture(made[source], steps)
            if len(scale):
                ours = ((ours / 255 - scale[0]) / scale[1]).transpose(2, 0, 1)[:, ::4, ::4]
            yield f"{path.name} {name}", ours, reference


def test_pictures_are_those_of_the_references(parity: Path) -> None:
    kinds = set()
    for name, ours, reference in references(parity):
        if reference.dtype == np.uint8:
            assert ours.dtype == np.uint8
            assert np.array_equal(ours, reference), name
        else:
            assert ours.shape == reference.shape
            assert np.linalg.norm(ours - reference) / np.linalg.norm(reference) <= 1e-5, name
        kinds.add(name.split("/")[1])
    assert kinds == set(CHAINS)


@given(st.tuples(*[st.integers(1, 300)] * 4), st.integers(0, 9))
@settings(deadline=None, max_examples=40)
def test_bilinear_is_that_of_torch(sizes: tuple[int, int, int, int], seed: int) -> None:
    torch = pytest.importorskip("torch")
    height, width, to_height, to_width = sizes
    frame = noise(height, width, seed)
    ours = picture(frame, (("exact", to_width, to_height, "bilinear"),))
    channels = torch.from_numpy(frame.image).permute(2, 0, 1)[None].float()
    scaled = torch.nn.functional.interpolate(channels, (to_height, to_width), mode="bilinear", align_corners=False)
    theirs = scaled[0].permute(1, 2, 0).numpy()
    assert ours.dtype == np.float32
    # torch rounds the place of a pixel, at most the size, to float32; a picture changes by up to 255 in a pixel.
    assert np.abs(ours - theirs).max() <= 255 * np.finfo(np.float32).eps * (height + width)


@pytest.mark.parametrize("size", [(720, 1280), (1080, 1920), (2160, 3840)])
def test_bilinear_is_that_of_torch_at_the_sizes_of_videos(size: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    frame = noise(*size)
    ours = picture(frame, (("short_side", 256, "bilinear"),))
    channels = torch.from_numpy(frame.image).permute(2, 0, 1)[None].float()
    theirs = torch.nn.functional.interpolate(channels, ours.shape[:2], mode="bilinear", align_corners=False)
    assert np.linalg.norm(ours - theirs[0].permute(1, 2, 0).numpy()) <= 1e-6 * torch.linalg.norm(theirs)


@pytest.mark.parametrize("size", [(480, 640), (640, 360), (631, 457), (300, 300)])
@pytest.mark.parametrize("kernel", ["bicubic", "bilinear", "lanczos"])
def test_torchvision_is_torchvision_within_two_levels(kernel: str, size: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    from stepline.backbones.torchvision import make_importable

    make_importable()
    from torchvision.transforms.v2 import InterpolationMode, functional

    frame = noise(*size)
    channels = torch.from_numpy(frame.image).permute(2, 0, 1)
    scaled = functional.resize(channels, [288, 288], InterpolationMode(kernel), antialias=True)
    theirs = scaled.permute(1, 2, 0).numpy().astype(int)
    ours, pillow = (
        np.abs(picture(frame, (("exact", 288, 288, f"{library}_{kernel}"),)).astype(int) - theirs)
        for library in ("torchvision", "pil")
    )
    assert ours.max() <= 2
    assert (ours > 1).mean() < 1e-4
    assert (ours > 0).mean() < 0.25  # 0.02 with AVX2; without it torchvision scales floats bilinearly
    if size[0] > 2 * 288 and kernel != "bilinear":
        assert pillow.max() > 4  # it scales the height first


@pytest.mark.parametrize(("filter_", "method"), [("BICUBIC", "pil_bicubic"), ("BILINEAR", "pil_bilinear")])
def test_the_aspect_is_kept_and_pil_is_pil(filter_: str, method: str) -> None:
    for height, width, long in [(101, 333, 131), (333, 101, 131), (40, 40, 40), (30, 33, 44)]:
        frame = noise(height, width)
        size = (40, long) if height > width else (long, 40)
        theirs = PIL.fromarray(frame.image).resize(size, PIL.Resampling[filter_])
        assert np.array_equal(picture(frame, (("short_side", 40, method),)), np.asarray(theirs))


@pytest.mark.parametrize(
    ("rounding", "long", "starts"), [("floor", 131, (2, 3, 3)), ("round", 132, (2, 3, 4)), ("ceil", 132, (3, 3, 4))]
)
def test_the_long_side_and_a_centre_crop_are_rounded_as_the_step_says(
    rounding: str, long: int, starts: tuple[int, ...]
) -> None:
    assert picture(noise(101, 333), (("short_side", 40, "pil_bilinear", rounding),)).shape == (40, long, 3)
    assert picture(noise(101, 333), (("short_side", 40, "pil_bilinear"),)).shape == (40, 131, 3)
    for width, start in zip((9, 10, 11), starts, strict=True):
        frame = noise(8, width)
        cropped = picture(frame, (("centre_crop", 4, rounding),))
        assert np.array_equal(cropped, frame.image[2:6, start : start + 4])


def test_round_is_that_of_torchvision() -> None:
    pytest.importorskip("torch")
    from stepline.backbones.torchvision import make_importable

    make_importable()
    from torchvision.transforms.functional import center_crop

    for height, width in [(9, 10), (11, 12), (13, 4), (4, 15)]:
        frame = noise(height, width)
        theirs = np.asarray(center_crop(PIL.fromarray(frame.image), 4))
        assert np.array_equal(picture(frame, (("centre_crop", 4, "round"),)), theirs)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a video of grey noise: programs differ in where they say that a pixel's colour is."""
    grey = noise(90, 166).image[:, :, :1].repeat(3, 2)
    return make(tmp_path_factory.mktemp("clips") / "a.mp4", CFR_30[:3], picture=lambda index: np.roll(grey, index, 1))


@pytest.mark.parametrize(
    ("filters", "steps"),
    [
        ("null", ()),
        ("scale=56:48", (("exact", 56, 48, "swscale_bicubic"),)),
        ("crop=min(iw\\,ih):min(iw\\,ih)", (("centre_square",),)),
        ("crop=min(iw\\,ih):min(iw\\,ih),scale=56:56", (("centre_square",), ("exact", 56, 56, "swscale_bicubic"))),
    ],
)
def test_pictures_are_those_of_ffmpeg(clip: Path, filters: str, steps: tuple[Step, ...]) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg").get_ffmpeg_exe()
    ours = picture(next(iter(frames(clip))), steps)
    command = [ffmpeg, "-v", "error", "-i", clip, "-vf", filters, "-frames:v", "1", "-f", "rawvideo"]
    raw = subprocess.run([*command, "-pix_fmt", "rgb24", "-"], capture_output=True, check=True).stdout
    difference = np.abs(ours.astype(int) - np.frombuffer(raw, np.uint8).reshape(ours.shape))
    assert not difference.any()


def test_a_first_scaling_is_straight_from_the_decoder(clip: Path) -> None:
    first = next(iter(frames(clip)))
    assert np.array_equal(picture(first, (("short_side", 45, "swscale_bicubic"),)), first.rgb(83, 45))
    still = noise(90, 166)
    picture(still, (("short_side", 45, "swscale_bicubic"), ("centre_crop", 40, "floor")))
    assert still.asked == [(83, 45)]


def test_jpeg_is_what_opencv_writes_and_reads(tmp_path: Path) -> None:
    frame = noise(33, 47)
    cv2.imwrite(str(tmp_path / "a.jpg"), frame.image[:, :, ::-1])
    theirs = cv2.imread(str(tmp_path / "a.jpg"))
    assert theirs is not None
    assert np.array_equal(picture(frame, (("jpeg", 95),)), theirs[:, :, ::-1])
    assert not np.array_equal(picture(frame, (("jpeg", 90),)), theirs[:, :, ::-1])


def test_what_chains_begin_with_is_computed_once() -> None:
    frame = noise(90, 160)
    pictures = Pictures(frame)
    scaled: Step = ("short_side", 45, "swscale_bicubic")
    for steps in [(scaled,), (scaled, ("centre_crop", 30, "round")), (scaled, ("jpeg", 95))]:
        pictures.after(steps)
    assert frame.asked == [(80, 45)]
    for size in (30, 40):
        pictures.after((("centre_square",), ("exact", size, size, "pil_bicubic")))
    assert pictures.after(()) is frame.image
    assert frame.asked == [(80, 45), (0, 0)]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((("sharpen",),), r"the step ('sharpen',) is not known"),
        ((("exact", 9, 9, "area"),), "the step ('exact', 9, 9, 'area') is not known"),
        ((("exact", 9, "bilinear"),), "the step ('exact', 9, 'bilinear') is not known"),
        ((("short_side", 9, "bilinear", "up"),), "the step ('short_side', 9, 'bilinear', 'up') is not known"),
        ((("short_side", 9, "bilinear", "ceil", "ceil"),), "is not known"),
        ((("centre_crop", 9, "up"),), "the step ('centre_crop', 9, 'up') is not known"),
        ((("centre_crop", 41, "round"),), "is not applicable: the picture has 60 x 40 pixels"),
        ((("centre_crop", 0, "round"),), "the step ('centre_crop', 0, 'round') is not applicable"),
        ((("short_side", 0, "swscale_bicubic"),), "is not applicable: it leaves 0 x 0 pixels"),
        ((("exact", 9, -1, "bilinear"),), "is not applicable: it leaves 9 x -1 pixels"),
        ((("jpeg", 101),), "the step ('jpeg', 101) is not known"),
        ((("exact", 9, 9, "bilinear"), ("jpeg", 95)), "needs 8-bit pictures: it cannot follow a step on floats"),
        ((("exact", 9, 9, "bilinear"), ("exact", 4, 4, "pil_bicubic")), "needs 8-bit pictures"),
        ((("exact", 9, 9, "bilinear"), ("exact", 4, 4, "swscale_bicubic")), "needs 8-bit pictures"),
    ],
)
def test_a_step_that_cannot_be_taken_is_named(steps: tuple[Step, ...], message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        picture(noise(40, 60), steps)
    assert message in str(raised.value)


def test_the_module_needs_no_library_until_a_picture_is_made() -> None:
    code = "import sys, stepline.backbones.picture; print({'torch', 'PIL', 'cv2', 'av'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
