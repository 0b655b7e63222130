"""One spec, one hash, one path: the frozen record of what decides the bytes of a cached artefact."""

import dataclasses
import hashlib
from fractions import Fraction
from typing import Any, Literal

from stepline.io import canonical_json

FrameRule = Literal["at_or_before", "nearest", "ffmpeg_near", "index_linspace"]
"""Which frame of a video stands for a time: ``stepline.media.timeline.Timeline.select``."""
ReaderName = Literal["pyav", "decord"]
"""What reads the frames."""


def digest(value: Any) -> str:
    """Return the first 8 hex digits of the sha256 of ``value``'s canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:8]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spec:
    """Base of all specs. Subclasses add what decides the bytes; device, batch size, threads and locations never do.

    ``revision`` counts the changes of the code that give other numbers: raise it with such a change.
    """

    name: str
    label: str
    revision: int

    def record(self) -> dict[str, Any]:
        """Return the spec as plain values, as it is stored beside what was made from it."""
        return dataclasses.asdict(self)

    @property
    def id(self) -> str:
        """``<label>-<8 hex digits>``: readable and unique; a folder name."""
        return f"{self.label}-{digest(self.record())}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrameSpec(Spec):
    """Base of the specs of what is made from single frames, ``fps`` of them per second of video."""

    fps: float
    frame_rule: FrameRule = "at_or_before"
    reader: ReaderName = "pyav"


Step = tuple[str | int, ...]
"""One step from a decoded frame to a network's picture, see ``stepline.backbones.picture``."""
Placement = Literal["grid", "middles", "ends", "seconds"]
"""Where the frames of a clip lie: see ``ClipSpec``."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClipSpec(FrameSpec):
    """What decides the vectors that a network makes of clips: (D,) of each.

    Sampling. placement ``grid``: row k stands for second k x hop / fps; its clip is the frames at the times
    (offset + k x hop + i x interval) / fps, i < num_frames, each chosen by ``frame_rule``. Otherwise rows are listed
    clips [start_s, end_s), with num_frames frames at the ``middles`` of equal parts, evenly from one of its ``ends`` to
    the other, or one of its ``seconds`` after the other; fps is then unused. tail: what stands for frames after the end
    of the video, or before its start: ``zero`` (the network's input is 0 there), ``repeat`` (the nearest frame),
    ``drop`` (no such row).

    Pictures. steps: from the decoded frame to the picture; then (x / 255 - mean) / std, per channel of RGB.

    Network. architecture: its family, a key of ``stepline.backbones.registry.FAMILIES``. model: which of the family,
    where it has many. weights: names in ``stepline.backbones.weights.WEIGHTS``; weights_sha256: (file, sha256) of all
    their files, () until they are known. output: the layer and its pooling. normalise: whether the vector is
    L2-normalised. compute: what the network computes in. dtype: of stored vectors. dimension: D.
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
    dimension: int

    @property
    def hop_s(self) -> float:
        """Seconds from one row to the next."""
        return float(self.hop / Fraction(str(self.fps)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextSpec(Spec):
    """What decides the (D,) float32 vector that a text tower makes of a text.

    architecture, weights, weights_sha256, licence, output, normalise, dimension: as in ``ClipSpec``. max_tokens: those
    of a text that the tower sees, with special ones.
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
