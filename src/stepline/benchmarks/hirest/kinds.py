"""The kinds of methods of HiREST, and their predictions."""

from dataclasses import dataclass

from stepline.benchmark import Kind, Prediction
from stepline.benchmarks.hirest.metrics import CAPTIONS, MOMENTS, RETRIEVAL, SEGMENTS, STATISTICS

POOL = ("pool",)
EVALUATED = ("val", "test")
FILES = {
    "retrieval_files": ("video_retrieval.json",),
    "files": ("moment_retrieval.json", "moment_segmentation.json", "step_captioning.json"),
    "caption_files": ("step_captioning.json",),
}
"""The user's prediction files, by the kind that reads them."""
ENCODERS = {"tfidf": (), "minilm": ()}


@dataclass(frozen=True, kw_only=True)
class Found(Prediction):
    """The prediction for one query with one seed, on all videos or on one that answers it. None: not predicted.

    video: "" if the query ranks videos. ranked: the best 50 videos of the pool, best first. pool: the number of ranked
    videos. moment: [start, end] in seconds. segments: the steps of the annotated moment, [start, end] in seconds, in
    the method's order. sentences: one caption for each annotated step, in the annotated order.
    """

    query: str
    ranked: tuple[str, ...] | None = None
    pool: int | None = None
    moment: tuple[float, ...] | None = None
    segments: tuple[tuple[float, ...], ...] | None = None
    sentences: tuple[str, ...] | None = None


AUDIO = {"audio": {"with": ("speech",), "without": ()}}
JOINT = (*MOMENTS, *SEGMENTS, *CAPTIONS)
KINDS = {
    "statistics": Kind(method=None, metrics=tuple(STATISTICS)),
    "random": Kind(method="methods.baselines:RandomRanking", metrics=tuple(RETRIEVAL), splits=POOL, drawn=True),
    "middle": Kind(
        method="methods.baselines:Middle",
        sees=("duration",),
        metrics=tuple(MOMENTS),
        splits=EVALUATED,
        settings={"percent": int},
    ),
    "uniform": Kind(
        method="methods.baselines:Uniform",
        sees=("moment",),
        metrics=tuple(SEGMENTS),
        splits=EVALUATED,
        settings={"parts": (int, None), "part_s": (int, None)},
    ),
    "frequent": Kind(
        method="methods.baselines:MostFrequent",
        sees=("train",),
        metrics=tuple(CAPTIONS),
        splits=EVALUATED,
        scored_in="networks",
    ),
    "truth": Kind(method="methods.baselines:GroundTruth", sees=("steps",), metrics=tuple(SEGMENTS), splits=EVALUATED),
    "zero_shot_retrieval": Kind(
        method="methods.zero_shot:VideoRetrieval",
        sees=("query", "video"),
        metrics=tuple(RETRIEVAL),
        splits=POOL,
        settings={"frames": int},
        environment="networks",
    ),
    "zero_shot_moments": Kind(
        method="methods.zero_shot:MomentRetrieval",
        sees=("query", "video"),
        metrics=tuple(MOMENTS),
        splits=EVALUATED,
        settings={"rule": {"drop_0.05": (), "drop_0.10": (), "around_8": ()}},
        environment="networks",
    ),
    "ssim": Kind(
        method="methods.ssim:Ssim",
        sees=("video", "moment"),
        metrics=tuple(SEGMENTS),
        splits=EVALUATED,
        settings={"percent": int},
        decoded=True,
        environment="media",
    ),
    "text_retrieval": Kind(
        method="methods.text:TextRetrieval",
        sees=("query", "speech"),
        metrics=tuple(RETRIEVAL),
        splits=POOL,
        settings={"by": ENCODERS},
        environment="networks",
    ),
    "text_moments": Kind(
        method="methods.text:TextMoments",
        sees=("query", "speech"),
        metrics=tuple(MOMENTS),
        splits=EVALUATED,
        settings={"by": ENCODERS},
        environment="networks",
    ),
    "text_segments": Kind(
        method="methods.text:TextSegments",
        sees=("speech", "moment"),
        metrics=tuple(SEGMENTS),
        splits=EVALUATED,
        settings={"by": ENCODERS},
        environment="networks",
    ),
    "retrieval_files": Kind(
        method="methods.files:PredictionFiles", sees=("query", "video", "train"), metrics=tuple(RETRIEVAL), splits=POOL
    ),
    "files": Kind(
        method="methods.files:PredictionFiles",
        sees=("query", "video", "moment"),
        metrics=JOINT,
        splits=EVALUATED,
        scored_in="networks",
    ),
    "caption_files": Kind(
        method="methods.files:PredictionFiles",
        sees=("query", "video"),
        metrics=tuple(CAPTIONS),
        splits=EVALUATED,
        scored_in="networks",
    ),
    "joint": Kind(
        method="methods.joint:JointMethod",
        options="joint",
        sees=("query", "video", "moment", "train", "val"),
        metrics=JOINT,
        splits=EVALUATED,
        settings=AUDIO,
        gpu=True,
        environment="networks",
        scored_in="networks",
    ),
    "joint_released": Kind(
        method="methods.joint:ReleasedJoint",
        sees=("query", "video", "speech", "moment", "train", "val"),
        metrics=JOINT,
        splits=EVALUATED,
        gpu=True,
        environment="networks",
        scored_in="networks",
    ),
}
