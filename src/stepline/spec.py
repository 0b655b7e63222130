"""Specs: one spec, one hash, one path. A spec is a frozen record of the settings that determine a cached artefact."""

import dataclasses
import hashlib
import math
import re
from functools import cached_property
from typing import Any, Literal, get_args, get_origin

from stepline.errors import ConfigError
from stepline.io import canonical_json

FrameRule = Literal["at_or_before", "nearest", "ffmpeg_near", "index_linspace"]
"""The choice of the frame for a time: see ``stepline.media.timeline.Timeline.select``."""
ReaderName = Literal["pyav", "decord"]
"""The library that reads the frames."""
Orientation = Literal["upright", "stored"]
"""Whether pictures are rotated as the file specifies, or used as stored."""


def digest(value: Any) -> str:
    """Return the first 8 hex digits of the sha256 of ``value``'s canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:8]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spec:
    """Base of all specs. Subclasses add the fields that determine the bytes; device, batch size, threads and locations
    are never part of a spec.

    ``revision`` counts changes of the code that give other numbers: raise it with such a change.
    """

    name: str
    label: str
    revision: int

    def record(self) -> dict[str, Any]:
        """Return the spec as plain values, as it is stored next to its artefacts."""
        return dataclasses.asdict(self)

    @cached_property
    def id(self) -> str:
        """``<label>-<8 hex digits>``: readable and unique; a folder name."""
        return f"{self.label}-{digest(self.record())}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrameSpec(Spec):
    """Base of the specs of features from frames, ``fps`` of them per second of video."""

    fps: float = 1
    frame_rule: FrameRule = "at_or_before"
    reader: ReaderName = "pyav"
    orientation: Orientation = "upright"

    def record(self) -> dict[str, Any]:
        """Return the spec as plain values; ``orientation`` only if it is not ``upright``."""
        values = super().record()
        if self.orientation == "upright":
            del values["orientation"]
        return values


Step = tuple[str | int, ...]
"""One step from a decoded frame to a network's input picture, see ``stepline.backbones.picture``."""
FLOAT_METHODS = ("bilinear", "antialiased_bicubic", "antialiased_bilinear", "antialiased_lanczos")
"""The interpolation methods whose result is not rounded to 8 bits."""
METHODS = (
    "swscale_bicubic",
    "pil_bicubic",
    "pil_bilinear",
    "pil_lanczos",
    "torchvision_bicubic",
    "torchvision_bilinear",
    "torchvision_lanczos",
    *FLOAT_METHODS,
)
"""The interpolation methods of a step."""
ROUNDINGS = ("floor", "round", "ceil")
"""The rounding of a step's length to pixels."""
Placement = Literal["grid", "middles", "ends", "seconds", "each_second"]
"""The placement of the frames of a clip: see ``ClipSpec``."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClipSpec(FrameSpec):
    """The settings that determine the vectors that a network computes from clips: (D,) for each clip.

    Sampling. placement ``grid``: row k is at second k x hop / fps. Its clip has the frames at the times
    (offset + k x hop + i x interval) / fps, i < num_frames, each chosen by ``frame_rule``. Otherwise rows are listed
    clips [start_s, end_s). Their num_frames frames are at the ``middles`` of equal parts, evenly spaced between the
    ``ends``, one per second from the first frame (``seconds``), or at ``each_second`` of the video; fps is then unused.
    tail: the frames after the end of the video or before its start: ``zero`` (the network's input is 0 there),
    ``repeat`` (the nearest frame), ``drop`` (the row is omitted).

    Pictures. steps: from the decoded frame to the picture; then (x / 255 - mean) / std, per channel of RGB.

    Network. batches: whether a batch has clips of one ``video`` or of several (``mixed``).
    architecture: its family, a key of ``stepline.backbones.registry.FAMILIES``. model: the model of the family, if it
    has several. weights: names in ``stepline.backbones.weights.WEIGHTS``. weights_sha256: (file, sha256) of all their
    files, () until they are known. output: the layer and its pooling. normalise: whether the vector is L2-normalised.
    compute: the number type of the network's arithmetic. dtype: of stored vectors. dimension: D.
    """

    architecture: str
    model: str = ""
    weights: tuple[str, ...]
    weights_sha256: tuple[tuple[str, str], ...] = ()
    licence: str
    placement: Placement = "grid"
    num_frames: int
    interval: int = 1
    hop: int = 1
    offset: int = 0
    tail: Literal["zero", "repeat", "drop"] = "zero"
    steps: tuple[Step, ...]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    output: str
    normalise: bool = False
    compute: Literal["float32", "bfloat16", "float16"] = "float32"
    dtype: Literal["float16", "float32"] = "float16"
    batches: Literal["video", "mixed"] = "video"
    dimension: int

    def record(self) -> dict[str, Any]:
        """Return the spec as plain values; ``batches`` only if it is not ``video``."""
        values = super().record()
        if self.batches == "video":
            del values["batches"]
        return values

    def __post_init__(self) -> None:
        """Raise ConfigError if a field has a value that is not allowed."""
        rules = [
            *((each, _is_folder(getattr(self, each)), "the name of a folder") for each in ("name", "label")),
            *(
                (each, _is_integer(getattr(self, each), 1), "an integer of 1 or more")
                for each in ("num_frames", "interval", "hop", "dimension")
            ),
            ("offset", _is_integer(self.offset), "an integer"),
            ("fps", _is_number(self.fps) and self.fps > 0, "a finite number above 0"),
            ("weights", isinstance(self.weights, tuple), "a tuple of names"),
            ("mean", _is_colour(self.mean), "a tuple of 3 finite numbers"),
            ("std", _is_colour(self.std) and 0 not in self.std, "a tuple of 3 finite numbers other than 0"),
            ("steps", isinstance(self.steps, tuple), "a tuple of steps"),
            *(
                (field.name, getattr(self, field.name) in get_args(field.type), f"one of {get_args(field.type)}")
                for field in dataclasses.fields(self)
                if get_origin(field.type) is Literal
            ),
        ]
        for field, fits, allowed in rules:
            if not fits:
                raise ConfigError(f"spec {self.name!r}: {field} is {getattr(self, field)!r}, not {allowed}")
        for i, step in enumerate(self.steps):
            if not _follows(self.steps[:i], step):
                raise ConfigError(
                    f"spec {self.name!r}: steps has {step!r} at position {i + 1}, which is unknown or not allowed "
                    "there: see stepline.backbones.picture.Pictures.after"
                )


def _is_folder(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[A-Za-z0-9][A-Za-z0-9_.-]*", value) is not None


def _is_integer(value: Any, least: float = -math.inf) -> bool:
    return type(value) is int and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_colour(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and all(map(_is_number, value))


def _follows(before: tuple[Step, ...], step: Any) -> bool:
    """Return whether ``stepline.backbones.picture`` supports the step after the previous ones."""
    methods = METHODS if {*FLOAT_METHODS}.isdisjoint(word for each in before for word in each) else FLOAT_METHODS
    match step if isinstance(step, tuple) else ():
        case ("short_side", int(size), method, *rounding):
            return (
                size > 0 and method in methods and (not rounding or (len(rounding) == 1 and rounding[0] in ROUNDINGS))
            )
        case ("exact", int(width), int(height), method):
            return min(width, height) > 0 and method in methods
        case ("centre_square",):
            return not before
        case ("centre_crop", int(size), rounding):
            return size > 0 and rounding in ROUNDINGS
        case ("jpeg", int(quality)):
            return 1 <= quality <= 100 and methods == METHODS
    return False


def fixed_size(steps: tuple[Step, ...]) -> bool:
    """Return whether pictures after the steps have the same size for all videos."""
    words = [step[0] for step in steps]
    return not {"exact", "centre_crop"}.isdisjoint(words) or {"centre_square", "short_side"} <= {*words}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextSpec(Spec):
    """The settings that determine the (D,) float32 vector that a text tower computes from a text.

    architecture, weights, weights_sha256, licence, output, normalise, dimension: as in ``ClipSpec``. max_tokens: the
    maximum number of tokens of a text, including special tokens.
    """

    architecture: str
    weights: tuple[str, ...]
    weights_sha256: tuple[tuple[str, str], ...] = ()
    licence: str
    max_tokens: int
    output: str
    normalise: bool = False
    dimension: int
    dtype: str = "float32"
