"""Kinds of methods of PSS, and their predictions."""

from dataclasses import dataclass

from stepline.benchmark import Kind, MethodClass, Prediction
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


def _uniform() -> MethodClass:
    from stepline.benchmarks.pss.methods.uniform import Uniform

    return Uniform


def _frequent() -> MethodClass:
    from stepline.benchmarks.pss.methods.frequent import MostFrequent

    return MostFrequent


def _pdvc() -> MethodClass:
    from stepline.benchmarks.pss.methods.pdvc import PdvcMethod

    return PdvcMethod


def _procnet() -> MethodClass:
    from stepline.benchmarks.pss.methods.procnet import ProcNetMethod

    return ProcNetMethod


KINDS = {
    "uniform": Kind(method=_uniform, metrics=SEGMENTS, settings={"by": BY}),
    "frequent": Kind(
        method=_frequent,
        sees=("train",),
        settings={"proposals": {"uniform": ("duration",), "ground_truth": ("segments",)}},
        scored_in="meteor",
    ),
    "pdvc": Kind(
        method=_pdvc,
        revision=2,
        options="pdvc",
        sees=("video", "train", "val"),
        settings={"matcher": MATCHERS, "proposals": {"learned": (), "ground_truth": ("segments",)}},
        gpu=True,
        environment="text",
        scored_in="meteor",
    ),
    "procnet": Kind(
        method=_procnet,
        options="procnet",
        sees=("video", "train", "val"),
        metrics=SEGMENTS,
        gpu=True,
        environment="text",
    ),
}
