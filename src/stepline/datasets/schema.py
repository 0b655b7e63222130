"""The common schema of procedural-video data sets. Times are in seconds; names that end in ``_frame`` are frames."""

import os
from dataclasses import dataclass
from typing import Literal

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = ("train", "val", "test")
BYTES_PER_S = 625_000
"""The assumed bit rate of a video with unknown duration: 5 Mbit/s, typical of 1080p. Used to size shards."""
LENGTH_S = 600.0
"""The assumed duration of a video if only its address is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Video:
    """A listed video and its sources. Fields that do not apply or are unknown are empty.

    file: the user's own file, an absolute path.
    url: a page that yt-dlp supports, or the http(s) address of a file.
    path: its canonical path in a mirror.
    sha256: of the file.
    """

    id: str
    split: Split | None = None
    duration_s: float | None = None
    file: str = ""
    url: str = ""
    path: str = ""
    sha256: str = ""

    @property
    def length_s(self) -> float:
        """Its duration, or an estimate: a local file's size at ``BYTES_PER_S``, otherwise ``LENGTH_S``."""
        if self.duration_s is not None:
            return self.duration_s
        if self.file:
            return os.path.getsize(self.file) / BYTES_PER_S if os.path.isfile(self.file) else 0.0
        return LENGTH_S if self.url else 0.0


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A labelled part of a recording: [start_s, end_s) and [start_frame, end_frame).

    label: -1 unavailable, 0 Irrelevant, 1..K steps.
    """

    start_s: float
    end_s: float
    start_frame: int
    end_frame: int
    label: int


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step: its caption, the narration of its animation, and the animation's interval (None for Irrelevant)."""

    caption: str
    transcript: str
    animation_s: tuple[float, float] | None


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One annotated recording. ``steps[i]`` has label i; ``steps[0]`` is Irrelevant, so K = len(steps) - 1."""

    video: str
    split: Split
    duration_s: float
    segments: tuple[Segment, ...]
    steps: tuple[Step, ...]

    @property
    def n_steps(self) -> int:
        """K, the number of steps without Irrelevant."""
        return len(self.steps) - 1


@dataclass(frozen=True, kw_only=True)
class Release:
    """One release of a dataset's annotation.

    fps: the frame rate that converts the release's frame indices to seconds (t = frame / fps).
    recordings: by video id. splits: video ids per split, in the order of the release.
    """

    study: str
    name: str
    fps: float
    recordings: dict[str, Recording]
    splits: dict[Split, tuple[str, ...]]
