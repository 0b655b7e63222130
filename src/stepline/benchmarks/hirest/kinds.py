"""The kinds of methods of HiREST, and their predictions."""

from dataclasses import dataclass

from stepline.benchmark import Kind, MethodClass, Prediction
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


def _random() -> MethodClass:
    from stepline.benchmarks.hirest.methods.baselines import RandomRanking

    return RandomRanking


def _middle() -> MethodClass:
    from stepline.benchmarks.hirest.methods.baselines import Middle

    return Middle


def _uniform() -> MethodClass:
    from stepline.benchmarks.hirest.methods.baselines import Uniform

    return Uniform


def _frequent() -> MethodClass:
    from stepline.benchmarks.hirest.methods.baselines import MostFrequent

    return MostFrequent


def _truth() -> MethodClass:
    from stepline.benchmarks.hirest.methods.baselines import GroundTruth

    return GroundTruth


def _zero_shot_retrieval() -> MethodClass:
    from stepline.benchmarks.hirest.methods.zero_shot import VideoRetrieval

    return VideoRetrieval


def _zero_shot_moments() -> MethodClass:
    from stepline.benchmarks.hirest.methods.zero_shot import MomentRetrieval

    return MomentRetrieval


def _ssim() -> MethodClass:
    from stepline.benchmarks.hirest.methods.ssim import Ssim

    return Ssim


def _text_retrieval() -> MethodClass:
    from stepline.benchmarks.hirest.methods.text import TextRetrieval

    return TextRetrieval


def _text_moments() -> MethodClass:
    from stepline.benchmarks.hirest.methods.text import TextMoments

    return TextMoments


def _text_segments() -> MethodClass:
    from stepline.benchmarks.hirest.methods.text import TextSegments

    return TextSegments


def _files() -> MethodClass:
    from stepline.benchmarks.hirest.methods.files import PredictionFiles

    return PredictionFiles


def _joint() -> MethodClass:
    from stepline.benchmarks.hirest.methods.joint import JointMethod

    return JointMethod


def _joint_released() -> MethodClass:
    from stepline.benchmarks.hirest.methods.joint import ReleasedJoint

    return ReleasedJoint


AUDIO = {"audio": {"with": ("speech",), "without": ()}}
JOINT = (*MOMENTS, *SEGMENTS, *CAPTIONS)
KINDS = {
    "statistics": Kind(method=None, metrics=tuple(STATISTICS)),
    "random": Kind(method=_random, metrics=tuple(RETRIEVAL), splits=POOL, drawn=True),
    "middle": Kind(
        method=_middle,
        sees=("duration",),
        metrics=tuple(MOMENTS),
        splits=EVALUATED,
        settings={"percent": int},
    ),
    "uniform": Kind(
        method=_uniform,
        sees=("moment",),
        metrics=tuple(SEGMENTS),
        splits=EVALUATED,
        settings={"parts": (int, None), "part_s": (int, None)},
    ),
    "frequent": Kind(
        method=_frequent, sees=("train",), metrics=tuple(CAPTIONS), splits=EVALUATED, scored_in="captions"
    ),
    "truth": Kind(method=_truth, sees=("steps",), metrics=tuple(SEGMENTS), splits=EVALUATED),
    "zero_shot_retrieval": Kind(
        method=_zero_shot_retrieval,
        sees=("query", "video"),
        metrics=tuple(RETRIEVAL),
        splits=POOL,
        settings={"frames": int},
        environment="vision",
    ),
    "zero_shot_moments": Kind(
        method=_zero_shot_moments,
        sees=("query", "video"),
        metrics=tuple(MOMENTS),
        splits=EVALUATED,
        settings={"rule": {"drop_0.05": (), "drop_0.10": (), "around_8": ()}},
        environment="vision",
    ),
    "ssim": Kind(
        method=_ssim,
        sees=("video", "moment"),
        metrics=tuple(SEGMENTS),
        splits=EVALUATED,
        settings={"percent": int},
        decoded=True,
        environment="media",
    ),
    "text_retrieval": Kind(
        method=_text_retrieval,
        sees=("query", "speech"),
        metrics=tuple(RETRIEVAL),
        splits=POOL,
        settings={"by": ENCODERS},
        environment="text",
    ),
    "text_moments": Kind(
        method=_text_moments,
        sees=("query", "speech"),
        metrics=tuple(MOMENTS),
        splits=EVALUATED,
        settings={"by": ENCODERS},
        environment="text",
    ),
    "text_segments": Kind(
        method=_text_segments,
        sees=("speech", "moment"),
        metrics=tuple(SEGMENTS),
        splits=EVALUATED,
        settings={"by": ENCODERS},
        environment="text",
    ),
    "retrieval_files": Kind(method=_files, sees=("query", "video", "train"), metrics=tuple(RETRIEVAL), splits=POOL),
    "files": Kind(
        method=_files,
        sees=("query", "video", "moment"),
        metrics=JOINT,
        splits=EVALUATED,
        scored_in="captions",
    ),
    "caption_files": Kind(
        method=_files, sees=("query", "video"), metrics=tuple(CAPTIONS), splits=EVALUATED, scored_in="captions"
    ),
    "joint": Kind(
        method=_joint,
        options="joint",
        sees=("query", "video", "moment", "train", "val"),
        metrics=JOINT,
        splits=EVALUATED,
        settings=AUDIO,
        gpu=True,
        environment="vision",
        scored_in="captions",
    ),
    "joint_released": Kind(
        method=_joint_released,
        sees=("query", "video", "speech", "moment", "train", "val"),
        metrics=JOINT,
        splits=EVALUATED,
        gpu=True,
        environment="vision",
        scored_in="captions",
    ),
}
