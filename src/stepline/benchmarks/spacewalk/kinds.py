"""Spacewalk-18's entries and kinds of methods."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.backbones.sentence import MODELS
from stepline.benchmark import DURATION, TRAIN, VAL, Entry, Kind, Metric, Prediction, Sees
from stepline.config.declarations import declaration
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOLDER = Path(__file__).parent
TEXT_ENCODERS = ("tfidf", *MODELS)
"""The text encoders; any other encoder is a video backbone."""
BLOCKS = {
    STEP_RECOGNITION: {"V": "V", "T": "T", "C": "C", "L": "TC", "V+L": "VTC"},
    RETRIEVAL: {"V": "V", "T": "T", "L": "T", "V+T": "VT"},
}
"""By task and modality, the blocks of features: V (video), T and C (transcript, compared with narration or caption)."""
METRICS = {
    "accuracy": Metric(
        title="Acc",
        definition="the mean over recordings of the share of samples with the right answer: one of the recording's "
        "steps and 0 (Irrelevant), which counts like any other, or one of the two candidates of retrieval. A guess "
        "(-1) counts as 1 / the number of answers",
    ),
    "map": Metric(
        title="mAP",
        definition="the mean over recordings, over a recording's steps with a sample (without Irrelevant), and over a "
        "step's samples, of the precision at the sample, when the recording's samples are ranked by their score for "
        "the step; of equal scores, samples of other labels come first. Interpolated: the highest precision there or "
        "later",
        options=("average_precision",),
    ),
}
SEES = (
    Sees("window", "its window"),
    Sees("recording", "the whole recording"),
    TRAIN,
    VAL,
    DURATION,
    Sees("preview_end", "the end of the preview"),
    Sees("sample_list", "the sample list", oracle=True),
    Sees("annotated_span", "the annotated span", oracle=True),
)


@dataclass(frozen=True, kw_only=True)
class Choice(Prediction):
    """The answers of a method with one seed to one recording's samples.

    ids: (N,) ids of the samples. chosen: (N,) labels, -1 for a uniform guess. scores: (N, K+1), with NaN in column 0 if
    Irrelevant has no score of its own; in retrieval (N, 2), of the candidates; or None.
    """

    ids: "NDArray[np.int64]"
    chosen: "NDArray[np.int64]"
    scores: "np.ndarray[tuple[int, int], np.dtype[np.float32]] | None"


@dataclass(frozen=True, kw_only=True)
class SpacewalkKind(Kind):
    """A kind of methods, and the values that an entry of this kind can declare.

    tasks: the tasks it can predict. encoders: the encoders it can use: names, "text" for any sentence encoder, "video"
    for any backbone; "" is none. listed, grid: whether the backbone may describe listed clips, or every second.
    texts: which texts the encoder embeds: ``windows``, ``sentences`` or ``segments`` (the 12 s from each second on); ""
    if it reads no text embeddings. transcribed: whether it reads transcripts. thresholded: whether samples with scores
    below a threshold are Irrelevant (Eq. 2).
    """

    tasks: tuple[str, ...] = (STEP_RECOGNITION, RETRIEVAL)
    encoders: tuple[str, ...] = ("",)
    listed: bool = True
    grid: bool = True
    texts: str = ""
    transcribed: bool = False
    thresholded: bool = False

    @property
    def windowed(self) -> bool:
        """Whether it sees windows of some length."""
        return "window" in self.sees

    @property
    def can_be_part(self) -> bool:
        """Whether other entries can combine it: it scores any sample without training and combines no entries."""
        return self.windowed and not self.metrics and not self.options and str not in self.settings.values()


@dataclass(frozen=True, kw_only=True)
class SpacewalkEntry(Entry):
    """An entry and its line. encoder: the text encoder or video backbone that it uses; "" is none."""

    kind: SpacewalkKind
    table: str
    method: str
    modality: str
    setting: str
    protocol: str = "paper"
    encoder: str = ""

    @property
    def task(self) -> str:
        """The task whose samples it predicts."""
        task: str = declaration(FOLDER)["tables"][self.table]["task"]
        return task

    @property
    def parts(self) -> tuple[str, ...]:
        """The ids of the entries that its settings name."""
        return tuple(self.settings[key] for key, allowed in self.kind.settings.items() if allowed is str)

    @property
    def thresholded(self) -> bool:
        """Whether answers below a threshold, which is chosen on val, become Irrelevant."""
        return self.kind.thresholded and self.task == STEP_RECOGNITION

    @property
    def blocks(self) -> str:
        """The blocks of its features: V, T, C, in this order; "" if it has no features."""
        return BLOCKS[self.task].get(self.modality, "") if self.encoder else ""

    @property
    def backbone(self) -> str:
        """The video backbone whose features it reads; "" if it reads none."""
        return self.encoder if "V" in self.blocks and self.encoder not in TEXT_ENCODERS else ""

    @cached_property
    def sees(self) -> tuple[str, ...]:
        """The keywords of all inputs it may see, including val if a threshold is chosen on it."""
        return tuple(dict.fromkeys([*super().sees, *(["val"] if self.thresholded else [])]))


FIT: dict[str, tuple[str, ...]] = {"video": ("recording",), "train": ("train",)}
HEADS: dict[str, tuple[str, ...]] = dict.fromkeys(("avg", "cat", "nl", "tf"), ())

KINDS: Mapping[str, SpacewalkKind] = {
    "reference": SpacewalkKind(method=None),
    "random": SpacewalkKind(method="methods.baselines:Baseline", drawn=True),
    "linear-in-time": SpacewalkKind(
        method="methods.baselines:Baseline", tasks=(STEP_RECOGNITION,), sees=("annotated_span",)
    ),
    "linear-after-preview": SpacewalkKind(
        method="methods.baselines:Baseline", tasks=(STEP_RECOGNITION,), sees=("duration", "preview_end")
    ),
    "sample-rank": SpacewalkKind(method="methods.baselines:Baseline", tasks=(STEP_RECOGNITION,), sees=("sample_list",)),
    "equal-segments": SpacewalkKind(
        method="methods.baselines:Baseline", tasks=(RETRIEVAL,), sees=("recording",), settings={"parts": int}
    ),
    "tfidf": SpacewalkKind(
        method="methods.tfidf:TfIdf", encoders=("tfidf",), transcribed=True, sees=("window",), settings={"fit": FIT}
    ),
    "tfidf-stems": SpacewalkKind(
        method="methods.stems:Stems", encoders=("tfidf",), transcribed=True, sees=("window",), settings={"fit": FIT}
    ),
    "zero-shot": SpacewalkKind(
        method="methods.zero_shot:ZeroShot", encoders=("text", "video"), texts="windows", sees=("window",)
    ),
    "sentences": SpacewalkKind(
        method="methods.sentences:Sentences", encoders=("text",), texts="sentences", sees=("window",)
    ),
    "last-layer": SpacewalkKind(
        method="methods.last_layer:LastLayer",
        encoders=("text", "video"),
        texts="windows",
        options="last_layer",
        thresholded=True,
        sees=("window", "train", "val"),
        environment="networks",
    ),
    "llm": SpacewalkKind(
        method="methods.llm:LanguageModel", transcribed=True, metrics=("accuracy",), sees=("window", "train")
    ),
    "tw-finch": SpacewalkKind(
        method="methods.tw_finch:TwFinch",
        tasks=(RETRIEVAL,),
        encoders=("video",),
        listed=False,
        sees=("recording",),
        settings={"segments": int},
    ),
    "lfb": SpacewalkKind(
        method="methods.lfb:LongTermFeatureBank",
        tasks=(STEP_RECOGNITION,),
        encoders=("video",),
        listed=False,
        texts="segments",
        options="last_layer",
        thresholded=True,
        sees=("window", "train", "val"),
        settings={"head": HEADS, "steps": str},
        gpu=True,
        environment="networks",
    ),
    "all-layer": SpacewalkKind(
        method="methods.all_layer:AllLayer",
        revision=2,
        encoders=("internvideo-spacewalk",),
        texts="windows",
        gpu=True,
        decoded=True,
        options="all_layer",
        thresholded=True,
        sees=("window", "train"),
        settings={"samples_per_video": int, "videos": int},
        environment="networks",
    ),
    "late-fusion": SpacewalkKind(
        method="methods.late_fusion:LateFusion",
        tasks=(STEP_RECOGNITION,),
        sees=("window", "val"),
        settings={"text": str, "video": str},
    ),
    "hmm": SpacewalkKind(
        method="methods.hmm:SequenceDecoder",
        tasks=(STEP_RECOGNITION,),
        options="sequence_decoder",
        sees=("recording", "train", "val"),
        settings={"scorer": str},
    ),
    "order-alone": SpacewalkKind(
        method="methods.hmm:SequenceDecoder",
        tasks=(STEP_RECOGNITION,),
        options="sequence_decoder",
        sees=("duration", "preview_end", "train", "val"),
    ),
}
