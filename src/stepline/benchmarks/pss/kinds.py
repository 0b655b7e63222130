"""How predictions of PSS are made."""

from dataclasses import dataclass
from functools import partial

from stepline.benchmark import Imported, Kind, Prediction
from stepline.benchmarks.pss.metrics import SEGMENTS

METHODS = f"{__package__}.methods"
BY = {"segments": ("duration",), "duration": ("duration",), "count": ("duration", "segment_count")}
MATCHERS = dict.fromkeys(("hungarian", "soda", "soft_soda"), ())


@dataclass(frozen=True, kw_only=True)
class Segmentation(Prediction):
    """What a method says of one video with one seed.

    segments: [start, end) in seconds, by (start, end). scores: of each, higher is surer; empty where a method has none.
    sentences: of each; empty where a method writes none.
    """

    segments: tuple[tuple[float, float], ...]
    scores: tuple[float, ...] = ()
    sentences: tuple[str, ...] = ()


TRAINED = partial(Kind, trains=True, sees=("video", "train", "val"), gpu=True, environment="text")
KINDS = {
    "uniform": Kind(method=Imported(f"{METHODS}.uniform", "Uniform"), metrics=SEGMENTS, settings={"by": BY}),
    "frequent": Kind(
        method=Imported(f"{METHODS}.frequent", "MostFrequent"),
        trains=True,
        sees=("train",),
        settings={"proposals": {"uniform": ("duration",), "ground_truth": ("segments",)}},
        scored_in="meteor",
    ),
    "pdvc": TRAINED(
        method=Imported(f"{METHODS}.pdvc", "PdvcMethod"),
        options="pdvc",
        settings={"matcher": MATCHERS, "proposals": {"learned": (), "ground_truth": ("segments",)}},
        scored_in="meteor",
    ),
    "procnet": TRAINED(method=Imported(f"{METHODS}.procnet", "ProcNetMethod"), options="procnet", metrics=SEGMENTS),
}
