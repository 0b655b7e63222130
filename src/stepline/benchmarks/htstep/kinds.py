"""The kinds of methods of HT-Step, and their predictions."""

from dataclasses import dataclass

from stepline.benchmark import Kind, MethodClass, Prediction
from stepline.benchmarks.htstep.metrics import COUNTS, CROSSTASK, METRICS, PARTS, SEEN, SPLITS, of_splits

EVALUATED = tuple(SPLITS)
TEXTS = {"word2vec": (), "mil_nce": (), "mpnet": (), "clip": ()}
"""Text encoders, keys of ``texts`` in the configuration."""
INPUTS = dict.fromkeys(
    (
        "headline",
        "headline_paragraph",
        "activity_headline",
        "activity_headline_paragraph",
        "paragraph",
        "activity_paragraph",
    ),
    (),
)
"""The parts of a step that form its text (Table 3)."""
DATA = {"htstep": ("train",), "narrations": ("narrations",), "coin": ("coin",)}
"""The training data of entries, and the inputs that each adds to what an entry sees."""


@dataclass(frozen=True, kw_only=True)
class Found(Prediction):
    """The prediction of a method for one video with one seed.

    steps, segments, scores: the step id, [start, end] in seconds and confidence of N segments, best first. article: the
    ids of the K candidate steps, in order. times_s: the whole second in which each of them is most likely. ordered_s:
    the same under the constraint that all steps occur in this order. () if a method does not predict it.
    """

    steps: tuple[int, ...]
    segments: tuple[tuple[float, ...], ...]
    scores: tuple[float, ...]
    article: tuple[int, ...] = ()
    times_s: tuple[float, ...] = ()
    ordered_s: tuple[float, ...] = ()


def _place() -> MethodClass:
    from stepline.benchmarks.htstep.methods.baselines import Place

    return Place


def _uniform() -> MethodClass:
    from stepline.benchmarks.htstep.methods.baselines import Uniform

    return Uniform


def _duration() -> MethodClass:
    from stepline.benchmarks.htstep.methods.baselines import Duration

    return Duration


def _text() -> MethodClass:
    from stepline.benchmarks.htstep.methods.text import TextGrounding

    return TextGrounding


def _zero_shot() -> MethodClass:
    from stepline.benchmarks.htstep.methods.zero_shot import ZeroShot

    return ZeroShot


def _actionformer() -> MethodClass:
    from stepline.benchmarks.htstep.methods.actionformer import ActionFormerMethod

    return ActionFormerMethod


def _umt() -> MethodClass:
    from stepline.benchmarks.htstep.methods.umt import UmtMethod

    return UmtMethod


def _mt_bce() -> MethodClass:
    from stepline.benchmarks.htstep.methods.mt_bce import MtBce

    return MtBce


def _transfer() -> MethodClass:
    from stepline.benchmarks.htstep.methods.heads import Transfer

    return Transfer


def _files() -> MethodClass:
    from stepline.benchmarks.htstep.methods.files import PredictionFiles

    return PredictionFiles


PREDICTED = tuple(metric for metric in METRICS if metric not in COUNTS)
KINDS = {
    "statistics": Kind(method=None, metrics=tuple(COUNTS), settings={"part": dict.fromkeys(PARTS, ())}),
    "place": Kind(
        method=_place,
        options="baselines",
        sees=("duration", "article", "train"),
        metrics=of_splits(*SPLITS),
        splits=EVALUATED,
    ),
    "uniform": Kind(method=_uniform, sees=("duration", "article"), metrics=PREDICTED, splits=EVALUATED),
    "duration": Kind(
        method=_duration,
        options="baselines",
        sees=("duration", "article", "train"),
        metrics=of_splits(*SPLITS),
        splits=EVALUATED,
    ),
    "text": Kind(
        method=_text,
        sees=("speech", "article"),
        metrics=of_splits(*SPLITS),
        splits=EVALUATED,
        settings={"by": {"tfidf": (), "mpnet": ()}, "order": {"free": (), "article": ()}},
        environment="text",
    ),
    "zero_shot": Kind(
        method=_zero_shot,
        sees=("video", "article"),
        metrics=PREDICTED,
        splits=EVALUATED,
        settings={"text": TEXTS, "input": INPUTS},
        environment="vision",
    ),
    "actionformer": Kind(
        method=_actionformer,
        options="actionformer",
        sees=("video", "train"),
        metrics=of_splits(*SEEN),
        splits=SEEN,
        gpu=True,
        environment="vision",
    ),
    "actionformer_t": Kind(
        method=_actionformer,
        options="actionformer",
        sees=("video", "article"),
        metrics=of_splits(*SPLITS),
        splits=EVALUATED,
        settings={"text": TEXTS, "input": INPUTS, "data": DATA, "init": (str, None)},
        gpu=True,
        environment="vision",
    ),
    "umt": Kind(
        method=_umt,
        options="umt",
        sees=("video", "article"),
        metrics=of_splits(*SPLITS),
        splits=EVALUATED,
        settings={"text": TEXTS, "input": INPUTS, "data": DATA},
        gpu=True,
        environment="vision",
    ),
    "mt_bce": Kind(
        method=_mt_bce,
        options="mt_bce",
        sees=("video", "article"),
        metrics=of_splits(*SPLITS),
        splits=EVALUATED,
        settings={"text": TEXTS, "input": INPUTS, "data": DATA, "init": (str, None)},
        gpu=True,
        environment="vision",
    ),
    "transfer": Kind(
        method=_transfer,
        sees=("video", "article"),
        metrics=tuple(CROSSTASK),
        splits=("crosstask",),
        settings={"of": str},
        gpu=True,
        environment="vision",
    ),
    "files": Kind(method=_files, sees=("video", "article"), metrics=of_splits(*SPLITS), splits=EVALUATED),
}
