"""Kinds of methods of PSS, and their predictions."""

from dataclasses import dataclass

from stepline.benchmark import Kind, Prediction
from stepline.benchmarks.pss.metrics import SEGMENTS

BY = {"segments": ("duration",), "duration": ("duration",), "count": ("duration", "segment_count")}
MATCHERS = dict.fromkeys(("hungarian", "soda", "soft_soda"), ())


@dataclass(frozen=True, kw_only=True)
class Segmentation(Prediction):
    """The prediction of a method with one seed for one video.

    segments: [start, end) in seconds, sorted by (start, end). scores: one per segment, higher is more confident; empty
    if the method has none. sentences: one per segment; empty if the method writes none.
    """

    segments: tuple[tuple[float, float], ...]
    scores: tuple[float, ...] = ()
    sentences: tuple[str, ...] = ()


KINDS = {
    "uniform": Kind(method="methods.uniform:Uniform", metrics=SEGMENTS, settings={"by": BY}),
    "frequent": Kind(
        method="methods.frequent:MostFrequent",
        sees=("train",),
        settings={"proposals": {"uniform": ("duration",), "ground_truth": ("segments",)}},
        scored_in="meteor",
    ),
    "pdvc": Kind(
        method="methods.pdvc:PdvcMethod",
        revision=2,
        options="pdvc",
        sees=("video", "train", "val"),
        settings={"matcher": MATCHERS, "proposals": {"learned": (), "ground_truth": ("segments",)}},
        gpu=True,
        environment="networks",
        scored_in="meteor",
    ),
    "procnet": Kind(
        method="methods.procnet:ProcNetMethod",
        options="procnet",
        sees=("video", "train", "val"),
        metrics=SEGMENTS,
        gpu=True,
        environment="networks",
    ),
}
