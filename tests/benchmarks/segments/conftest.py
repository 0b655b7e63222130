"""A data set with labelled segments, whose videos are empty files, and its study."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stepline.benchmark import Job
from stepline.benchmarks.segments.benchmark import Segments
from stepline.benchmarks.segments.inputs import SegmentInputs
from stepline.benchmarks.segments.recognition import Recognised, Segment
from stepline.config import validate
from stepline.fetch import fetch_release

LABELS = """\
video,start_s,end_s,label,split
a,0,2,wash,train
a,2,4,cut,train
a,4,8,,train
b,0,2,wash,train
b,2,6,cook,train
c,0,2,wash,train
c,2,4,cut,train
c,4,6,cook,train
d,0,2,cut,val
d,2,4,cook,val
e,0,2,wash,test
e,2,4,cook,test
e,4,6,cut,test
"""
COLOURS = {"wash": [1.0, 0.0, 0.0], "cut": [0.0, 1.0, 0.0], "cook": [0.0, 0.0, 1.0]}
"""The mean features of a segment with a label; of others, white."""


@pytest.fixture(autouse=True)
def files() -> None:
    """The videos and the segments, in the test's folder."""
    Path("videos").mkdir()
    for name in "abcde":
        Path("videos", f"{name}.mp4").write_bytes(b"x")
    Path("labels.csv").write_text(LABELS)


def plan(study: dict[str, Any] | None = None, other: dict[str, Any] | None = None, **mine: Any) -> Segments:
    """Return the plan. study: its section. other: further keys of the configuration. mine: keys of the data set."""
    named = {"datasets": {"mine": {"videos": "videos", "segments": "labels.csv", **mine}}}
    return Segments.of(validate(named | (other or {}) | ({"segments": study} if study else {})), "segments")


def inputs(entry: str, made: Segments | None = None) -> SegmentInputs:
    """Return the inputs of an entry on the fetched release; its one bank has `COLOURS` and a row of ones."""
    made = made or plan()
    fetch_release(made.released, "mine")
    found = made.inputs(Job(release="mine", entry=made.entries[entry]))
    vars(found)["banks"] = [Bank(made)] if made.entries[entry].features else []
    return found


def vector(text: str) -> Any:
    """Return the vector of a label in the text tower of `tests.benchmarks.tower`."""
    import numpy as np

    return np.array({"wash": [3, 0, 0], "cut": [0, 1, 0], "cook": [2, 0, 2]}[text])


class Bank:
    """The features of the segments: those of their labels, twice as long for later ones."""

    def __init__(self, made: Segments) -> None:
        listed = (each for split in ("train", "val", "test") for each in made.segments("mine", split))
        self.rows = {
            (each.video, each.start_s): (1 + each.start_s) * np.array(COLOURS.get(each.step, [1.0, 1.0, 1.0]))
            for each in listed
        }

    def __contains__(self, video: str) -> bool:
        return video in {name for name, _ in self.rows}

    def fetch(self, videos: Any) -> None:
        list(videos)

    def means(self, videos: Sequence[str], starts_s: Sequence[float], ends_s: Sequence[float]) -> NDArray[np.float64]:
        return np.stack([self.rows[key] for key in zip(videos, starts_s, strict=True)])


def predicted(of: SegmentInputs, *fits: Path) -> list[Recognised]:
    """Return what the entry's method predicts."""
    return list(of.benchmark.method(of.entry.kind)().predict(of.staged("predict"), fits))


def segment(step: str, start_s: float = 0, **changes: Any) -> Segment:
    """Return a segment of two seconds of a video of 10 s."""
    return Segment(
        **{"video": "v", "start_s": start_s, "end_s": start_s + 2, "duration_s": 10, "step": step, **changes}
    )
