"""Frames of a video: a picture with its time, as stored or upright."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import av

Image = NDArray[np.uint8]


class Frame(Protocol):
    """A frame that a reader returns."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""

    def square(self) -> "Frame":
        """Return the largest square in the middle, as ffmpeg crops 4:2:0 video: its side and offsets are even."""

    def rgb(self, width: int = 0, height: int = 0) -> Image:
        """Return the picture as (height, width, 3) RGB, scaled to the given size (bicubic) or unscaled."""


class Filters:
    """A chain of ffmpeg filters, set up once for pictures of the same size and format."""

    def __init__(self) -> None:
        self._kind: tuple[object, ...] = ()

    def __call__(self, picture: "av.VideoFrame", *chain: tuple[str, str]) -> "av.VideoFrame":
        """Return the picture after the filters; each filter is a name and its arguments."""
        kind = picture.width, picture.height, picture.format.name, chain
        if kind != self._kind:
            self._set_up(picture, chain)
            self._kind = kind
        self._source.push(picture)
        return cast("av.VideoFrame", self._sink.pull())

    def _set_up(self, picture: "av.VideoFrame", chain: tuple[tuple[str, str], ...]) -> None:
        import av

        self._graph = av.filter.Graph()
        self._source = self._graph.add_buffer(
            width=picture.width,
            height=picture.height,
            format=picture.format,
            time_base=picture.time_base or Fraction(1),
        )
        self._sink = self._graph.add("buffersink")
        self._graph.link_nodes(self._source, *(self._graph.add(*each) for each in chain), self._sink).configure()


@dataclass(frozen=True)
class DecodedFrame:
    """A frame of PyAV, shown from ``pts`` x ``time_base`` seconds on, counted from the start of the video stream.

    duration: in the units of ``pts``. frame_rate: of the stream, libavformat's guess. pixels: the width of a stored
    pixel divided by its height. stored: the picture as stored.
    turn: its ``rotation``, 0 if it is shown as stored. scaler, filters: shared by all frames.
    """

    pts: int
    time_base: Fraction
    duration: int
    frame_rate: Fraction
    pixels: Fraction
    stored: "av.VideoFrame"
    turn: int
    scaler: "av.video.reformatter.VideoReformatter"
    filters: Filters

    @property
    def t_s(self) -> float:
        """The presentation time in seconds, rounded once."""
        return self.pts * self.time_base.numerator / self.time_base.denominator

    @property
    def end_s(self) -> float:
        """The time at which the frame is no longer shown, in seconds."""
        return float((self.pts + self.duration) * self.time_base)

    @cached_property
    def picture(self) -> "av.VideoFrame":
        """The picture as it is shown."""
        return self.filters(self.stored, *TURNS[self.turn]) if self.turn else self.stored

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.picture.width, self.picture.height

    @property
    def aspect(self) -> Fraction:
        """Width divided by height of the picture as players show it."""
        width, height = self.size
        return width * (1 / self.pixels if self.turn % 180 else self.pixels) / height

    def square(self) -> "DecodedFrame":
        """Return the largest square in the middle, as ffmpeg crops it: offsets are even for subsampled chroma."""
        side = min(self.size)
        return replace(self, stored=self.filters(self.picture, ("crop", f"{side}:{side}")), turn=0)

    def rgb(self, width: int = 0, height: int = 0) -> Image:
        """Return the picture as (height, width, 3) RGB, scaled to the given size (bicubic) or unscaled."""
        scaled = self.scaler.reformat(
            self.picture, width or None, height or None, "rgb24", interpolation="BICUBIC", threads=1
        )
        return cast(Image, scaled.to_ndarray())

    def bgr(self) -> Image:
        """Return the picture as (height, width, 3) BGR."""
        return cast(Image, self.scaler.reformat(self.picture, format="bgr24", threads=1).to_ndarray())


@dataclass(frozen=True)
class ArrayFrame:
    """A (height, width, 3) RGB picture as a frame."""

    image: Image

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        height, width, _ = self.image.shape
        return width, height

    def square(self) -> "ArrayFrame":
        """Return the largest square in the middle, as ffmpeg crops 4:2:0 video: its side and offsets are even."""
        side = min(self.size) & ~1
        left, top = ((length - side) // 2 & ~1 for length in self.size)
        return ArrayFrame(np.ascontiguousarray(self.image[top : top + side, left : left + side]))

    def rgb(self, width: int = 0, height: int = 0) -> Image:
        """Return the picture as (height, width, 3) RGB, scaled to the given size (bicubic) or unscaled."""
        import av

        if not width:
            return self.image
        scaled = av.VideoFrame.from_ndarray(self.image, "rgb24").reformat(
            width, height, interpolation="BICUBIC", threads=1
        )
        return cast(Image, scaled.to_ndarray())


TURNS: dict[int, tuple[tuple[str, str], ...]] = {
    0: (),
    90: (("transpose", "clock"),),
    180: (("hflip", ""), ("vflip", "")),
    270: (("transpose", "cclock"),),
    360: (("hflip", ""),),
    450: (("transpose", "clock_flip"),),
    540: (("vflip", ""),),
    630: (("transpose", "cclock_flip"),),
}
"""The ffmpeg filters for each ``rotation``."""


def rotation(picture: "av.VideoFrame") -> int:
    """Return the clockwise rotation in degrees that makes a picture upright, plus 360 if it is mirrored afterwards.

    It follows the file's display matrix, rounded to right angles. The picture then stays in memory until Python's
    cyclic garbage collector runs, because it and PyAV's side data refer to each other.
    """
    _read_unnamed_side_data()
    side: Any = picture.side_data.get("DISPLAYMATRIX")
    if side is None:
        return 0
    a, b, _, c, d, *_ = np.frombuffer(bytes(side), "<i4").tolist()
    if abs(a) < abs(b) and abs(d) < abs(c):
        mirrored, turn = (b > 0) == (c > 0), 90 if c < 0 else 270
    else:
        mirrored, turn = (a > 0) != (d > 0), 0 if d > 0 else 180
    return int(turn + 360 * mirrored)


@cache
def _read_unnamed_side_data() -> None:
    """Give types of side data that PyAV has no name for, such as EXIF, their number as a name; it refuses them."""
    from av.sidedata.sidedata import Type

    def missing(kind: type[Any], value: int) -> Any:
        member = object.__new__(kind)
        member._name_, member._value_ = str(value), value
        return member

    Type._missing_ = classmethod(missing)  # type: ignore[assignment]
