"""The kinds of methods of HT-Step, and their predictions."""

from dataclasses import dataclass

from stepline.benchmark import Kind, Prediction
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


PREDICTED = tuple(metric for metric in METRICS if metric not in COUNTS)
KINDS = {
    "statistics": Kind(method=None, metrics=tuple(COUNTS), settings={"part": dict.fromkeys(PARTS, ())}),
    "place": Kind(
        method="methods.baselines:Place",
        options="baselines",
        sees=("duration", "article", "train"),
        metrics=of_splits(*SPLITS),
        splits=EVALUATED,
    ),
    "uniform": Kind(
        method="methods.baselines:Uniform", sees=("duration", "article"), metrics=PREDICTED, splits=EVALUATED
    ),
    "duration": Kind(
        method="methods.baselines:Duration",
        options="baselines",
        sees=("duration", "article", "train"),
        metrics=of_splits(*SPLITS),
        splits=EVALUATED,
    ),
    "text": Kind(
        method="methods.text:TextGrounding",
        sees=("speech", "article"),
        metrics=of_splits(*SPLITS),
        splits=EVALUATED,
        settings={"by": {"tfidf": (), "mpnet": ()}, "order": {"free": (), "article": ()}},
        environment="networks",
    ),
    "zero_shot": Kind(
        method="methods.zero_shot:ZeroShot",
        sees=("video", "article"),
        metrics=PREDICTED,
        splits=EVALUATED,
        settings={"text": TEXTS, "input": INPUTS},
        environment="networks",
    ),
    "actionformer": Kind(
        method="methods.actionformer:ActionFormerMethod",
        options="actionformer",
        sees=("video", "train"),
        metrics=of_splits(*SEEN),
        splits=SEEN,
        gpu=True,
        environment="networks",
    ),
    "actionformer_t": Kind(
        method="methods.actionformer:ActionFormerMethod",
        options="actionformer",
        sees=("video", "article"),
        metrics=of_splits(*SPLITS),
        splits=EVALUATED,
        settings={"text": TEXTS, "input": INPUTS, "data": DATA, "init": (str, None)},
        gpu=True,
        environment="networks",
    ),
    "umt": Kind(
        method="methods.umt:UmtMethod",
        options="umt",
        sees=("video", "article"),
        metrics=of_splits(*SPLITS),
        splits=EVALUATED,
        settings={"text": TEXTS, "input": INPUTS, "data": DATA},
        gpu=True,
        environment="networks",
    ),
    "mt_bce": Kind(
        method="methods.mt_bce:MtBce",
        options="mt_bce",
        sees=("video", "article"),
        metrics=of_splits(*SPLITS),
        splits=EVALUATED,
        settings={"text": TEXTS, "input": INPUTS, "data": DATA, "init": (str, None)},
        gpu=True,
        environment="networks",
    ),
    "transfer": Kind(
        method="methods.heads:Transfer",
        sees=("video", "article"),
        metrics=tuple(CROSSTASK),
        splits=("crosstask",),
        settings={"of": str},
        gpu=True,
        environment="networks",
    ),
    "files": Kind(
        method="methods.files:PredictionFiles", sees=("video", "article"), metrics=of_splits(*SPLITS), splits=EVALUATED
    ),
}
