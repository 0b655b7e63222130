"""One spec, one hash, one path: the frozen record of what decides the bytes of a cached artefact."""

import dataclasses
import hashlib
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
