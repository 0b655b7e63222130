"""Preprocessing of a decoded frame, up to the normalisation by mean and deviation."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor
from typing import cast

import numpy as np
from numpy.typing import NDArray

from stepline.media.frame import ArrayFrame, Frame, Image
from stepline.spec import Step

Picture = NDArray[np.uint8 | np.float32]
ROUNDINGS: dict[str, Callable[[Fraction], int]] = {"floor": floor, "round": round, "ceil": ceil}
"""How a length is rounded to pixels; ``round`` rounds halves to even."""
SQUARE: Step = ("centre_square",)


class Pictures:
    """The pictures of one frame. Chains that begin with the same steps share their results."""

    def __init__(self, frame: Frame) -> None:
        """Compute nothing yet."""
        self._frame = frame
        self._made: dict[tuple[Step, ...], Picture] = {}

    def after(self, steps: tuple[Step, ...]) -> Picture:
        """Return the (H, W, 3) RGB picture after ``steps``: uint8, or float32 in [0, 255] after a step on floats.

        ("short_side", size, METHOD[, ROUNDING]): keeps the aspect ratio; the long side is rounded, by default down.
        ("exact", width, height, METHOD): ignores the aspect ratio.
        ("centre_square",): the largest square, cropped by ffmpeg from the decoded frame; only as the first step.
        ("centre_crop", size, ROUNDING): a square of that size; half of the remainder, rounded, is cut at top and left.
        ("jpeg", quality): encodes and decodes JPEG with OpenCV.
        METHOD: swscale_bicubic is ffmpeg's, applied to the decoded frame, cropped or not. bilinear is
        ``torch.nn.functional.interpolate`` on floats, with half-pixel centres and without antialiasing. The others are
        LIBRARY_KERNEL, with the kernel bicubic, bilinear or lanczos: pil is Pillow's, which scales first the side that
        leaves less work; torchvision scales the width first, as torchvision does with 8-bit tensors and antialiasing,
        from which it differs by one level of 255 in a few values, rarely by two; antialiased is the same on floats.
        ROUNDING: one of ``ROUNDINGS``.
        Raises ValueError with the step if it is unknown or not applicable.
        """
        if steps not in self._made:
            self._made[steps] = self._make(steps)
        return self._made[steps]

    def _make(self, steps: tuple[Step, ...]) -> Picture:
        if not steps:
            return self._frame.rgb()
        *before, step = steps
        if steps == (SQUARE,):
            return self._frame.square().rgb()
        if before in ([], [SQUARE]) and "swscale_bicubic" in step:
            frame = self._frame.square() if before else self._frame
            return frame.rgb(*_scaled_size(step, *frame.size))
        return _taken(step, self.after(tuple(before)))


def picture(frame: Frame, steps: tuple[Step, ...]) -> Picture:
    """Return the picture of a frame after ``steps``; see ``Pictures``."""
    return Pictures(frame).after(steps)


def _taken(step: Step, image: Picture) -> Picture:
    height, width, _ = image.shape
    match step:
        case ("short_side", int(), method, *_) | ("exact", int(), int(), method):
            return _scaled(step, image, str(method), *_scaled_size(step, width, height))
        case ("centre_crop", int(size), str(rounding)) if rounding in ROUNDINGS:
            if not 1 <= size <= min(width, height):
                raise ValueError(f"the step {step} is not applicable: the picture has {width} x {height} pixels")
            left, top = (ROUNDINGS[rounding](Fraction(side - size, 2)) for side in (width, height))
            return np.ascontiguousarray(image[top : top + size, left : left + size])
        case ("jpeg", int(quality)) if 1 <= quality <= 100:
            return _jpeg(_eight_bit(step, image), quality)
    raise ValueError(f"the step {step} is not known")


def _scaled_size(step: Step, width: int, height: int) -> tuple[int, int]:
    """Return the width and height after a scaling step."""
    match step:
        case ("exact", int(to_width), int(to_height), str()):
            pass
        case ("short_side", int(short), str(), *rounding) if len(rounding) < 2 and ROUNDINGS.keys() >= set(rounding):
            rounded = ROUNDINGS[str(rounding[0]) if rounding else "floor"]
            to_width, to_height = (rounded(Fraction(short * side, min(width, height))) for side in (width, height))
        case _:
            raise ValueError(f"the step {step} is not known")
    if min(to_width, to_height) < 1:
        raise ValueError(f"the step {step} is not applicable: it leaves {to_width} x {to_height} pixels")
    return to_width, to_height


def _scaled(step: Step, image: Picture, method: str, width: int, height: int) -> Picture:
    if method == "bilinear":
        return _bilinear(image, width, height)
    if method == "swscale_bicubic":
        return ArrayFrame(_eight_bit(step, image)).rgb(width, height)
    library, _, kernel = method.partition("_")
    if library in ("pil", "torchvision", "antialiased") and kernel in ("bicubic", "bilinear", "lanczos"):
        from PIL.Image import Resampling, fromarray

        filter_ = Resampling[kernel.upper()]
        if library == "antialiased":
            channels = np.moveaxis(image.astype(np.float32), 2, 0)
            return np.stack([np.asarray(fromarray(each).resize((width, height), filter_)) for each in channels], axis=2)
        whole = fromarray(_eight_bit(step, image))
        if library == "torchvision":
            whole = whole.resize((width, whole.height), filter_)
        return np.asarray(whole.resize((width, height), filter_))
    raise ValueError(f"the step {step} is not known")


def _eight_bit(step: Step, image: Picture) -> Image:
    if image.dtype != np.uint8:
        raise ValueError(f"the step {step} needs 8-bit pictures: it cannot follow a step on floats")
    return cast(Image, image)


def _jpeg(image: Image, quality: int) -> Image:
    import cv2

    _, written = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    return cast(Image, cv2.imdecode(written, cv2.IMREAD_COLOR_RGB))


def _bilinear(image: Picture, width: int, height: int) -> NDArray[np.float32]:
    """Return the resized picture, as computed by torch. OpenCV's result has a relative error of up to 4e-5."""
    top, bottom, down = _neighbours(image.shape[0], height)
    left, right, along = _neighbours(image.shape[1], width)
    down, along = down[:, None, None], along[:, None]
    rows = image[top] * (1 - down) + image[bottom] * down
    return np.asarray(rows[:, left] * (1 - along) + rows[:, right] * along, np.float32)


def _neighbours(before: int, after: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Return, for each of ``after`` pixels, its two neighbours among ``before`` pixels and the weight of the second."""
    at = (np.arange(after, dtype=np.float32) + np.float32(0.5)) * np.float32(before / after) - np.float32(0.5)
    at = np.maximum(at, np.float32(0))
    first = np.minimum(at.astype(np.int64), before - 1)
    return first, np.minimum(first + 1, before - 1), at - first.astype(np.float32)
