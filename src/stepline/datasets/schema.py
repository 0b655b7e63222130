"""The one schema of all procedural-video datasets. Times in seconds; frames where the name says so."""

from dataclasses import dataclass
from typing import Literal

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = ("train", "val", "test")


@dataclass(frozen=True, kw_only=True)
class Video:
    """A listed video: what there is to download.

    url: a page that yt-dlp understands, an http(s) address of a file, or empty where only a mirror can hold it.
    path: its canonical path in a mirror.
    sha256: of the file where it is known, else empty.
    """

    id: str
    split: Split
    duration_s: float
    url: str
    path: str
    sha256: str = ""


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
    """One annotated recording. ``steps[i]`` belongs to label i; ``steps[0]`` is Irrelevant, so K = len(steps) - 1."""

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

    fps: the frame rate that relates the release's frame indices to seconds (t = frame / fps).
    recordings: by video id; ``splits``: video ids per split, in the release's own order.
    """

    study: str
    name: str
    fps: float
    recordings: dict[str, Recording]
    splits: dict[Split, tuple[str, ...]]
